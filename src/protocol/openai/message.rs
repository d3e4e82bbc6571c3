//! Messages of a conversation: text only, whole or in parts.

use serde_json::Value;

use super::fields::{Fields, expected};
use crate::{
    chat::{Message, Role},
    protocol::Refusal,
};

const KNOWN: &str = "a message has role, content and name";
const CONTENT: &str = "a string or a list of text parts";

/// The messages of a request, at least one.
pub(super) fn from_wire(value: Option<Value>) -> Result<Vec<Message>, Refusal> {
    match value {
        None => Err(Refusal::field("messages", "missing; send a list of at least one message")),
        Some(Value::Array(messages)) if messages.is_empty() => {
            Err(Refusal::field("messages", "the list is empty; send at least one message"))
        }
        Some(Value::Array(messages)) => {
            let numbered = messages.into_iter().enumerate();
            numbered.map(|(index, message)| one(&format!("messages[{index}]"), message)).collect()
        }
        Some(other) => Err(expected("messages", "a list of messages", &other)),
    }
}

fn one(path: &str, value: Value) -> Result<Message, Refusal> {
    let mut fields = Fields::of(path, value)?;
    let what = "system, developer, user, assistant or tool";
    let role = fields.read("role", what, role)?;
    let role = role.ok_or_else(|| Refusal::field(fields.path("role"), format!("missing; expected {what}")))?;
    let content = match fields.take("content") {
        Some(value) => text(&fields.path("content"), value)?,
        // What an assistant says when it only calls tools, and how answers without a word come back.
        None if role == Role::Assistant => String::new(),
        None => return Err(Refusal::field(fields.path("content"), format!("missing; expected {CONTENT}"))),
    };
    let name = fields.string("name")?;
    for list in ["tool_calls", "annotations"] {
        let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty).then_some(());
        fields.read(list, "an empty list or none, because only text is taken back", empty)?;
    }
    if fields.contains("tool_call_id") {
        let problem = "tool calls are not supported here; leave it out";
        return Err(Refusal::field(fields.path("tool_call_id"), problem));
    }
    fields.finish(KNOWN)?;
    Ok(Message { name, ..Message::new(role, content) })
}

fn role(value: &Value) -> Option<Role> {
    match value.as_str()? {
        "system" => Some(Role::System),
        "developer" => Some(Role::Developer),
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "tool" => Some(Role::Tool),
        _ => None,
    }
}

/// A content's text. Parts are joined as they are, with nothing added between them.
fn text(path: &str, content: Value) -> Result<String, Refusal> {
    match content {
        Value::String(text) => Ok(text),
        Value::Array(parts) => {
            let numbered = parts.into_iter().enumerate();
            numbered.map(|(index, value)| part(&format!("{path}[{index}]"), value)).collect()
        }
        other => Err(expected(path, CONTENT, &other)),
    }
}

fn part(path: &str, value: Value) -> Result<String, Refusal> {
    let mut fields = Fields::of(path, value)?;
    let kind = fields.string("type")?;
    match kind.as_deref() {
        Some("text") => {}
        Some(other) => {
            let problem = format!("this model takes text only, so parts are of type \"text\"; got {other:?}");
            return Err(Refusal::field(fields.path("type"), problem));
        }
        None => return Err(Refusal::field(fields.path("type"), "missing; this model takes parts of type \"text\"")),
    }
    let text = fields.string("text")?;
    let text = text.ok_or_else(|| Refusal::field(fields.path("text"), "missing; expected a string"))?;
    fields.finish("a text part has type and text")?;
    Ok(text)
}
