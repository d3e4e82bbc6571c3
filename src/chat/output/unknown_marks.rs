//! Marks in a chat template that look as if they set off calls or thoughts, and that a dialect does not read: they may
//! show in answers.

use serde_json::json;

use super::tools;
use crate::chat::{
    ToolCall,
    dialect::{Dialect, ToolFormat},
};

/// Parts of marks that set off calls and thoughts.
const TELLING: &[&str] =
    &["tool_call", "toolcall", "function_call", "invoke", "think", "thought", "reasoning", "action"];

/// Parts of marks that stand in prompts and not in answers.
const PROMPT: &[&str] = &["response", "result", "output", "available", "list", "/no_think", "tool_call_id"];

/// Bytes of a mark.
const MARK: usize = 48;

/// For the log: what is odd about a template in this dialect.
pub fn warnings(dialect: &Dialect, template: &str) -> Vec<String> {
    let name = dialect.name;
    let warn = |mark: String| {
        format!("the chat template has the mark {mark}, which the dialect {name} does not know; it may show in answers")
    };
    unknown_marks(dialect, template).into_iter().map(warn).collect()
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
    let written = |format: &&'static ToolFormat| {
        let envelope = &format.envelope;
        let call = tools::render(format, &call, 0);
        format!("{}{}{call}{}", format.opens.concat(), envelope.open, envelope.close)
    };
    let mut text: String = dialect.tools.iter().map(written).collect();
    if let Some(tags) = &dialect.reasoning {
        text.extend(tags.open.iter().chain(tags.close).copied());
    }
    text
}
