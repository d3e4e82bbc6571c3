//! What a model meant, by the schema of the place it wrote to: `5` or `"5"`.

use super::{Spelled, number, read, spelled::whole};
use crate::schema::{Shape, Types};

impl Shape {
    /// What a model meant that wrote `text` where a value of this shape belongs, in a format that does not mark
    /// strings as such.
    pub fn read(&self, text: &str) -> Spelled {
        let string = || Spelled::Text(text.to_owned());
        let Some(types) = self.types() else {
            // Untyped: a container is meant as one, anything else may well be text.
            return literal(text).filter(is_container).unwrap_or_else(string);
        };
        match literal(text) {
            Some(value) if allow(types, &value) && !matches!(value, Spelled::Text(_)) => self.fit(value),
            Some(value) if !types.string => self.fit(value),
            _ => string(),
        }
    }

    /// What a model meant that wrote `text` and says that it is a value, no string.
    pub fn read_value(&self, text: &str) -> Spelled {
        literal(text).map_or_else(|| Spelled::Text(text.to_owned()), |value| self.fit(value))
    }

    /// What a model meant that wrote this word without quotes in JSON or Python: a number or a literal, or a string that
    /// lacks its quotes. Where it is to be a string, it is that word.
    pub fn scalar(&self, word: &str) -> Spelled {
        let text = || Spelled::Text(word.to_owned());
        let Some(plain) = super::literal(word).map(str::to_owned).or_else(|| number(word)) else {
            return self.fit(text());
        };
        let plain = Spelled::Plain(plain);
        match self.types() {
            // With these zeros it is hardly a number, but a code or a telephone's.
            None if word.starts_with('0') && word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_digit()) => text(),
            Some(types) if types.string && !allow(types, &plain) => text(),
            _ => self.fit(plain),
        }
    }

    /// A value as this shape wants it: numbers written as strings become numbers, and the other way round, all the
    /// way down. What does not fit stays as it is.
    pub fn fit(&self, value: Spelled) -> Spelled {
        let Some(types) = self.types() else { return self.fit_parts(value) };
        if allow(types, &value) {
            return self.fit_parts(value);
        }
        match value {
            Spelled::Text(text) => match literal(&text).filter(|value| allow(types, value)) {
                Some(value) => self.fit_parts(value),
                None => Spelled::Text(text),
            },
            other if types.string => Spelled::Text(other.to_string()),
            other => self.fit_parts(other),
        }
    }

    fn fit_parts(&self, value: Spelled) -> Spelled {
        match value {
            Spelled::Members(members) => {
                let fit = |(name, value): (String, Spelled)| {
                    let fitted = self.member(&name).fit(value);
                    (name, fitted)
                };
                Spelled::Members(members.into_iter().map(fit).collect())
            }
            Spelled::List(items) => {
                let shape = self.item();
                Spelled::List(items.into_iter().map(|item| shape.fit(item)).collect())
            }
            // 5.0 where a whole number belongs.
            Spelled::Plain(text) if self.types().is_some_and(|types| types.integer && !types.number) => {
                Spelled::Plain(whole(&text).unwrap_or(text))
            }
            other => other,
        }
    }
}

/// Whether these types allow a value.
pub(in crate::chat::output) fn allow(types: Types, value: &Spelled) -> bool {
    match value {
        Spelled::Plain(text) if text == "null" => types.null,
        Spelled::Plain(text) if text == "true" || text == "false" => types.boolean,
        Spelled::Plain(number) => types.number || types.integer && whole(number).is_some(),
        Spelled::Text(_) => types.string,
        Spelled::List(_) => types.array,
        Spelled::Members(_) => types.object,
    }
}

fn is_container(value: &Spelled) -> bool {
    matches!(value, Spelled::List(_) | Spelled::Members(_))
}

/// Whether a text without quotes is read as that text where these types are allowed, and as no other value.
pub(in crate::chat::output) fn reads_as_text(types: Option<Types>, text: &str) -> bool {
    match (types, literal(text)) {
        (_, None) => true,
        (None, Some(value)) => !is_container(&value),
        (Some(types), Some(value)) => matches!(value, Spelled::Text(_)) || !allow(types, &value),
    }
}

/// A value as JSON or Python spells it.
fn literal(text: &str) -> Option<Spelled> {
    let text = text.trim();
    let plain = |text: &str| Some(Spelled::Plain(text.to_owned()));
    match text {
        "True" | "TRUE" => return plain("true"),
        "False" | "FALSE" => return plain("false"),
        "None" | "NULL" => return plain("null"),
        _ => {}
    }
    let is_container = text.starts_with(['{', '[']);
    Spelled::of(text).or_else(|| is_container.then(|| read(text)).flatten())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn reads_by_type() {
        let check = |schema: Value, text: &str, expected: Value| {
            let read = Shape::of(schema.clone()).read(text);
            assert_eq!(read.to_string(), expected.to_string(), "{text:?} as {schema}");
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
        let long: Value = serde_json::from_str("1234567890123456789").expect("a number");
        check(json!({"type": "integer"}), "1234567890123456789", long);
    }

    #[test]
    fn fits_all_the_way_down() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "s": {"type": "string"},
            "list": {"type": "array", "items": {"type": "number"}}, "free": {}, "any": true}});
        let value = json!({"n": "7", "s": 7, "list": ["1.5", 2], "free": "7", "any": "7", "other": "7"});
        let expected = json!({"n": 7, "s": "7", "list": [1.5, 2], "free": "7", "any": "7", "other": "7"});
        let value = Spelled::of(&value.to_string()).expect("JSON");
        assert_eq!(Shape::of(schema).fit(value).to_string(), expected.to_string());
    }
}
