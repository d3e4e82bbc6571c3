//! Python's `str.format`: which value goes where, and in what form. What follows a colon is written by minijinja.

use minijinja::value::{Kwargs, Rest, from_args};
use minijinja::{Error, State, Value};

use super::format_strings::check_braces;
use super::functions::wrong;
use crate::chat::python::{repr_of, text_of};

pub(super) fn formatted(state: &mut State, format: &str, arguments: &[Value]) -> Result<String, Error> {
    check_braces(state, format)?;
    let (places, names): (Rest<Value>, Kwargs) = from_args(arguments)?;
    let mut values = Values { places: places.0, names, next: 0 };
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let brace = &after[..1];
        rest = &after[1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
        } else if brace == "}" {
            return Err(wrong("a format string has a } without its {"));
        } else {
            let end = end_of(rest).ok_or_else(|| wrong("a format string has a { without its }"))?;
            out.push_str(&values.field(state, &rest[..end])?);
            rest = &rest[end + 1..];
        }
    }
    Ok(out + rest)
}

/// Where the field ends: a form may have fields of its own.
fn end_of(text: &str) -> Option<usize> {
    let mut depth = 0;
    let ends = |char: char| {
        depth += match char {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth < 0
    };
    text.find(ends)
}

struct Values {
    places: Vec<Value>,
    names: Kwargs,
    next: usize,
}

impl Values {
    /// `name.attribute[key]!conversion:form`
    fn field(&mut self, state: &mut State, field: &str) -> Result<String, Error> {
        let (field, form) = field.split_once(':').unwrap_or((field, ""));
        let (path, conversion) = match field.split_once('!') {
            Some((path, conversion)) => (path, Some(conversion)),
            None => (field, None),
        };
        let value = self.value(path)?;
        let value = match conversion {
            None => value,
            Some("r") => Value::from(repr_of(state, &value)?),
            Some("s") => Value::from(text_of(state, &value)?.as_ref()),
            Some(other) => {
                return Err(wrong(format!("a format string has no conversion !{other}; there are !r and !s")));
            }
        };
        if form.is_empty() {
            return Ok(text_of(state, &value)?.into_owned());
        }
        let form = self.form(state, form)?;
        let only = format!("{{:{form}}}");
        check_braces(state, &only)?;
        let written =
            minijinja_contrib::pycompat::unknown_method_callback(state, &Value::from(only), "format", &[value])?;
        Ok(text_of(state, &written)?.into_owned())
    }

    /// A form whose own fields are filled in.
    fn form(&mut self, state: &State, form: &str) -> Result<String, Error> {
        let mut out = String::new();
        let mut rest = form;
        while let Some((before, after)) = rest.split_once('{') {
            let (path, after) = after.split_once('}').ok_or_else(|| wrong("a { within a form has no }"))?;
            out.push_str(before);
            out.push_str(&text_of(state, &self.value(path)?)?);
            rest = after;
        }
        Ok(out + rest)
    }

    fn value(&mut self, path: &str) -> Result<Value, Error> {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (name, mut rest) = path.split_at(end);
        let mut value = if name.is_empty() {
            self.next += 1;
            self.place(self.next - 1)?
        } else if let Ok(place) = name.parse() {
            self.place(place)?
        } else {
            let named = self.names.get::<Option<Value>>(name)?;
            named.ok_or_else(|| wrong(format!("the format names {name:?}, which it is not given")))?
        };
        while !rest.is_empty() {
            let (key, after) = match rest.strip_prefix('[') {
                Some(item) => item.split_once(']').ok_or_else(|| wrong("a [ of a format string has no ]"))?,
                None => {
                    let attribute = rest.strip_prefix('.').ok_or_else(|| wrong("a format's field cannot be read"))?;
                    attribute.split_at(attribute.find(['.', '[']).unwrap_or(attribute.len()))
                }
            };
            value = match key.parse::<usize>() {
                Ok(place) if rest.starts_with('[') => value.get_item(&Value::from(place))?,
                _ => value.get_attr(key)?,
            };
            if value.is_undefined() {
                return Err(wrong(format!("the format's value has no {key:?}")));
            }
            rest = after;
        }
        Ok(value)
    }

    fn place(&self, place: usize) -> Result<Value, Error> {
        self.places.get(place).cloned().ok_or_else(|| wrong("there are fewer values than the format string takes"))
    }
}
