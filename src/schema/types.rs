//! The types that a schema allows for a value.

use serde_json::{Map, Value};

/// Types of JSON, each allowed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Types {
    /// Text.
    pub string: bool,
    /// Whole numbers.
    pub integer: bool,
    /// Numbers, whole or not.
    pub number: bool,
    /// `true` and `false`.
    pub boolean: bool,
    /// `null`.
    pub null: bool,
    /// Lists.
    pub array: bool,
    /// Maps from names to values.
    pub object: bool,
}

impl Types {
    pub(super) const NONE: Types = Types {
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

    pub(super) fn add(&mut self, other: Types) {
        self.string |= other.string;
        self.integer |= other.integer;
        self.number |= other.number;
        self.boolean |= other.boolean;
        self.null |= other.null;
        self.array |= other.array;
        self.object |= other.object;
    }

    pub(super) fn add_named(&mut self, name: &str) {
        match name {
            "string" => self.string = true,
            "integer" => self.integer = true,
            "number" => {
                self.integer = true;
                self.number = true;
            }
            "boolean" => self.boolean = true,
            "null" => self.null = true,
            "array" => self.array = true,
            "object" => self.object = true,
            _ => {}
        }
    }

    pub(super) fn add_value(&mut self, value: &Value) {
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

/// All types' names.
pub const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// The types that a schema names in `type`; all of them where it names none.
pub fn named_types(fields: &Map<String, Value>) -> Vec<&str> {
    match fields.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => NAMES.to_vec(),
    }
}
