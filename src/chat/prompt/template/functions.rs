//! The functions, filters and tests that chat templates have from transformers and jinja2, where minijinja has none or
//! others.

use chrono::NaiveDateTime;
use minijinja::value::{Kwargs, Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::{counters, percent, text_filters, time};
use crate::chat::python::Dumps;
use crate::chat::python::{is_space, text_of};

/// What time it is.
pub(super) type Clock = fn() -> NaiveDateTime;

/// What a template says by `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub String);

pub(super) fn add_to(environment: &mut Environment<'static>, clock: Clock) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", move |format: &str| time::strftime(clock(), format));
    environment.add_filter("tojson", tojson);
    environment.add_function("cycler", counters::cycler);
    environment.add_function("joiner", counters::joiner);
    environment.add_filter(TEXT, string);
    environment.add_filter("trim", trim);
    environment.add_filter("indent", indent);
    environment.add_filter("join", join);
    environment
        .add_filter("list", |state: &State, value: &Value| minijinja::filters::list(state, iterated(value)?.clone()));
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_filter("forceescape", escape);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("wordcount", |text: &str| text.split(is_space).filter(|word| !word.is_empty()).count());
    environment.add_filter("map", |state: &mut State, value: Value, arguments: Rest<_>| {
        minijinja::filters::map(state, value, arguments).map(generator)
    });
    environment.add_filter("format", format);
    environment.add_filter(PERCENT, percent::operator);
    environment.add_filter(ITERATED, |value: &Value| iterated(value).cloned());
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_test("sequence", is_sequence);
    environment.add_test("callable", is_callable);
    text_filters::add_to(environment);
}

/// The filter that for-loops get by [`syntax`](super::syntax).
pub(super) const ITERATED: &str = "iterated";

/// The filters that operators become by [`operators`](super::operators).
pub(super) const PERCENT: &str = "percent";
pub(super) const TEXT: &str = "string";

pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

fn raise_exception(state: &State, message: &Value) -> Result<Value, Error> {
    let message = text_of(state, message)?.into_owned();
    Err(wrong(message.clone()).with_source(Raised(message)))
}

fn string(state: &State, value: Value) -> Result<Value, Error> {
    match value.as_str() {
        Some(_) => Ok(value),
        None => text_of(state, &value).map(|text| Value::from(text.as_ref())),
    }
}

/// As the operator `%`, with the values as arguments.
fn format(state: &State, format: &Value, values: Rest<Value>, names: Kwargs) -> Result<String, Error> {
    let format = text_of(state, format)?;
    let named: Vec<(String, Value)> =
        names.args().map(|name| Ok((name.to_owned(), names.get(name)?))).collect::<Result<_, Error>>()?;
    if named.is_empty() {
        return percent::formatted(state, &format, &Value::from(Tuple::from(values.0)));
    }
    percent::formatted(state, &format, &Value::from_pairs(named))
}

/// `json.dumps` with the defaults of Hugging Face's filter: non-ASCII text stays as it is.
fn tojson(state: &State, value: &Value, arguments: Rest<Value>, options: Kwargs) -> Result<String, Error> {
    let option = |index: usize, name: &str| match arguments.get(index) {
        Some(argument) => Ok(Some(argument.clone())),
        None => options.get::<Option<Value>>(name),
    };
    let is_set = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let indent = match option(1, "indent")?.filter(|indent| !indent.is_none()) {
        None => None,
        Some(indent) => match (indent.as_str(), indent.as_i64()) {
            (Some(text), _) => Some(text.to_owned()),
            // As Python takes it: a negative width is none.
            (None, Some(width)) => Some(" ".repeat(usize::try_from(width).unwrap_or(0).min(100))),
            (None, None) => return Err(wrong("tojson's indent is a number or a string")),
        },
    };
    let separators = match option(2, "separators")?.filter(|separators| !separators.is_none()) {
        None => None,
        Some(separators) => {
            let pair: Vec<Value> = separators.try_iter()?.collect();
            match pair.iter().map(Value::as_str).collect::<Option<Vec<&str>>>().as_deref() {
                Some([item, key]) => Some(((*item).to_owned(), (*key).to_owned())),
                _ => return Err(wrong("tojson's separators are a pair of strings")),
            }
        }
    };
    let ensure_ascii = is_set(option(0, "ensure_ascii")?);
    let sort_keys = is_set(option(3, "sort_keys")?);
    options.assert_all_used()?;
    Dumps { indent, separators, sort_keys, ensure_ascii }.write(state, value)
}

fn trim(state: &State, value: &Value, characters: Option<&str>) -> Result<String, Error> {
    let text = text_of(state, value)?;
    Ok(match characters {
        Some(characters) => text.trim_matches(|char| characters.contains(char)),
        None => text.trim_matches(is_space),
    }
    .to_owned())
}

/// With the entities that Python's markupsafe writes.
fn escape(state: &State, value: &Value) -> Result<String, Error> {
    let text = text_of(state, value)?.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    Ok(text.replace('\'', "&#39;").replace('"', "&#34;"))
}

/// jinja2's `indent(width, first, blank)`, line by line as `str.splitlines` sees them.
fn indent(state: &State, value: &Value, arguments: Rest<Value>, options: Kwargs) -> Result<String, Error> {
    let option = |index: usize, name: &str| match arguments.get(index) {
        Some(argument) => Ok(argument.clone()),
        None => options.get::<Option<Value>>(name).map(|value| value.unwrap_or(Value::UNDEFINED)),
    };
    let width = option(0, "width")?;
    let by = match (width.as_str(), width.as_i64()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(width)) => " ".repeat(usize::try_from(width).unwrap_or(0).min(1000)),
        (None, None) => "    ".to_owned(),
    };
    let (first, blank) = (option(1, "first")?.is_true(), option(2, "blank")?.is_true());
    options.assert_all_used()?;
    let text = text_of(state, value)? + "\n";
    let mut out = String::with_capacity(text.len() * 2);
    for (index, line) in super::methods::lines(&text, false).enumerate() {
        state.consume_fuel(1 + by.len() as u64 / 64)?;
        out.push_str(if index > 0 { "\n" } else { "" });
        if if index == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&by);
        }
        out.push_str(line);
    }
    Ok(out)
}

fn join(state: &State, value: &Value, separator: Option<&Value>, options: Kwargs) -> Result<String, Error> {
    let separator = separator.map_or(Ok("".into()), |separator| text_of(state, separator))?;
    let attribute = options.get::<Option<&str>>("attribute")?;
    options.assert_all_used()?;
    let mut out = String::new();
    for (index, item) in iterated(value)?.try_iter()?.enumerate() {
        let item = attribute.map_or(Ok(item.clone()), |name| item.get_attr(name))?;
        out.push_str(if index > 0 { &separator } else { "" });
        out.push_str(&text_of(state, &item)?);
        state.consume_fuel(1 + separator.len() as u64 / 64)?;
    }
    Ok(out)
}

fn default(value: &Value, other: Option<Value>, lax: Option<bool>, options: Kwargs) -> Result<Value, Error> {
    let named = |name| options.get::<Option<Value>>(name);
    let other = other.map_or_else(|| named("default_value"), |other| Ok(Some(other)))?;
    let lax = lax.map_or_else(|| named("boolean").map(|lax| lax.is_some_and(|lax| lax.is_true())), Ok)?;
    options.assert_all_used()?;
    let missing = value.is_undefined() || lax && !value.is_true();
    Ok(if missing { other.unwrap_or_else(|| Value::from("")) } else { value.clone() })
}

/// `int(value)`, and the default (0) where there is no number.
fn int(value: &Value, default: Option<Value>, base: Option<u32>, options: Kwargs) -> Result<Value, Error> {
    let default = default.map_or_else(|| options.get::<Option<Value>>("default"), |default| Ok(Some(default)))?;
    let base = base.map_or_else(|| options.get::<Option<u32>>("base"), |base| Ok(Some(base)))?.unwrap_or(10);
    options.assert_all_used()?;
    let number = match value.as_str() {
        Some(text) => int_of_text(text, base),
        None if value.is_integer() => return Ok(value.clone()),
        None if value.kind() == ValueKind::Bool => Some(i128::from(value.is_true())),
        None => f64::try_from(value.clone()).ok().filter(|float| float.is_finite()).map(|float| float as i128),
    };
    Ok(number.map(Value::from).or(default).unwrap_or_else(|| Value::from(0)))
}

fn int_of_text(text: &str, base: u32) -> Option<i128> {
    let digits = text.trim_matches(is_space).replace('_', "");
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let digits = digits.strip_prefix(prefix).unwrap_or(&digits);
    let whole = (2..=36).contains(&base).then(|| i128::from_str_radix(digits, base).ok()).flatten();
    // jinja2 takes "3.9" for 3.
    whole.or_else(|| digits.parse::<f64>().ok().filter(|float| float.is_finite()).map(|float| float as i128))
}

fn float(value: &Value, default: Option<f64>) -> f64 {
    let number = match value.as_str() {
        Some(text) => text.trim_matches(is_space).parse().ok(),
        None if value.kind() == ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        None => f64::try_from(value.clone()).ok(),
    };
    number.or(default).unwrap_or(0.0)
}

/// What a for-loop may run over: in Python none is no such thing, in minijinja it is.
fn iterated(value: &Value) -> Result<&Value, Error> {
    if value.is_none() { Err(wrong("None cannot be iterated over")) } else { Ok(value) }
}

/// jinja2's filters give generators, of which no length can be had.
fn generator(items: Vec<Value>) -> Value {
    Value::make_one_shot_iterator(items.into_iter())
}

/// What has a length and items: strings and dicts as well as lists.
fn is_sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => value.len().is_some(),
        _ => false,
    }
}

/// Functions and macros.
fn is_callable(value: &Value) -> bool {
    value.kind() == ValueKind::Plain
}
