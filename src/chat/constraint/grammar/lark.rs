//! Formats and schemas as text in llguidance's dialect of Lark.

use serde_json::{Value, json};

use super::{
    ebnf::{self, literal},
    wrong,
};
use crate::{
    chat::{Error, Format},
    schema::{self, Problem},
};

/// The grammar of one of these texts. One terminal, so that one which begins another is a choice of its own.
pub(super) fn one_of(choices: &[String]) -> Result<String, Error> {
    if choices.is_empty() {
        return Err(wrong("there are no choices; give at least one".to_owned()));
    }
    let choices: Vec<String> = choices.iter().map(|choice| literal(choice)).collect();
    Ok(format!("start: CHOICE\nCHOICE: {}", choices.join(" | ")))
}

/// A format as an expression of Lark, to stand in a larger grammar.
///
/// # Errors
/// Text, which is no grammar, or one that is wrong.
pub(in crate::chat::constraint) fn as_lark(format: &Format) -> Result<String, Error> {
    Ok(match format {
        Format::Text => return Err(Error::Internal("text is no grammar; this is a bug".to_owned())),
        Format::JsonObject => prepared(&json!({"type": "object"}))?,
        Format::JsonSchema(schema) => prepared(schema)?,
        Format::Regex(regex) => format!("%lark {{\nstart: /{}/\n}}", between_slashes(regex)),
        Format::Lark(lark) => {
            let lark = with_prepared_schemas(lark).map_err(|problem| wrong(problem.to_string()))?;
            format!("%lark {{\n{lark}\n}}")
        }
        Format::Ebnf(text) => {
            let lark = ebnf::to_lark(text).map_err(|message| wrong(format!("the grammar is wrong: {message}")))?;
            format!("%lark {{\n{lark}\n}}")
        }
        Format::Choice(choices) => format!("%lark {{\n{}\n}}", one_of(choices)?),
    })
}

fn prepared(schema: &Value) -> Result<String, Error> {
    let prepared = schema::prepare(schema).map_err(|problem| wrong(problem.to_string()))?;
    Ok(format!("%json {prepared}"))
}

/// A regular expression as Lark writes it between slashes.
fn between_slashes(regex: &str) -> String {
    let (mut out, mut escaped) = (String::new(), false);
    for char in regex.chars() {
        match char {
            '\n' => out.push_str(if escaped { "n" } else { "\\n" }),
            '/' if !escaped => out.push_str("\\/"),
            char => out.push(char),
        }
        escaped = char == '\\' && !escaped;
    }
    out
}

/// The text with each `%json { … }` prepared. Strings, regular expressions and comments are passed over.
pub(super) fn with_prepared_schemas(lark: &str) -> Result<String, Problem> {
    let (mut out, mut rest) = (String::with_capacity(lark.len()), lark);
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => 1 + end_of_quoted(&rest[1..], '"'),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '/' => 1 + end_of_quoted(&rest[1..], '/'),
            '%' if rest.starts_with("%json") => {
                let json = &rest["%json".len()..];
                let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
                if let Some(Ok(schema)) = values.next() {
                    out.push_str(&format!("%json {}", schema::prepare(&schema)?));
                    rest = &json[values.byte_offset()..];
                    continue;
                }
                1
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Ok(out)
}

/// Where what is quoted ends, its closing quote included.
fn end_of_quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == quote => return at + char.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
