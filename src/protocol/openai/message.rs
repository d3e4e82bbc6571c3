//! Messages of a conversation: what is said, in one piece or in parts, reasoning, and calls of tools.

use serde_json::{Map, Value};

use super::fields::{Fields, expected};
use crate::{
    chat::{Media, Message, Part, Role, ToolCall, ToolResult},
    protocol::Refusal,
};

const KNOWN: &str = "a message has role, content, name, reasoning_content, tool_calls and tool_call_id";
const CONTENT: &str = "a string or a list of parts";
const PARTS: &str = "\"text\", \"image_url\", \"input_audio\" or \"file\"";

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
    let said = match fields.take("content") {
        Some(value) => parts(&fields.path("content"), value)?,
        // What an assistant says when it only calls tools, and how answers without a word come back.
        None if role == Role::Assistant => Vec::new(),
        None => return Err(Refusal::field(fields.path("content"), format!("missing; expected {CONTENT}"))),
    };
    let name = fields.string("name")?;
    let mut content: Vec<Part> = reasoning(&mut fields, role)?.map(Part::Reasoning).into_iter().collect();
    match result_of(&mut fields, role)? {
        Some(call) => content.push(Part::ToolResult(ToolResult { call, content: said })),
        None => content.extend(said),
    }
    let calls = tool_calls(&mut fields)?;
    let calls = only(role == Role::Assistant, calls, &fields.path("tool_calls"), "calls tools")?;
    content.extend(calls.into_iter().flatten().map(Part::ToolCall));
    let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty).then_some(());
    fields.read("annotations", "an empty list or none, because only text is taken back", empty)?;
    refusal(&mut fields)?;
    fields.finish(KNOWN)?;
    Ok(Message { role, name, content })
}

/// What the assistant thought, by either of the names that clients send it back by.
fn reasoning(fields: &mut Fields, role: Role) -> Result<Option<String>, Refusal> {
    let mut found = None;
    for name in ["reasoning_content", "reasoning"] {
        let text = fields.string(name)?.filter(|text| !text.is_empty());
        let text = only(role == Role::Assistant, text, &fields.path(name), "thinks")?;
        found = found.or(text);
    }
    Ok(found)
}

/// The id of the call that a tool's message answers, if the client told one; `None` for other messages.
fn result_of(fields: &mut Fields, role: Role) -> Result<Option<Option<String>>, Refusal> {
    let id = fields.string("tool_call_id")?;
    match role {
        Role::Tool => Ok(Some(id)),
        _ if id.is_some() => {
            let problem = "only a message of role tool answers a call; leave it out";
            Err(Refusal::field(fields.path("tool_call_id"), problem))
        }
        _ => Ok(None),
    }
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

/// What a message says: a text, or parts of several kinds.
fn parts(path: &str, content: Value) -> Result<Vec<Part>, Refusal> {
    match content {
        Value::String(text) => Ok(vec![Part::Text(text)]),
        Value::Array(parts) => {
            let numbered = parts.into_iter().enumerate();
            numbered.map(|(index, value)| part(&format!("{path}[{index}]"), value)).collect()
        }
        other => Err(expected(path, CONTENT, &other)),
    }
}

fn part(path: &str, value: Value) -> Result<Part, Refusal> {
    let mut fields = Fields::of(path, value)?;
    let kind = fields.string("type")?;
    let part = match kind.as_deref() {
        Some("text") => Part::Text(needed(&mut fields, "text")?),
        Some("image_url") => Part::Picture(picture(&mut fields)?),
        Some("input_audio") => Part::Sound(sound(&mut fields)?),
        Some("file") => Part::Document(document(&mut fields)?),
        Some(other) => return Err(Refusal::field(fields.path("type"), format!("expected {PARTS}, got {other:?}"))),
        None => return Err(Refusal::field(fields.path("type"), format!("missing; expected {PARTS}"))),
    };
    fields.finish("a part has type and what belongs to it")?;
    Ok(part)
}

/// `{"image_url": {"url": …, "detail": …}}`
fn picture(fields: &mut Fields) -> Result<Media, Refusal> {
    let mut inner = object(fields, "image_url")?;
    let url = needed(&mut inner, "url")?;
    inner.string("detail")?;
    inner.finish("a picture has url and detail")?;
    Ok(Media::Url(url))
}

/// `{"input_audio": {"data": …, "format": …}}`
fn sound(fields: &mut Fields) -> Result<Media, Refusal> {
    let mut inner = object(fields, "input_audio")?;
    let data = needed(&mut inner, "data")?;
    let kind = needed(&mut inner, "format")?;
    inner.finish("a sound has data and format")?;
    Ok(Media::Base64 { kind, data })
}

/// `{"file": {"file_data": …, "filename": …}}`
fn document(fields: &mut Fields) -> Result<Media, Refusal> {
    let mut inner = object(fields, "file")?;
    if inner.string("file_id")?.is_some() {
        let problem = "no files are stored here; send file_data instead";
        return Err(Refusal::field(inner.path("file_id"), problem));
    }
    let data = needed(&mut inner, "file_data")?;
    let kind = inner.string("filename")?.unwrap_or_default();
    inner.finish("a file has file_data and filename")?;
    Ok(Media::Base64 { kind, data })
}

/// An object that must be there.
fn object(fields: &mut Fields, name: &str) -> Result<Fields, Refusal> {
    let path = fields.path(name);
    let value = fields.take(name).ok_or_else(|| Refusal::field(&path, "missing; expected an object"))?;
    Fields::of(&path, value)
}

/// A string that must be there.
fn needed(fields: &mut Fields, name: &str) -> Result<String, Refusal> {
    let text = fields.string(name)?;
    text.ok_or_else(|| Refusal::field(fields.path(name), "missing; expected a string"))
}
