//! `cycler` and `joiner`: what a template calls to get another value each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Object, Rest, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use super::functions::wrong;

/// Its values one after the other, and again.
#[derive(Debug)]
struct Cycler {
    values: Vec<Value>,
    at: AtomicUsize,
}

impl Object for Cycler {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (key.as_str() == Some("current")).then(|| self.values[self.at.load(Ordering::Relaxed)].clone())
    }

    fn call_method(self: &Arc<Self>, _: &mut State, method: &str, arguments: &[Value]) -> Result<Value, Error> {
        from_args::<()>(arguments)?;
        match method {
            "next" => {
                let at = self.at.load(Ordering::Relaxed);
                self.at.store((at + 1) % self.values.len(), Ordering::Relaxed);
                Ok(self.values[at].clone())
            }
            "reset" => {
                self.at.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::new(ErrorKind::UnknownMethod, format!("a cycler has no method {method}"))),
        }
    }
}

pub(super) fn cycler(values: Rest<Value>) -> Result<Value, Error> {
    if values.is_empty() {
        return Err(wrong("a cycler needs values"));
    }
    Ok(Value::from_object(Cycler { values: values.0, at: AtomicUsize::new(0) }))
}

/// Nothing the first time, then the separator.
#[derive(Debug)]
struct Joiner {
    separator: Value,
    calls: AtomicUsize,
}

impl Object for Joiner {
    fn call(self: &Arc<Self>, _: &mut State, arguments: &[Value]) -> Result<Value, Error> {
        from_args::<()>(arguments)?;
        let first = self.calls.swap(1, Ordering::Relaxed) == 0;
        Ok(if first { Value::from("") } else { self.separator.clone() })
    }
}

pub(super) fn joiner(separator: Option<Value>) -> Value {
    let separator = separator.unwrap_or_else(|| Value::from(", "));
    Value::from_object(Joiner { separator, calls: AtomicUsize::new(0) })
}
