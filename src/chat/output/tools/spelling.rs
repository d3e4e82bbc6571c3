//! How formats that set no quotes around values spell those that are no strings.

use serde_json::Value;

use crate::chat::python::{self, Dumps};

/// A template's way to write a value between tags. Strings stand as they are in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `tojson`.
    Json,
    /// `tojson` for objects and arrays, Python's `str` for the rest: `True`, `None`.
    Python,
    /// Python's `str` for everything.
    Repr,
}

impl Spelling {
    pub(super) fn text(self, value: &Value) -> String {
        match (value, self) {
            (Value::String(text), _) => text.clone(),
            (Value::Array(_) | Value::Object(_), Spelling::Json | Spelling::Python) | (_, Spelling::Json) => {
                Dumps::default().json(value)
            }
            (_, Spelling::Python | Spelling::Repr) => python::repr(value),
        }
    }
}
