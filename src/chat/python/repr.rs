//! Values as Python's `str` and `repr` write them.

use std::borrow::Cow;
use std::fmt::Write;

use minijinja::value::{Serde, ValueKind};
use minijinja::{Error, State, Value};

use super::{charge, float_repr};

/// What Python's `str.strip` and `str.split` take for white space: Unicode's, and the four separators of ASCII.
pub(in crate::chat) fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\x1c'..='\x1f')
}

/// `str(value)`; undefined is empty.
pub(in crate::chat) fn text_of<'a>(state: &State, value: &'a Value) -> Result<Cow<'a, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::new();
    if !value.is_undefined() {
        Writer { state, escape: python_escape, out: &mut out }.value(value, 0)?;
    }
    Ok(Cow::Owned(out))
}

/// `repr(value)`.
pub(in crate::chat) fn repr_of(state: &State, value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    Writer { state, escape: python_escape, out: &mut out }.value(value, 0)?;
    Ok(out)
}

/// `repr(value)` for a call, which is read again: as Python's, but control characters are spelled as JSON has them, too
/// (`\u001b`, not `\x1b`), because in double quotes nobody could tell whose string it is.
pub(in crate::chat) fn repr(value: &serde_json::Value) -> String {
    // No template runs, so nothing is charged; JSON that was read is never too deep.
    let environment = minijinja::Environment::empty();
    let state = environment.empty_state();
    let mut out = String::new();
    let mut writer = Writer { state: &state, escape: json_escape, out: &mut out };
    writer.value(&Value::from(Serde(value)), 0).expect("JSON without a repr is a bug");
    out
}

struct Writer<'a> {
    state: &'a State<'a, 'a>,
    /// What a character that has no escape of one letter is spelled as; `None` leaves it.
    escape: fn(char) -> Option<String>,
    out: &'a mut String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        charge(self.state, depth)?;
        let depth = depth + 1;
        match value.kind() {
            ValueKind::Undefined => self.out.push_str("Undefined"),
            ValueKind::String => self.quote(value.as_str().unwrap_or_default()),
            ValueKind::Number => match f64::try_from(value.clone()) {
                Ok(float) if !value.is_integer() => self.out.push_str(&float_repr(float)),
                _ => write!(self.out, "{value}").expect("writing to a string cannot fail"),
            },
            ValueKind::Map if value.as_object().is_some_and(|object| object.try_iter_pairs().is_some()) => {
                self.out.push('{');
                for (index, key) in value.try_iter()?.enumerate() {
                    self.out.push_str(if index > 0 { ", " } else { "" });
                    self.value(&key, depth)?;
                    self.out.push_str(": ");
                    self.value(&value.get_item(&key)?, depth)?;
                }
                self.out.push('}');
            }
            ValueKind::Seq | ValueKind::Iterable => {
                let [open, close] = if value.is_tuple() { ['(', ')'] } else { ['[', ']'] };
                self.out.push(open);
                for (index, item) in value.try_iter()?.enumerate() {
                    self.out.push_str(if index > 0 { ", " } else { "" });
                    self.value(&item, depth)?;
                }
                self.out.push_str(if value.is_tuple() && value.len() == Some(1) { "," } else { "" });
                self.out.push(close);
            }
            _ => write!(self.out, "{value}").expect("writing to a string cannot fail"),
        }
        Ok(())
    }

    /// A string in Python's quotes: double ones where it holds single ones only.
    fn quote(&mut self, text: &str) {
        let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
        self.out.push(mark);
        for char in text.chars() {
            match char {
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\\' => self.out.push_str("\\\\"),
                _ if char == mark => self.out.extend(['\\', char]),
                _ => match (self.escape)(char) {
                    Some(escape) => self.out.push_str(&escape),
                    None => self.out.push(char),
                },
            }
        }
        self.out.push(mark);
    }
}

/// Python's own escapes.
fn python_escape(char: char) -> Option<String> {
    let code = u32::from(char);
    match code {
        _ if is_printable(char) => None,
        0..=0xff => Some(format!("\\x{code:02x}")),
        0x100..=0xffff => Some(format!("\\u{code:04x}")),
        _ => Some(format!("\\U{code:08x}")),
    }
}

/// Those that JSON has as well.
fn json_escape(char: char) -> Option<String> {
    char.is_control().then(|| format!("\\u{:04x}", u32::from(char)))
}

/// Python's `str.isprintable`; Rust escapes the same characters where they do not begin a string.
fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return !char.is_ascii_control();
    }
    !format!("{:?}", format!("a{char}")).contains("\\u{")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As CPython prints them.
    #[test]
    fn reprs() {
        let value = json!({"a": ["it's", "\"", "'\"", "\n\t\\é", true, null, 1.5, 2], "o": {}});
        assert_eq!(repr(&value), r#"{'a': ["it's", '"', '\'"', '\n\t\\é', True, None, 1.5, 2], 'o': {}}"#);
    }
}
