//! Which dialect a model speaks: what its template shows, then its type, then whatever its marks say.

use serde_json::json;

use super::{DIALECTS, Dialect};
use crate::chat::{
    ToolCall,
    output::tools::{FORMATS, Format},
};

/// Parts of marks that set off calls and thoughts.
const TELLING: &[&str] =
    &["tool_call", "toolcall", "function_call", "invoke", "think", "thought", "reasoning", "action"];

/// Parts of marks that stand in prompts and not in answers.
const PROMPT: &[&str] = &["response", "result", "output", "available", "list", "/no_think", "tool_call_id"];

/// Bytes of a mark.
const MARK: usize = 48;

/// A dialect, and what is odd about it.
pub struct Choice {
    pub dialect: &'static Dialect,
    /// For the log: marks in the template that the dialect does not know.
    pub warnings: Vec<String>,
}

/// What a user says of the dialect, instead of what the model says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'a> {
    /// A dialect or a format of calls.
    pub tools: Option<&'a str>,
    /// A dialect whose thoughts are marked so, or `none`.
    pub reasoning: Option<&'a str>,
}

/// The dialect of a model of this type with this chat template.
///
/// # Errors
/// A name that nothing has.
pub fn choose(model_type: &str, template: &str, names: Names<'_>) -> Result<Choice, String> {
    let by_template = DIALECTS
        .iter()
        .find(|row| !row.template_marks.is_empty() && row.template_marks.iter().all(|mark| template.contains(mark)));
    let by_type = || DIALECTS.iter().find(|row| row.model_types.contains(&model_type));
    let auto = || by_name("auto").expect("a table without the dialect auto is a bug");
    let own = by_template.or_else(by_type).unwrap_or_else(auto);
    let dialect = overridden(own, names)?;
    let warnings = unknown_marks(dialect, template);
    let warn = |mark: String| {
        let name = dialect.name;
        format!("the chat template has the mark {mark}, which the dialect {name} does not know; it may show in answers")
    };
    Ok(Choice { dialect, warnings: warnings.into_iter().map(warn).collect() })
}

fn by_name(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|row| row.name == name)
}

fn overridden(own: &'static Dialect, names: Names<'_>) -> Result<&'static Dialect, String> {
    if names.tools.is_none() && names.reasoning.is_none() {
        return Ok(own);
    }
    let (calls, tools) = match names.tools {
        None => (own, own.tools),
        Some(name) => match (by_name(name), FORMATS.iter().position(|format| format.name == name)) {
            (Some(row), _) => (row, row.tools),
            (None, Some(at)) => (own, &FORMATS[at..=at]),
            (None, None) => {
                let known = DIALECTS.iter().map(|row| row.name).chain(FORMATS.iter().map(|format| format.name));
                return Err(unknown("tool format", name, known));
            }
        },
    };
    let reasoning = match names.reasoning {
        None => own.reasoning.clone(),
        Some("none") => None,
        Some(name) => match by_name(name) {
            Some(row) => row.reasoning.clone(),
            None => {
                let known = DIALECTS.iter().filter(|row| row.reasoning.is_some()).map(|row| row.name);
                return Err(unknown("kind of reasoning", name, known.chain(["none"])));
            }
        },
    };
    // Once a model: it lives as long as the model may be asked.
    Ok(Box::leak(Box::new(Dialect { tools, reasoning, ..*calls })))
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    format!("no {what} is called {name}; there are {}", known.join(", "))
}

/// Marks in a template that look as if they set off calls or thoughts, and that a dialect does not read.
fn unknown_marks(dialect: &Dialect, template: &str) -> Vec<String> {
    let known = known_marks(dialect);
    let mut unknown: Vec<String> = Vec::new();
    for (at, _) in template.match_indices(['<', '[']) {
        let rest = &template[at..];
        let close = if rest.starts_with('<') { '>' } else { ']' };
        let Some(end) = rest.find(|char: char| char == close || char.is_whitespace() || "'\"{}(".contains(char)) else {
            continue;
        };
        let mark = &rest[..end + 1];
        let name = mark.trim_matches(|char| "<>[]|/".contains(char));
        let lower = name.to_lowercase();
        let tells = mark.ends_with(close)
            && mark.len() <= MARK
            // What stands in brackets is an index of Jinja's, unless it is a name in capitals.
            && (close == '>' || name.chars().all(|char| char.is_ascii_uppercase() || char == '_'))
            && TELLING.iter().any(|part| lower.contains(part))
            && !PROMPT.iter().any(|part| lower.contains(part));
        if tells && !known.contains(name) && !unknown.iter().any(|own| own == mark) {
            unknown.push(mark.to_owned());
        }
    }
    unknown
}

/// A text in which all of a dialect's marks stand.
fn known_marks(dialect: &Dialect) -> String {
    let call = ToolCall {
        id: "abcdefghi".to_owned(),
        name: "f".to_owned(),
        arguments: [("x".to_owned(), json!("x"))].into_iter().collect(),
    };
    let written = |format: &&'static Format| {
        let envelope = &format.envelope;
        let call = (format.render)(&call, 0);
        format!("{}{}{call}{}", format.opens.concat(), envelope.open, envelope.close)
    };
    let mut text: String = dialect.tools.iter().map(written).collect();
    if let Some(tags) = &dialect.reasoning {
        text.extend(tags.open.iter().chain(tags.close).copied());
    }
    text
}

#[cfg(test)]
mod tests;
