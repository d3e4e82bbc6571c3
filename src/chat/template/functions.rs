//! The functions and filters that transformers gives to chat templates.

use std::fmt::Write;

use chrono::NaiveDateTime;
use minijinja::value::{Kwargs, Rest};
use minijinja::{Error, ErrorKind, Value};

use crate::chat::python::Dumps;

/// What time it is.
pub(super) type Clock = fn() -> NaiveDateTime;

/// What a template says by `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub String);

pub(super) fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

/// A time in a format of C's `strftime`.
pub(super) fn strftime_now(now: NaiveDateTime, format: &str) -> Result<String, Error> {
    let mut text = String::new();
    match write!(text, "{}", now.format(format)) {
        Ok(()) => Ok(text),
        Err(_) => Err(Error::new(ErrorKind::InvalidOperation, format!("{format:?} is no time format"))),
    }
}

/// `json.dumps` with the defaults of Hugging Face's filter: non-ASCII text stays as it is.
pub(super) fn tojson(value: Value, arguments: Rest<Value>, options: Kwargs) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "undefined has no JSON"));
    }
    let json =
        serde_json::to_value(&value).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let separators = match options.get::<Option<Vec<String>>>("separators")?.as_deref() {
        Some([item, key]) => Some((item.clone(), key.clone())),
        None => None,
        Some(_) => {
            return Err(Error::new(ErrorKind::InvalidOperation, "separators are a pair"));
        }
    };
    let dumps = Dumps {
        indent: options.get("indent")?,
        separators,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ensure_ascii: match arguments.first() {
            Some(argument) => argument.is_true(),
            None => options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        },
    };
    options.assert_all_used()?;
    Ok(dumps.write(&json))
}
