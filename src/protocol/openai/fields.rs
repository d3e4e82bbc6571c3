//! The fields of a JSON object, taken out one by one. What is left in the end nobody understood, and it is refused:
//! so no field can be accepted and ignored.

use serde_json::{Map, Value};

use crate::protocol::Refusal;

/// Characters of a wrong value that an error shows.
const SHOWN: usize = 60;

/// An object that is being read. A null is as good as no field.
pub(super) struct Fields {
    /// Where the object lies in the body, ending in a dot; empty for the body itself.
    prefix: String,
    fields: Map<String, Value>,
}

impl Fields {
    /// The fields of the object at `path`.
    pub(super) fn of(path: &str, value: Value) -> Result<Fields, Refusal> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
        match value {
            Value::Object(mut fields) => {
                fields.retain(|_, value| !value.is_null());
                Ok(Fields { prefix, fields })
            }
            other => Err(expected(path, "an object", &other)),
        }
    }

    /// The names of what has not been taken yet, in their order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    /// Where a field of this object lies in the body.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        // Removing by swapping would reorder what is left, and errors name the first that is.
        self.fields.shift_remove(name)
    }

    /// Takes a field through `read`, which says `None` where the value is not what `what` describes.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        what: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| expected(&self.path(name), what, &value))
    }

    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        self.read(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn bool(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// A number that holds in single precision, too: a tiny share must not become 0.
    pub(super) fn number(
        &mut self,
        name: &str,
        what: &str,
        holds: impl Fn(f32) -> bool,
    ) -> Result<Option<f32>, Refusal> {
        self.read(name, what, |value| {
            let number = value.as_f64()? as f32;
            (number.is_finite() && holds(number)).then_some(number)
        })
    }

    /// Refuses what is left. `known` lists the fields there are.
    pub(super) fn finish(self, known: &str) -> Result<(), Refusal> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => {
                let problem = format!("this field is not known here, so it would do nothing; leave it out ({known})");
                Err(Refusal::field(self.path(name), problem))
            }
        }
    }
}

/// A value that is not what it should be.
pub(super) fn expected(path: &str, what: &str, value: &Value) -> Refusal {
    let problem = format!("expected {what}, got {}", shown(value));
    match path {
        "" => Refusal::new(crate::protocol::Kind::Invalid, format!("the body: {problem}")),
        path => Refusal::field(path, problem),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
