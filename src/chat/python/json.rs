//! JSON as Python's `json.dumps` writes it, for chat templates: models were trained on its spaces and its numbers.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use super::{charge, float_repr};

/// The arguments of `json.dumps` that templates use.
#[derive(Debug, Clone, Default)]
pub(in crate::chat) struct Dumps {
    /// What a level is indented by; `None` writes one line.
    pub indent: Option<String>,
    /// Between items, and between key and value; `None` is Python's choice.
    pub separators: Option<(String, String)>,
    pub sort_keys: bool,
    pub ensure_ascii: bool,
}

impl Dumps {
    /// Fails for what has no JSON: undefined, functions.
    pub(in crate::chat) fn write(&self, state: &State, value: &Value) -> Result<String, Error> {
        let (item, key) = match &self.separators {
            Some((item, key)) => (item.as_str(), key.as_str()),
            None if self.indent.is_some() => (",", ": "),
            None => (", ", ": "),
        };
        let mut writer = Writer { dumps: self, state, item, key, out: String::new() };
        writer.value(value, 0)?;
        Ok(writer.out)
    }
}

struct Writer<'a> {
    dumps: &'a Dumps,
    state: &'a State<'a, 'a>,
    item: &'a str,
    key: &'a str,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, level: usize) -> Result<(), Error> {
        charge(self.state, level)?;
        match value.kind() {
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::None | ValueKind::Bool | ValueKind::Number => self.out.push_str(&scalar(value)),
            ValueKind::Map => self.map(value, level)?,
            // Two lists added are one, and so is what `map` gives, of which Python has no JSON.
            ValueKind::Seq | ValueKind::Iterable => self.list(value, level)?,
            kind => return Err(without_json(&kind.to_string())),
        }
        Ok(())
    }

    fn list(&mut self, list: &Value, level: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut empty = true;
        for item in list.try_iter()? {
            self.next(&mut empty, level + 1);
            self.value(&item, level + 1)?;
        }
        self.close(']', empty, level);
        Ok(())
    }

    fn map(&mut self, map: &Value, level: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = map.try_iter()?.collect();
        if self.dumps.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        let mut empty = true;
        for key in keys {
            self.next(&mut empty, level + 1);
            match key.kind() {
                ValueKind::String => self.string(key.as_str().unwrap_or_default()),
                ValueKind::None | ValueKind::Bool | ValueKind::Number => self.string(&scalar(&key)),
                kind => return Err(without_json(&format!("a key that is a {kind}"))),
            }
            self.out.push_str(self.key);
            self.value(&map.get_item(&key)?, level + 1)?;
        }
        self.close('}', empty, level);
        Ok(())
    }

    fn next(&mut self, first: &mut bool, level: usize) {
        if !std::mem::take(first) {
            self.out.push_str(self.item);
        }
        self.line(level);
    }

    fn close(&mut self, bracket: char, empty: bool, level: usize) {
        if !empty {
            self.line(level);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, level: usize) {
        if let Some(indent) = &self.dumps.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(indent.as_str(), level));
        }
    }

    fn string(&mut self, text: &str) {
        let quoted = serde_json::Value::from(text).to_string();
        if !self.dumps.ensure_ascii {
            self.out.push_str(&quoted);
            return;
        }
        for char in quoted.chars() {
            if char.is_ascii() && char != '\u{7f}' {
                self.out.push(char);
            } else {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}").expect("writing to a string cannot fail");
                }
            }
        }
    }
}

fn scalar(value: &Value) -> String {
    match value.kind() {
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => value.is_true().to_string(),
        _ => match f64::try_from(value.clone()) {
            Ok(float) if !value.is_integer() => match float {
                f64::INFINITY => "Infinity".to_owned(),
                f64::NEG_INFINITY => "-Infinity".to_owned(),
                float if float.is_nan() => "NaN".to_owned(),
                float => float_repr(float),
            },
            _ => value.to_string(),
        },
    }
}

fn without_json(what: &str) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("{what} has no JSON"))
}

impl Dumps {
    /// What `json.dumps` makes of JSON.
    pub(in crate::chat) fn json(&self, json: &serde_json::Value) -> String {
        // No template runs, so nothing is charged; JSON that was read is never so deep that it cannot be written.
        let environment = minijinja::Environment::empty();
        let value = Value::from(minijinja::value::Serde(json));
        self.write(&environment.empty_state(), &value).expect("JSON that is no JSON is a bug")
    }
}

/// JSON as Python's `json.dumps` writes it by default, but for text that is no ASCII, which stays as it is.
pub(in crate::chat) fn dumps(json: &serde_json::Value) -> String {
    Dumps::default().json(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dumps() {
        let value = json!({"b": [1, 2.0, true, null], "a": {"é\"\n": "\u{1f600}"}, "e": [], "o": {}});
        let value = Value::from(minijinja::value::Serde(&value));
        let environment = minijinja::Environment::new();
        let check = |dumps: Dumps, expected: &str| {
            assert_eq!(dumps.write(&environment.empty_state(), &value).unwrap(), expected)
        };
        check(
            Dumps::default(),
            "{\"b\": [1, 2.0, true, null], \"a\": {\"é\\\"\\n\": \"\u{1f600}\"}, \"e\": [], \"o\": {}}",
        );
        check(
            Dumps { indent: Some("  ".into()), sort_keys: true, ..Dumps::default() },
            "{\n  \"a\": {\n    \"é\\\"\\n\": \"\u{1f600}\"\n  },\n  \"b\": [\n    1,\n    2.0,\n    true,\n    null\n  ],\n  \
             \"e\": [],\n  \"o\": {}\n}",
        );
        check(
            Dumps { separators: Some((",".into(), ":".into())), ensure_ascii: true, ..Dumps::default() },
            "{\"b\":[1,2.0,true,null],\"a\":{\"\\u00e9\\\"\\n\":\"\\ud83d\\ude00\"},\"e\":[],\"o\":{}}",
        );
    }
}
