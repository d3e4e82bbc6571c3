//! Messages of a conversation: text, whole or in parts, thoughts, and calls of tools.

use serde_json::{Map, Value};

use super::fields::{Fields, expected};
use crate::{
    chat::{Message, Role, ToolCall},
    protocol::Refusal,
};

const KNOWN: &str = "a message has role, content, name, reasoning_content, tool_calls and tool_call_id";
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
    let mut message = Message { name: fields.string("name")?, ..Message::new(role, content) };
    for thought in ["reasoning_content", "reasoning"] {
        let said = fields.string(thought)?.filter(|text| !text.is_empty());
        message.reasoning = message.reasoning.or(only(role == Role::Assistant, said, &fields.path(thought), "thinks")?);
    }
    let calls = tool_calls(&mut fields)?;
    message.tool_calls =
        only(role == Role::Assistant, calls, &fields.path("tool_calls"), "calls tools")?.unwrap_or_default();
    let id = fields.string("tool_call_id")?;
    message.tool_call_id = match role {
        Role::Tool => id,
        _ if id.is_some() => {
            let problem = "only a message of role tool answers a call; leave it out";
            return Err(Refusal::field(fields.path("tool_call_id"), problem));
        }
        _ => None,
    };
    let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty).then_some(());
    fields.read("annotations", "an empty list or none, because only text is taken back", empty)?;
    refusal(&mut fields)?;
    fields.finish(KNOWN)?;
    Ok(message)
}

/// A field that only an assistant's message may have.
fn only<T>(assistant: bool, value: Option<T>, path: &str, does: &str) -> Result<Option<T>, Refusal> {
    match value {
        Some(_) if !assistant => {
            Err(Refusal::field(path, format!("only a message of role assistant {does}; leave it out")))
        }
        value => Ok(value),
    }
}

/// What an answer here has as its refusal, so that it can be sent back as it came.
fn refusal(fields: &mut Fields) -> Result<(), Refusal> {
    let problem = "null or none: mettle's models refuse in their text; put it into content";
    fields.read("refusal", problem, |_| None::<()>)?;
    Ok(())
}

fn tool_calls(fields: &mut Fields) -> Result<Option<Vec<ToolCall>>, Refusal> {
    let path = fields.path("tool_calls");
    match fields.take("tool_calls") {
        None => Ok(None),
        Some(Value::Array(calls)) if calls.is_empty() => Ok(None),
        Some(Value::Array(calls)) => {
            let numbered = calls.into_iter().enumerate();
            numbered
                .map(|(index, call)| tool_call(&format!("{path}[{index}]"), call))
                .collect::<Result<_, _>>()
                .map(Some)
        }
        Some(other) => Err(expected(&path, "a list of calls", &other)),
    }
}

fn tool_call(path: &str, value: Value) -> Result<ToolCall, Refusal> {
    let mut fields = Fields::of(path, value)?;
    fields.read("type", "\"function\"", |kind| (kind == "function").then_some(()))?;
    // Where an answer is put together from a stream, its calls keep their index.
    fields.read("index", "a whole number", |index| index.as_u64())?;
    let id = fields.string("id")?.unwrap_or_default();
    let inner = fields.path("function");
    let function =
        fields.take("function").ok_or_else(|| Refusal::field(&inner, "missing; expected name and arguments"))?;
    fields.finish("a call has id, type and function")?;
    let mut function = Fields::of(&inner, function)?;
    let name = function.string("name")?.ok_or_else(|| Refusal::field(function.path("name"), "missing"))?;
    let path = function.path("arguments");
    let arguments = match function.take("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
        Some(Value::String(text)) => serde_json::from_str(&text).map_err(|_| {
            let problem = "expected the JSON text of an object; a call whose arguments were cut off \
                (finish_reason \"length\") is no call: leave it out";
            Refusal::field(&path, problem)
        })?,
        Some(other) => return Err(expected(&path, "the JSON text of an object", &other)),
    };
    function.finish("a called function has name and arguments")?;
    Ok(ToolCall { id, name, arguments })
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
