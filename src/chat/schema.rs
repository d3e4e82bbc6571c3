//! Which types a schema allows for a value, as far as that decides how to read what a model wrote: `5` or `"5"`.

use std::sync::Arc;

use serde_json::Value;

/// References followed in a row before giving up; schemas may be circular.
const REFERENCES: usize = 16;

/// A place in a schema.
#[derive(Debug, Clone)]
pub struct Shape {
    root: Arc<Value>,
    /// The schema of this place; `None` where nothing is said of it.
    node: Option<Value>,
}

/// Types of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Types {
    pub string: bool,
    pub integer: bool,
    pub number: bool,
    pub boolean: bool,
    pub null: bool,
    pub array: bool,
    pub object: bool,
}

impl Types {
    const NONE: Types = Types {
        string: false,
        integer: false,
        number: false,
        boolean: false,
        null: false,
        array: false,
        object: false,
    };

    /// Whether strings are allowed and nothing else.
    pub fn only_string(self) -> bool {
        self.string && Types { string: false, ..self } == Types::NONE
    }

    /// Whether a value of this type is allowed.
    pub fn allow(self, value: &Value) -> bool {
        match value {
            Value::Null => self.null,
            Value::Bool(_) => self.boolean,
            Value::Number(number) => self.number || self.integer && number.as_f64().is_some_and(|n| n.fract() == 0.0),
            Value::String(_) => self.string,
            Value::Array(_) => self.array,
            Value::Object(_) => self.object,
        }
    }

    fn add(&mut self, other: Types) {
        self.string |= other.string;
        self.integer |= other.integer;
        self.number |= other.number;
        self.boolean |= other.boolean;
        self.null |= other.null;
        self.array |= other.array;
        self.object |= other.object;
    }

    fn add_named(&mut self, name: &str) {
        match name {
            "string" => self.string = true,
            "integer" => self.integer = true,
            "number" => (self.integer, self.number) = (true, true),
            "boolean" => self.boolean = true,
            "null" => self.null = true,
            "array" => self.array = true,
            "object" => self.object = true,
            _ => {}
        }
    }

    fn add_value(&mut self, value: &Value) {
        self.add_named(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        });
    }
}

impl Shape {
    pub fn of(schema: Value) -> Shape {
        Shape { node: Some(schema.clone()), root: Arc::new(schema) }
    }

    /// A place of which nothing is known.
    pub fn unknown() -> Shape {
        Shape { root: Arc::new(Value::Null), node: None }
    }

    /// The types that are allowed here; `None` where the schema does not say.
    pub fn types(&self) -> Option<Types> {
        let types = self.types_of(self.node.as_ref()?, REFERENCES);
        Some(types).filter(|&types| types != Types::NONE)
    }

    fn types_of(&self, node: &Value, depth: usize) -> Types {
        let mut types = Types::NONE;
        let Some(node) = self.resolved(node).filter(|_| depth > 0) else { return types };
        match &node["type"] {
            Value::String(name) => types.add_named(name),
            Value::Array(names) => names.iter().filter_map(Value::as_str).for_each(|name| types.add_named(name)),
            _ => {}
        }
        if types != Types::NONE {
            return types;
        }
        if let Some(value) = node.get("const") {
            types.add_value(value);
        }
        node["enum"].as_array().into_iter().flatten().for_each(|value| types.add_value(value));
        for list in ["anyOf", "oneOf", "allOf"] {
            for part in node[list].as_array().into_iter().flatten() {
                types.add(self.types_of(part, depth - 1));
            }
        }
        types.object |= node.get("properties").is_some();
        types.array |= node.get("items").is_some();
        types
    }

    /// The schema of this member of an object.
    pub fn member(&self, name: &str) -> Shape {
        self.part(|node| {
            let properties = node.get("properties").and_then(|properties| properties.get(name));
            properties.or_else(|| node.get("additionalProperties").filter(|schema| schema.is_object()))
        })
    }

    /// The schema of an item of an array.
    pub fn item(&self) -> Shape {
        self.part(|node| node.get("items"))
    }

    fn part(&self, get: impl Fn(&Value) -> Option<&Value> + Copy) -> Shape {
        let node = self.node.as_ref().and_then(|node| self.find(node, get, REFERENCES)).cloned();
        Shape { root: Arc::clone(&self.root), node }
    }

    fn find<'a>(
        &'a self,
        node: &'a Value,
        get: impl Fn(&'a Value) -> Option<&'a Value> + Copy,
        depth: usize,
    ) -> Option<&'a Value> {
        let node = self.resolved(node).filter(|_| depth > 0)?;
        get(node).or_else(|| {
            let parts = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|list| node[list].as_array()).flatten();
            parts.into_iter().find_map(|part| self.find(part, get, depth - 1))
        })
    }

    /// The names of an object's members, required ones first as the schema lists them.
    pub fn members(&self) -> Vec<String> {
        let node = self.node.as_ref().and_then(|node| self.resolved(node));
        let properties = node.and_then(|node| node["properties"].as_object());
        properties.into_iter().flat_map(|members| members.keys().cloned()).collect()
    }

    /// Whether the object must have this member.
    pub fn requires(&self, name: &str) -> bool {
        let node = self.node.as_ref().and_then(|node| self.resolved(node));
        node.and_then(|node| node["required"].as_array()).is_some_and(|names| names.iter().any(|own| own == name))
    }

    fn resolved<'a>(&'a self, node: &'a Value) -> Option<&'a Value> {
        let mut node = node;
        for _ in 0..REFERENCES {
            let Some(reference) = node.get("$ref").and_then(Value::as_str) else { return Some(node) };
            node = self.root.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

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

/// A value as JSON or Python spells it.
fn literal(text: &str) -> Option<Value> {
    let text = text.trim();
    match text {
        "True" | "TRUE" => return Some(Value::Bool(true)),
        "False" | "FALSE" => return Some(Value::Bool(false)),
        "None" | "NULL" => return Some(Value::Null),
        _ => {}
    }
    serde_json::from_str(text).ok().or_else(|| {
        let container = text.starts_with(['{', '[']);
        container.then(|| super::output::json::read(text)).flatten()
    })
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
