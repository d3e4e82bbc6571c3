//! What a model meant, by the schema of the place it wrote to: `5` or `"5"`.

use serde_json::Value;

use super::read;
use crate::schema::{Shape, Types};

impl Shape {
    /// What a model meant that wrote `text` where a value of this shape belongs, in a format that does not mark
    /// strings as such.
    pub fn read(&self, text: &str) -> Value {
        let string = || Value::String(text.to_owned());
        let Some(types) = self.types() else {
            // Untyped: a container is meant as one, anything else may well be text.
            return literal(text).filter(|value| value.is_array() || value.is_object()).unwrap_or_else(string);
        };
        match literal(text) {
            Some(value) if types.allow(&value) && !value.is_string() => self.fit(value),
            Some(value) if !types.string => self.fit(value),
            _ => string(),
        }
    }

    /// What a model meant that wrote `text` and says that it is a value, no string.
    pub fn read_value(&self, text: &str) -> Value {
        literal(text).map_or_else(|| Value::String(text.to_owned()), |value| self.fit(value))
    }

    /// A value as this shape wants it: numbers written as strings become numbers, and the other way round, all the
    /// way down. What does not fit stays as it is.
    pub fn fit(&self, value: Value) -> Value {
        let Some(types) = self.types() else { return self.fit_parts(value) };
        if types.allow(&value) {
            return self.fit_parts(value);
        }
        match value {
            Value::String(text) => match literal(&text).filter(|value| types.allow(value)) {
                Some(value) => self.fit_parts(value),
                None => Value::String(text),
            },
            other if types.string => Value::String(other.to_string()),
            other => self.fit_parts(other),
        }
    }

    fn fit_parts(&self, value: Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(
                members
                    .into_iter()
                    .map(|(name, value)| {
                        let fitted = self.member(&name).fit(value);
                        (name, fitted)
                    })
                    .collect(),
            ),
            Value::Array(items) => {
                let shape = self.item();
                Value::Array(items.into_iter().map(|item| shape.fit(item)).collect())
            }
            Value::Number(number) => match (self.types(), number.as_f64()) {
                // 5.0 where a whole number belongs.
                (Some(types), Some(float))
                    if number.is_f64() && !types.number && float.fract() == 0.0 && float.abs() < 9e15 =>
                {
                    Value::from(float as i64)
                }
                _ => Value::Number(number),
            },
            other => other,
        }
    }
}

/// Whether a text without quotes is read as that text where these types are allowed, and as no other value.
pub(in crate::chat::output) fn reads_as_text(types: Option<Types>, text: &str) -> bool {
    match (types, literal(text)) {
        (_, None) => true,
        (None, Some(value)) => !value.is_array() && !value.is_object(),
        (Some(types), Some(value)) => value.is_string() || !types.allow(&value),
    }
}

/// A value as JSON or Python spells it.
fn literal(text: &str) -> Option<Value> {
    let text = text.trim();
    match text {
        "True" | "TRUE" => return Some(Value::Bool(true)),
        "False" | "FALSE" => return Some(Value::Bool(false)),
        "None" | "NULL" => return Some(Value::Null),
        _ => {}
    }
    let is_container = text.starts_with(['{', '[']);
    serde_json::from_str(text).ok().or_else(|| is_container.then(|| read(text)).flatten())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_by_type() {
        let check = |schema: Value, text: &str, expected: Value| {
            assert_eq!(Shape::of(schema.clone()).read(text), expected, "{text:?} as {schema}");
        };
        check(json!({"type": "string"}), "5", json!("5"));
        check(json!({"type": "string"}), "false", json!("false"));
        check(json!({"type": "integer"}), " 5\n", json!(5));
        check(json!({"type": "integer"}), "5.0", json!(5));
        check(json!({"type": "integer"}), "many", json!("many"));
        check(json!({"type": "number"}), "5", json!(5));
        check(json!({"type": "boolean"}), "True", json!(true));
        check(json!({"type": ["string", "null"]}), "null", json!(null));
        check(json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), "5", json!(5));
        check(json!({"enum": ["1", "2"]}), "1", json!("1"));
        check(json!({"const": 1}), "1", json!(1));
        check(json!({"type": "array"}), "['a', True]", json!(["a", true]));
        check(json!({"type": "array", "items": {"type": "string"}}), "[1]", json!(["1"]));
        check(json!({"type": "object"}), "{\"a\": 1}", json!({"a": 1}));
        check(json!({}), "5", json!("5"));
        check(json!({}), "[5]", json!([5]));
        check(json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), "5", json!(5));
        check(json!({"$ref": "#"}), "5", json!("5"));
    }

    #[test]
    fn fits_all_the_way_down() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "s": {"type": "string"},
            "list": {"type": "array", "items": {"type": "number"}}, "free": {}, "any": true}});
        let value = json!({"n": "7", "s": 7, "list": ["1.5", 2], "free": "7", "any": "7", "other": "7"});
        let expected = json!({"n": 7, "s": "7", "list": [1.5, 2], "free": "7", "any": "7", "other": "7"});
        assert_eq!(Shape::of(schema).fit(value), expected);
    }
}
