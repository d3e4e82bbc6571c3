//! What was called goes into the conversation's past as its format writes it: read again, it is the same call.

use serde_json::{Map, Value};

use crate::{
    answers::{Call, Case, Part, TOOLS, calls},
    chat::{ToolCall, render_turn},
};

impl Case {
    /// For dialects of one format, of those that models are made to write. Where marks are special tokens, an argument
    /// may hold what reads like one, and cannot be written as text.
    pub fn check_written(&self, parts: &[Part]) {
        if self.dialect.name == "auto" || self.has_special_tokens() {
            return;
        }
        let format = self.dialect.tools[0];
        for call in calls(parts).filter(|call| call.ended) {
            // A number that no double holds has no value.
            let Some(arguments) =
                read_arguments(call).filter(|arguments| can_be_written(&Value::Object(arguments.clone())))
            else {
                continue;
            };
            let written = ToolCall { id: call.id.clone(), name: call.name.clone(), arguments };
            let text = render_turn(format, std::slice::from_ref(&written));
            let again = self.read_text(&text);
            let read = calls(&again).next().map(|call| {
                let arguments = read_arguments(call).map(|read| bare(&written.name, without_found(read, &written)));
                (call.name.as_str(), arguments)
            });
            let expected = (written.name.as_str(), Some(bare(&written.name, written.arguments.clone())));
            assert_eq!((read, again.len()), (Some(expected), 1), "{self:?}: {text:?} became {again:?}");
        }
    }
}

fn read_arguments(call: &Call) -> Option<Map<String, Value>> {
    serde_json::from_str(&call.arguments).ok()
}

/// Without required arguments that the call lacks and that were found misplaced in others.
fn without_found(mut read: Map<String, Value>, written: &ToolCall) -> Map<String, Value> {
    let tool = TOOLS.iter().find(|tool| tool.name == written.name);
    let required = tool.and_then(|tool| tool.parameters["required"].as_array());
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    read.retain(|name, _| written.arguments.contains_key(name) || !required.contains(&name.as_str()));
    read
}

/// Whether every name and text in a value can be written in all formats.
fn can_be_written(value: &Value) -> bool {
    match value {
        Value::String(text) => !ends_values(text),
        Value::Array(items) => items.iter().all(can_be_written),
        Value::Object(members) => members.iter().all(|(name, value)| is_word(name) && can_be_written(value)),
        _ => true,
    }
}

/// Whether it has what ends a value in formats without escapes: a tag that follows on another, or one of Gemma's quotes.
fn ends_values(text: &str) -> bool {
    ["<|\"|>", "<escape>"].iter().any(|quote| text.contains(quote))
        || text.match_indices('>').any(|(at, _)| text[at + 1..].trim_start().starts_with('<'))
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// Without quotes around what reads like another value: where the schema says no type, tags do not tell them apart. What
/// may be a container there, broken ones mended, is only that.
fn bare(tool: &str, arguments: Map<String, Value>) -> Map<String, Value> {
    let tool = TOOLS.iter().find(|own| own.name == tool);
    let is_typed = |name: &str| tool.is_some_and(|tool| tool.parameters["properties"][name].get("type").is_some());
    let bare = |name: &str, value| match value {
        Value::Array(_) | Value::Object(_) if !is_typed(name) => Value::Null,
        Value::String(text) => match text.as_str() {
            json if json.trim_start().starts_with(['{', '[']) && !is_typed(name) => Value::Null,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::Null,
            json => serde_json::from_str(json).unwrap_or(Value::String(text)),
        },
        value => value,
    };
    arguments.into_iter().map(|(name, value)| (name.clone(), bare(&name, value))).collect()
}
