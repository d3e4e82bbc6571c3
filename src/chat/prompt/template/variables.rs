//! A request as the variables that transformers' `apply_chat_template` gives to a template.

use std::borrow::Cow;

use chrono::NaiveDateTime;
use minijinja::Value;
use minijinja::value::Serde;
use serde_json::{Map, Value as Json};

use super::{
    continued,
    definition::definition,
    fallback::{Fallback, completed},
    source::Source,
    thinking,
};
use crate::chat::{
    Message, Role, Tool, ToolCall,
    prompt::conversation::Conversation,
    python::{self, Dumps},
};

/// Whose words a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Assistant,
    Other,
}

/// What becomes of the texts of a request on their way into a template; `None` leaves one as it is.
pub(super) type Mark<'a> = &'a dyn Fn(Speaker, &str) -> Option<String>;

/// All variables but the special tokens; later ones of the same name win.
pub(super) fn variables(
    conversation: &Conversation<'_>,
    texts: &Texts<'_>,
    now: NaiveDateTime,
) -> Vec<(String, Value)> {
    let source = texts.source;
    let messages = thinking::flagged_messages(conversation, source);
    let last = messages.len().wrapping_sub(1);
    let messages: Vec<Value> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| texts.message(message, conversation.continue_final && index == last))
        .collect();
    let tools = match conversation.tools {
        [] => Value::from(()),
        tools => tools.iter().map(|tool| texts.tool(tool)).collect(),
    };
    let mut variables: Vec<(String, Value)> = vec![
        ("documents".to_owned(), Value::from(())),
        ("add_generation_prompt".to_owned(), Value::from(!conversation.continue_final)),
    ];
    variables.extend(thinking::variables(conversation.thinking, source).map(|(name, value)| (name.to_owned(), value)));
    if source.reads_functions() {
        let functions = conversation.tools.iter().map(|tool| Json::Object(definition(tool))).collect();
        let text = Dumps { indent: Some("    ".to_owned()), ..Dumps::default() }.json(&Json::Array(functions));
        variables.push(("functions".to_owned(), Value::from(texts.text(Speaker::Other, &text).as_ref())));
        // A day: with the time in it, no prompt would begin like the one before.
        variables.push(("datetime".to_owned(), Value::from(now.format("%Y-%m-%d").to_string())));
    }
    variables.extend(conversation.variables.iter().map(|(name, value)| (name.clone(), texts.json(value))));
    variables.push(("messages".to_owned(), Value::from(messages)));
    variables.push(("tools".to_owned(), tools));
    variables
}

/// How the texts of a request become those of a template.
pub(super) struct Texts<'a> {
    /// What the template reads.
    pub source: &'a Source,
    pub fallback: Fallback,
    pub mark: Mark<'a>,
}

impl Texts<'_> {
    fn message(&self, message: &Message, continued: bool) -> Value {
        let speaker = if message.role == Role::Assistant { Speaker::Assistant } else { Speaker::Other };
        let text = |text: &str| Value::from(self.text(speaker, text).as_ref());
        let mut fields = Vec::with_capacity(4);
        let reasoning = message.reasoning();
        fields.extend(reasoning.as_deref().map(|reasoning| ("thinking", text(reasoning))));
        fields.push(("role", Value::from(self.role(message.role))));
        let said = message.text();
        let mut content = self.text(speaker, &said);
        if continued {
            content.to_mut().push_str(continued::TAG);
        }
        fields.push(("content", Value::from(content.as_ref())));
        fields.extend(message.name.as_deref().map(|name| ("name", text(name))));
        if let Some(reasoning) = reasoning.as_deref() {
            fields.push(("reasoning_content", text(reasoning)));
            let others = ["reasoning", "thought"].into_iter().filter(|field| self.source.reads_field(field));
            fields.extend(others.map(|field| (field, text(reasoning))));
        }
        let calls: Vec<Value> = message.tool_calls().map(|call| self.tool_call(call)).collect();
        if !calls.is_empty() {
            fields.push(("tool_calls", Value::from(calls)));
        }
        fields.extend(message.answered_call().map(|id| ("tool_call_id", text(id))));
        Value::from_pairs(fields)
    }

    fn role(&self, role: Role) -> &'static str {
        match role {
            Role::System => "system",
            Role::Developer if self.source.mentions("developer") => "developer",
            Role::Developer => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    fn tool_call(&self, call: &ToolCall) -> Value {
        let text = |text: &str| Value::from(self.text(Speaker::Other, text).as_ref());
        let arguments = if self.fallback.text_arguments {
            text(&python::dumps(&Json::Object(call.arguments.clone())))
        } else {
            self.object(&call.arguments)
        };
        let function = [("name", text(&call.name)), ("arguments", arguments)];
        let function = Value::from_pairs(function);
        Value::from_pairs([("id", text(&call.id)), ("type", Value::from("function")), ("function", function)])
    }

    fn tool(&self, tool: &Tool) -> Value {
        let own = definition(tool);
        let function = if self.fallback.complete { self.object(&completed(&own)) } else { self.object(&own) };
        Value::from_pairs([("type", Value::from("function")), ("function", function)])
    }

    fn object(&self, map: &Map<String, Json>) -> Value {
        let entries = map.iter().map(|(key, value)| (self.text(Speaker::Other, key), self.json(value)));
        Value::from_pairs(entries.map(|(key, value)| (Value::from(key.as_ref()), value)))
    }

    fn json(&self, json: &Json) -> Value {
        match json {
            Json::String(text) => Value::from(self.text(Speaker::Other, text).as_ref()),
            Json::Array(items) => items.iter().map(|item| self.json(item)).collect(),
            Json::Object(map) => self.object(map),
            other => Value::from(Serde(other)),
        }
    }

    fn text<'t>(&self, speaker: Speaker, text: &'t str) -> Cow<'t, str> {
        (self.mark)(speaker, text).map_or(Cow::Borrowed(text), Cow::Owned)
    }
}
