//! Values as Python's `str` and `repr` write them.

use std::borrow::Cow;
use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::chat::python::{charge, float_repr};

/// What Python's `str.strip` and `str.split` take for white space: Unicode's, and the four separators of ASCII.
pub(super) fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\x1c'..='\x1f')
}

/// `str(value)`; undefined is empty.
pub(super) fn text_of<'a>(state: &State, value: &'a Value) -> Result<Cow<'a, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::new();
    if !value.is_undefined() {
        repr(state, value, &mut out, 0)?;
    }
    Ok(Cow::Owned(out))
}

fn repr(state: &State, value: &Value, out: &mut String, depth: usize) -> Result<(), Error> {
    charge(state, depth)?;
    let depth = depth + 1;
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::String => quote(value.as_str().unwrap_or_default(), out),
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(float) if !value.is_integer() => out.push_str(&float_repr(float)),
            _ => write!(out, "{value}").expect("writing to a string cannot fail"),
        },
        ValueKind::Map if value.as_object().is_some_and(|object| object.try_iter_pairs().is_some()) => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                repr(state, &key, out, depth)?;
                out.push_str(": ");
                repr(state, &value.get_item(&key)?, out, depth)?;
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let [open, close] = if value.is_tuple() { ['(', ')'] } else { ['[', ']'] };
            out.push(open);
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                repr(state, &item, out, depth)?;
            }
            out.push_str(if value.is_tuple() && value.len() == Some(1) { "," } else { "" });
            out.push(close);
        }
        _ => write!(out, "{value}").expect("writing to a string cannot fail"),
    }
    Ok(())
}

/// A string in Python's quotes: double ones where it holds single ones only.
fn quote(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if char == mark => out.extend(['\\', char]),
            _ if is_printable(char) => out.push(char),
            _ => {
                let code = u32::from(char);
                let written = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
                written.expect("writing to a string cannot fail");
            }
        }
    }
    out.push(mark);
}

/// Python's `str.isprintable`; Rust escapes the same characters where they do not begin a string.
fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return !char.is_ascii_control();
    }
    !format!("{:?}", format!("a{char}")).contains("\\u{")
}
