//! What an answer's text must be, in the several ways clients ask for it.

use serde_json::Value;

use crate::{
    chat::Format,
    protocol::{Fields, Notes, Refusal, expected},
};

const TYPES: &str = "\"text\", \"json_object\", \"json_schema\", \"regex\", \"lark\", \"ebnf\" or \"choice\"";
const STRUCTURED: &str = "known are json, json_object, regex, choice and grammar";

/// `response_format`, and what other servers call it: `structured_outputs`, `guided_json`, `guided_regex`,
/// `guided_choice`, `guided_grammar`, `grammar` and `json_schema`.
pub(super) fn from_wire(fields: &mut Fields) -> Result<Format, Refusal> {
    let mut found: Option<(String, Format)> = None;
    let mut add = |name: &str, format: Option<Format>| match (format, &found) {
        (None, _) => Ok(()),
        (Some(_), Some((before, _))) => {
            Err(Refusal::field(name, format!("{before} says already what the answer must be; send one of the two")))
        }
        (Some(format), None) => {
            found = Some((name.to_owned(), format));
            Ok(())
        }
    };
    add("response_format", fields.object("response_format")?.map(response_format).transpose()?)?;
    add("structured_outputs", fields.object("structured_outputs")?.map(structured).transpose()?)?;
    for (name, read) in [
        ("guided_json", schema as fn(&str, Value) -> Result<Format, Refusal>),
        ("json_schema", schema),
        ("guided_regex", regex),
        ("guided_choice", choice),
        ("guided_grammar", grammar),
        ("grammar", grammar),
    ] {
        add(name, fields.take(name).map(|value| read(name, value)).transpose()?)?;
    }
    if let Some((name, Format::JsonSchema(schema))) = &found {
        fields.notes().unread(name, schema);
    }
    Ok(found.map_or(Format::Text, |(_, format)| format))
}

fn response_format(mut fields: Fields) -> Result<Format, Refusal> {
    let kind = fields.string("type")?;
    let format = match kind.as_deref() {
        Some("text") => Format::Text,
        Some("json_object") => match fields.take("schema") {
            // As llama.cpp and others take it.
            Some(value) => schema("response_format.schema", value)?,
            None => Format::JsonObject,
        },
        Some("json_schema") => {
            let notes = fields.notes().clone();
            required(&mut fields, "json_schema", |path, value| named_schema(path, value, &notes))?
        }
        Some("regex") => required(&mut fields, "regex", regex)?,
        Some("lark") => required(&mut fields, "grammar", |path, value| Ok(Format::Lark(string(path, value)?)))?,
        Some("ebnf" | "gbnf") => {
            required(&mut fields, "grammar", |path, value| Ok(Format::Ebnf(string(path, value)?)))?
        }
        Some("grammar") => required(&mut fields, "grammar", grammar)?,
        Some("choice") => required(&mut fields, "choice", choice)?,
        Some(other) => return Err(Refusal::field("response_format.type", format!("expected {TYPES}, got {other:?}"))),
        None => return Err(Refusal::field("response_format.type", format!("missing; expected {TYPES}"))),
    };
    fields.finish()?;
    Ok(format)
}

/// A field that must be there, read by its path.
fn required(
    fields: &mut Fields,
    name: &'static str,
    read: impl FnOnce(&str, Value) -> Result<Format, Refusal>,
) -> Result<Format, Refusal> {
    let path = fields.path(name);
    let value = fields.take(name).ok_or_else(|| Refusal::field(&path, "missing"))?;
    read(&path, value)
}

/// OpenAI's wrapping of a schema: name, description, schema and strict.
fn named_schema(path: &str, value: Value, notes: &Notes) -> Result<Format, Refusal> {
    let mut fields = Fields::of(path, value, notes)?;
    // Every client has to send one, and nobody reads it.
    fields.string("name")?;
    fields.ignore("description", "the answer is held to the schema alone");
    // A schema is held to here whether it is strict or not.
    fields.bool("strict")?;
    let path = fields.path("schema");
    let value = fields.take("schema").ok_or_else(|| Refusal::field(&path, "missing; expected a JSON Schema"))?;
    fields.finish()?;
    schema(&path, value)
}

fn structured(mut fields: Fields) -> Result<Format, Refusal> {
    let mut found = None;
    for (name, read) in [
        ("json", schema as fn(&str, Value) -> Result<Format, Refusal>),
        ("regex", regex),
        ("choice", choice),
        ("grammar", grammar),
    ] {
        let path = fields.path(name);
        if let Some(value) = fields.take(name) {
            found = Some(read(&path, value)?);
            break;
        }
    }
    if found.is_none() && fields.bool("json_object")? == Some(true) {
        found = Some(Format::JsonObject);
    }
    fields.finish()?;
    found.ok_or_else(|| Refusal::field("structured_outputs", format!("it asks for nothing; {STRUCTURED}")))
}

/// A schema, as an object or as its JSON text.
fn schema(path: &str, value: Value) -> Result<Format, Refusal> {
    let value = match value {
        Value::String(text) => serde_json::from_str(&text)
            .map_err(|error| Refusal::field(path, format!("expected a JSON Schema, and this is no JSON: {error}")))?,
        other => other,
    };
    match value {
        Value::Object(_) | Value::Bool(true) => Ok(Format::JsonSchema(value)),
        other => Err(expected(path, "a JSON Schema, which is an object", &other)),
    }
}

fn regex(path: &str, value: Value) -> Result<Format, Refusal> {
    Ok(Format::Regex(string(path, value)?))
}

/// A grammar whose kind shows: EBNF defines rules by `::=`, Lark by a colon.
fn grammar(path: &str, value: Value) -> Result<Format, Refusal> {
    let text = string(path, value)?;
    Ok(if text.contains("::=") { Format::Ebnf(text) } else { Format::Lark(text) })
}

fn choice(path: &str, value: Value) -> Result<Format, Refusal> {
    let what = "a list of strings, at least one";
    let Value::Array(list) = &value else { return Err(expected(path, what, &value)) };
    let strings: Option<Vec<String>> = list.iter().map(|item| item.as_str().map(str::to_owned)).collect();
    strings.filter(|strings| !strings.is_empty()).map(Format::Choice).ok_or_else(|| expected(path, what, &value))
}

fn string(path: &str, value: Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text),
        other => Err(expected(path, "a string that is not empty", &other)),
    }
}
