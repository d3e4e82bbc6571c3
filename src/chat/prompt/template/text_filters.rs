//! jinja2's filters of texts that minijinja has none of. The arguments have jinja2's names.

use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, State, Value};

use super::{format_strings::MOST, functions::wrong, methods};
use crate::chat::python::{is_space, text_of};

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("center", center);
    environment.add_filter("truncate", truncate);
    environment.add_filter("filesizeformat", file_size);
    environment.add_filter("striptags", strip_tags);
    environment.add_filter("dictsort", dict_sort);
}

/// Arguments by their place or by their name; undefined where there is neither.
struct Arguments {
    places: Rest<Value>,
    names: Kwargs,
}

impl Arguments {
    fn get(&self, place: usize, name: &str) -> Result<Value, Error> {
        match self.places.get(place) {
            Some(value) => Ok(value.clone()),
            None => self.names.get::<Option<Value>>(name).map(|value| value.unwrap_or(Value::UNDEFINED)),
        }
    }

    fn size(&self, place: usize, name: &str, default: usize) -> Result<usize, Error> {
        let value = self.get(place, name)?;
        if value.is_undefined() || value.is_none() {
            return Ok(default);
        }
        let size = value.as_i64().and_then(|size| u64::try_from(size).ok()).filter(|size| *size <= MOST);
        let size = size.ok_or_else(|| wrong(format!("{name} is a number from 0 to {MOST}")))?;
        Ok(size as usize)
    }

    fn done(&self, most: usize) -> Result<(), Error> {
        if self.places.len() > most {
            return Err(wrong(format!("there are {} arguments, and {most} at most are taken", self.places.len())));
        }
        self.names.assert_all_used()
    }
}

fn center(state: &State, value: &Value, places: Rest<Value>, names: Kwargs) -> Result<String, Error> {
    let arguments = Arguments { places, names };
    let width = arguments.size(0, "width", 80)?;
    arguments.done(1)?;
    methods::pad(state, &text_of(state, value)?, "center", &[Value::from(width)])
}

fn truncate(state: &State, value: &Value, places: Rest<Value>, names: Kwargs) -> Result<String, Error> {
    let arguments = Arguments { places, names };
    let length = arguments.size(0, "length", 255)?;
    let cuts_words = arguments.get(1, "killwords")?.is_true();
    let end = arguments.get(2, "end")?;
    let end = if end.is_undefined() { "...".to_owned() } else { text_of(state, &end)?.into_owned() };
    let leeway = arguments.size(3, "leeway", 5)?;
    arguments.done(4)?;
    let text = text_of(state, value)?;
    let end_length = end.chars().count();
    if length < end_length {
        return Err(wrong(format!("truncate's length {length} is shorter than its end {end:?}")));
    }
    if text.chars().count() <= length + leeway {
        return Ok(text.into_owned());
    }
    let cut: String = text.chars().take(length - end_length).collect();
    let whole_words = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    Ok(if cuts_words { cut + &end } else { format!("{whole_words}{end}") })
}

fn file_size(value: &Value, places: Rest<Value>, names: Kwargs) -> Result<String, Error> {
    let arguments = Arguments { places, names };
    let binary = arguments.get(0, "binary")?.is_true();
    arguments.done(1)?;
    let number = match value.as_str() {
        Some(text) => text.trim_matches(is_space).parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    let bytes = number.ok_or_else(|| wrong("filesizeformat takes a number"))?;
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return Ok("1 Byte".to_owned());
    }
    if bytes < base {
        return Ok(format!("{} Bytes", bytes as i64));
    }
    let mut size = bytes / base;
    let mut units = "kMGTPEZY".chars().peekable();
    while size >= base && units.clone().nth(1).is_some() {
        size /= base;
        units.next();
    }
    let unit = units.next().expect("the last unit stays");
    let unit = if binary { format!("{}i", unit.to_ascii_uppercase()) } else { unit.to_string() };
    Ok(format!("{size:.1} {unit}B"))
}

/// Without comments and tags; runs of white space are one space.
fn strip_tags(state: &State, value: &Value) -> Result<String, Error> {
    let mut text = text_of(state, value)?.into_owned();
    for (open, close) in [("<!--", "-->"), ("<", ">")] {
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(start) = rest.find(open) {
            let Some(end) = rest[start..].find(close) else { break };
            out.push_str(&rest[..start]);
            rest = &rest[start + end + close.len()..];
        }
        text = out + rest;
    }
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    let plain = words.join(" ");
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    Ok(entities.into_iter().fold(plain, |text, (entity, char)| text.replace(entity, char)))
}

/// minijinja's, which takes its options by name only.
fn dict_sort(value: &Value, places: Rest<Value>, names: Kwargs) -> Result<Value, Error> {
    let arguments = Arguments { places, names };
    let options = [(0, "case_sensitive"), (1, "by"), (2, "reverse")];
    let mut given = Vec::new();
    for (place, name) in options {
        let option = arguments.get(place, name)?;
        given.extend((!option.is_undefined()).then_some((name, option)));
    }
    arguments.done(options.len())?;
    minijinja::filters::dictsort(value, given.into_iter().collect())
}
