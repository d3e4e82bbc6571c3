//! How values that are no strings are written where a format sets no quotes around them.

use serde_json::Value;

use crate::chat::{
    dialect::Spelling,
    python::{self, Dumps},
};

impl Spelling {
    /// This value, strings as they are.
    pub(in crate::chat::output) fn text(self, value: &Value) -> String {
        match (value, self) {
            (Value::String(text), _) => text.clone(),
            (Value::Array(_) | Value::Object(_), Spelling::Json | Spelling::Python) | (_, Spelling::Json) => {
                Dumps::default().json(value)
            }
            (_, Spelling::Python | Spelling::Repr) => python::repr(value),
        }
    }
}
