//! Reads a model's config.json field by field: a missing or odd field is an error that names it.

use serde_json::Value;

use super::Error;

/// A JSON object of settings.
#[derive(Clone, Copy)]
pub struct Config<'a>(pub &'a Value);

impl<'a> Config<'a> {
    /// The object under `key`, or `None`.
    pub fn object(self, key: &str) -> Option<Config<'a>> {
        self.0.get(key).filter(|value| value.is_object()).map(Config)
    }

    /// Whether `key` is there and not null.
    pub fn has(self, key: &str) -> bool {
        self.value(key).is_some()
    }

    fn value(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// A whole number that must be there and above zero.
    pub fn count(self, key: &str) -> Result<usize, Error> {
        self.optional_count(key)?.ok_or_else(|| Error(format!("config.json has no {key}")))
    }

    /// A whole number above zero, if it is there.
    pub fn optional_count(self, key: &str) -> Result<Option<usize>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) if (1..1 << 31).contains(&count) => Ok(Some(count as usize)),
                _ => Err(Error(format!("config.json: {key} must be a whole number above 0, found {value}"))),
            },
        }
    }

    /// A number, if it is there.
    pub fn number(self, key: &str) -> Result<Option<f64>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(Error(format!("config.json: {key} must be a number, found {value}"))),
            },
        }
    }

    /// What the model's norms add to the mean of the squares.
    pub fn rms_norm_eps(self) -> Result<f32, Error> {
        Ok(self.number("rms_norm_eps")?.unwrap_or(1e-6) as f32)
    }

    /// A list of numbers.
    pub fn numbers(self, key: &str) -> Result<Vec<f64>, Error> {
        self.value(key)
            .and_then(Value::as_array)
            .and_then(|list| list.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>())
            .ok_or_else(|| Error(format!("config.json: {key} must be a list of numbers")))
    }

    /// True or false, if it is there.
    pub fn flag(self, key: &str) -> Result<Option<bool>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(value) => Err(Error(format!("config.json: {key} must be true or false, found {value}"))),
        }
    }

    /// A string, if it is there and one.
    pub fn text(self, key: &str) -> Option<&'a str> {
        self.value(key).and_then(Value::as_str)
    }

    /// A list of words.
    pub fn words(self, key: &str) -> Option<Vec<&'a str>> {
        self.value(key)?.as_array()?.iter().map(Value::as_str).collect()
    }
}
