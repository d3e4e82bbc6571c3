//! Python's methods of strings, lists and dicts, where minijinja's contributed ones are missing or others.

use minijinja::value::{Kwargs, Rest, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use super::braces;
use crate::chat::python::is_space;

/// Calls a method that minijinja's values do not have.
pub(super) fn call(state: &mut State, value: &Value, method: &str, arguments: &[Value]) -> Result<Value, Error> {
    let own = match (value.as_str(), value.kind()) {
        (Some(text), _) => of_string(state, text, method, arguments),
        (None, ValueKind::Seq) => of_list(value, method, arguments),
        (None, ValueKind::Map) if method == "copy" => from_args::<()>(arguments).map(|()| Some(value.clone())),
        _ => Ok(None),
    };
    match own? {
        Some(result) => Ok(result),
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments),
    }
}

fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}

fn of_list(list: &Value, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "index" => {
            let (wanted,): (&Value,) = from_args(arguments)?;
            let at = list.try_iter()?.position(|item| item == *wanted);
            at.map(|at| Some(Value::from(at))).ok_or_else(|| wrong("the value is not in the list"))
        }
        "copy" => from_args::<()>(arguments).map(|()| Some(list.clone())),
        _ => Ok(None),
    }
}

/// `None` where minijinja-contrib's method of that name is Python's.
fn of_string(state: &mut State, text: &str, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    let result = match method {
        "strip" | "lstrip" | "rstrip" => strip(text, method, arguments)?.into(),
        "split" | "rsplit" => split(text, method == "rsplit", arguments)?,
        "splitlines" => {
            let (keep, options): (Option<bool>, Kwargs) = from_args(arguments)?;
            let keep = keep.map_or_else(|| options.get::<Option<bool>>("keepends"), |keep| Ok(Some(keep)))?;
            options.assert_all_used()?;
            lines(text, keep.unwrap_or(false)).map(Value::from).collect()
        }
        "partition" | "rpartition" => partition(text, method == "rpartition", arguments)?,
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(arguments)?;
            text.strip_prefix(prefix).unwrap_or(text).into()
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(arguments)?;
            text.strip_suffix(suffix).unwrap_or(text).into()
        }
        "startswith" | "endswith" | "find" | "rfind" | "index" | "rindex" | "count" => {
            return search(text, method, arguments);
        }
        "ljust" | "rjust" | "center" | "zfill" => pad(state, text, method, arguments)?.into(),
        "title" => from_args::<()>(arguments).map(|()| title(text))?.into(),
        "swapcase" => from_args::<()>(arguments).map(|()| swapcase(text))?.into(),
        "casefold" => from_args::<()>(arguments).map(|()| text.to_lowercase().replace('ß', "ss"))?.into(),
        "isspace" => (!text.is_empty() && text.chars().all(is_space)).into(),
        "isdecimal" => (!text.is_empty() && text.chars().all(|char| char.is_ascii_digit())).into(),
        "format" => braces::formatted(state, text, arguments)?.into(),
        "join" => {
            let (items,): (&Value,) = from_args(arguments)?;
            if items.try_iter()?.any(|item| item.as_str().is_none()) {
                return Err(wrong("str.join takes strings only"));
            }
            return Ok(None);
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn strip(text: &str, method: &str, arguments: &[Value]) -> Result<String, Error> {
    let (characters,): (Option<&str>,) = from_args(arguments)?;
    let strips = |char: char| characters.map_or_else(|| is_space(char), |characters| characters.contains(char));
    let text = if method == "rstrip" { text } else { text.trim_start_matches(strips) };
    Ok(if method == "lstrip" { text } else { text.trim_end_matches(strips) }.to_owned())
}

/// `split(sep, maxsplit)` and `rsplit`; without a separator, runs of white space are one.
fn split(text: &str, from_right: bool, arguments: &[Value]) -> Result<Value, Error> {
    let (separator, limit, options): (Option<Value>, Option<i64>, Kwargs) = from_args(arguments)?;
    let separator = separator.map_or_else(|| options.get::<Option<Value>>("sep"), |found| Ok(Some(found)))?;
    let limit = limit.map_or_else(|| options.get::<Option<i64>>("maxsplit"), |limit| Ok(Some(limit)))?;
    options.assert_all_used()?;
    let parts = limit.and_then(|limit| usize::try_from(limit).ok()).map_or(usize::MAX, |limit| limit.saturating_add(1));
    let Some(separator) = separator.filter(|separator| !separator.is_none()) else {
        return Ok(words(text, from_right, parts));
    };
    let separator = separator.as_str().ok_or_else(|| wrong("a separator is a string"))?;
    if separator.is_empty() {
        return Err(wrong("the separator is empty"));
    }
    if from_right {
        let mut found: Vec<&str> = text.rsplitn(parts, separator).collect();
        found.reverse();
        return Ok(found.into_iter().map(Value::from).collect());
    }
    Ok(text.splitn(parts, separator).map(Value::from).collect())
}

fn words(text: &str, from_right: bool, parts: usize) -> Value {
    let mut found = Vec::new();
    let trim = |text: &'_ str| -> usize {
        if from_right {
            text.trim_end_matches(is_space).len()
        } else {
            text.len() - text.trim_start_matches(is_space).len()
        }
    };
    let mut rest = text;
    loop {
        let at = trim(rest);
        rest = if from_right { &rest[..at] } else { &rest[at..] };
        if rest.is_empty() {
            break;
        }
        let end = if from_right {
            rest.char_indices().rfind(|(_, char)| is_space(*char)).map(|(at, char)| at + char.len_utf8())
        } else {
            rest.find(is_space)
        };
        match end.filter(|_| found.len() + 1 < parts) {
            Some(end) if from_right => {
                found.push(&rest[end..]);
                rest = &rest[..end];
            }
            Some(end) => {
                found.push(&rest[..end]);
                rest = &rest[end..];
            }
            None => {
                found.push(rest);
                break;
            }
        }
    }
    if from_right {
        found.reverse();
    }
    found.into_iter().map(Value::from).collect()
}

/// The lines of a text as `str.splitlines` cuts them, with their ends or without.
pub(super) fn lines(text: &str, keep_ends: bool) -> impl Iterator<Item = &str> {
    let ends = |char: char| {
        matches!(char, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(ends).unwrap_or(rest.len());
        let after = match rest[end..].chars().next() {
            Some('\r') if rest[end..].starts_with("\r\n") => end + 2,
            Some(char) => end + char.len_utf8(),
            None => end,
        };
        let line = &rest[..if keep_ends { after } else { end }];
        rest = &rest[after..];
        Some(line)
    })
}

fn partition(text: &str, from_right: bool, arguments: &[Value]) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(arguments)?;
    if separator.is_empty() {
        return Err(wrong("the separator is empty"));
    }
    let found = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match found {
        Some((before, after)) => [before, separator, after],
        None if from_right => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

/// Methods that look for a string within a range of characters.
fn search(text: &str, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    let (wanted, range): (&Value, Rest<Option<i64>>) = from_args(arguments)?;
    let range = (range.first().copied().flatten(), range.get(1).copied().flatten());
    if range == (None, None) && !matches!(method, "index" | "rindex") {
        return Ok(None);
    }
    let count = text.chars().count() as i64;
    let place = |at: i64| (if at < 0 { at + count } else { at }).clamp(0, count) as usize;
    let (start, end) = (place(range.0.unwrap_or(0)), place(range.1.unwrap_or(count)));
    let byte = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    let part = &text[byte(start)..byte(end.max(start))];
    let wanted = wanted.as_str().ok_or_else(|| wrong("what is looked for is a string"))?;
    let at = match method {
        "startswith" => return Ok(Some(part.starts_with(wanted).into())),
        "endswith" => return Ok(Some(part.ends_with(wanted).into())),
        "count" => return Ok(Some(part.matches(wanted).count().into())),
        "find" | "index" => part.find(wanted),
        _ => part.rfind(wanted),
    };
    match at {
        Some(at) => Ok(Some(Value::from(start + part[..at].chars().count()))),
        None if method.ends_with("find") => Ok(Some(Value::from(-1))),
        None => Err(wrong("the string is not found")),
    }
}

pub(super) fn pad(state: &State, text: &str, method: &str, arguments: &[Value]) -> Result<String, Error> {
    let (width, char): (usize, Option<char>) = from_args(arguments)?;
    let char = char.unwrap_or(' ');
    let missing = width.saturating_sub(text.chars().count());
    state.consume_fuel(missing as u64)?;
    let fill = |count: usize, char: char| std::iter::repeat_n(char, count).collect::<String>();
    Ok(match method {
        "ljust" => text.to_owned() + &fill(missing, char),
        "rjust" => fill(missing, char) + text,
        "zfill" => {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
            format!("{sign}{}{digits}", fill(missing, '0'))
        }
        // As CPython rounds: the odd one goes left where the width is odd.
        _ => {
            let left = missing / 2 + (missing & width & 1);
            format!("{}{text}{}", fill(left, char), fill(missing - left, char))
        }
    })
}

/// Each letter after something else is a capital, the others are small.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_letter = false;
    for char in text.chars() {
        if after_letter {
            out.extend(char.to_lowercase());
        } else {
            out.extend(char.to_uppercase());
        }
        after_letter = char.is_alphabetic();
    }
    out
}

fn swapcase(text: &str) -> String {
    let swapped = text.chars().flat_map(|char| -> Vec<char> {
        if char.is_uppercase() { char.to_lowercase().collect() } else { char.to_uppercase().collect() }
    });
    swapped.collect()
}
