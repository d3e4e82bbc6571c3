//! Messages of a conversation: what is said, in one piece or in parts, reasoning, and calls of tools.

use serde_json::{Map, Value};

use crate::{
    chat::{Media, Message, Part, Role, ToolCall, ToolResult},
    protocol::{Fields, Notes, Refusal, expected},
};

const CONTENT: &str = "a string or a list of parts";
const PARTS: &str = "\"text\", \"refusal\", \"image_url\", \"input_audio\" or \"file\"";

/// The messages of a request, at least one.
pub(super) fn from_wire(fields: &mut Fields) -> Result<Vec<Message>, Refusal> {
    let value = fields.take("messages");
    let notes = fields.notes();
    match value {
        None => Err(Refusal::field("messages", "missing; send a list of at least one message")),
        Some(Value::Array(messages)) if messages.is_empty() => {
            Err(Refusal::field("messages", "the list is empty; send at least one message"))
        }
        Some(Value::Array(messages)) => {
            let numbered = messages.into_iter().enumerate();
            numbered.map(|(index, message)| one(&format!("messages[{index}]"), message, notes)).collect()
        }
        Some(other) => Err(expected("messages", "a list of messages", &other)),
    }
}

fn one(path: &str, value: Value, notes: &Notes) -> Result<Message, Refusal> {
    let mut fields = Fields::of(path, value, notes)?;
    let what = "system, developer, user, assistant or tool";
    let role = fields.read("role", what, role)?;
    let role = role.ok_or_else(|| Refusal::field(fields.path("role"), format!("missing; expected {what}")))?;
    let said = match fields.take("content") {
        Some(value) => parts(&fields.path("content"), value, (role, notes))?,
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
    let said_until = content.len();
    let calls = tool_calls(&mut fields)?;
    let calls = only(role == Role::Assistant, calls, &fields.path("tool_calls"), "calls tools")?;
    content.extend(calls.into_iter().flatten().map(Part::ToolCall));
    let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty).then_some(());
    fields.read("annotations", "an empty list or none, because only text is taken back", empty)?;
    let refused = fields.string("refusal")?.filter(|text| !text.is_empty());
    let refused = only(role == Role::Assistant, refused, &fields.path("refusal"), "refuses")?;
    content.splice(said_until..said_until, refused.map(Part::Text));
    fields.finish()?;
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

fn tool_calls(fields: &mut Fields) -> Result<Option<Vec<ToolCall>>, Refusal> {
    let path = fields.path("tool_calls");
    match fields.take("tool_calls") {
        None => Ok(None),
        Some(Value::Array(calls)) if calls.is_empty() => Ok(None),
        Some(Value::Array(calls)) => {
            let numbered = calls.into_iter().enumerate();
            numbered
                .map(|(index, call)| tool_call(&format!("{path}[{index}]"), call, fields.notes()))
                .collect::<Result<_, _>>()
                .map(Some)
        }
        Some(other) => Err(expected(&path, "a list of calls", &other)),
    }
}

fn tool_call(path: &str, value: Value, notes: &Notes) -> Result<ToolCall, Refusal> {
    let mut fields = Fields::of(path, value, notes)?;
    fields.read("type", "\"function\"", |kind| (kind == "function").then_some(()))?;
    // Where an answer is put together from a stream, its calls keep their index.
    fields.read("index", "a whole number", |index| index.as_u64())?;
    let id = fields.string("id")?.unwrap_or_default();
    let function = fields.object("function")?;
    let mut function =
        function.ok_or_else(|| Refusal::field(fields.path("function"), "missing; expected name and arguments"))?;
    fields.finish()?;
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
    function.finish()?;
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
fn parts(path: &str, content: Value, (role, notes): (Role, &Notes)) -> Result<Vec<Part>, Refusal> {
    match content {
        Value::String(text) => Ok(vec![Part::Text(text)]),
        Value::Array(parts) => {
            let numbered = parts.into_iter().enumerate();
            numbered.map(|(index, value)| part(&format!("{path}[{index}]"), value, (role, notes))).collect()
        }
        other => Err(expected(path, CONTENT, &other)),
    }
}

fn part(path: &str, value: Value, (role, notes): (Role, &Notes)) -> Result<Part, Refusal> {
    let mut fields = Fields::of(path, value, notes)?;
    let kind = fields.string("type")?;
    let part = match kind.as_deref() {
        Some("text") => Part::Text(fields.needed("text")?),
        // Words like others, by which a model said no.
        Some("refusal") => {
            let text = Some(fields.needed("refusal")?);
            Part::Text(only(role == Role::Assistant, text, path, "refuses")?.unwrap_or_default())
        }
        Some("image_url") => Part::Picture(picture(&mut fields)?),
        Some("input_audio") => Part::Sound(sound(&mut fields)?),
        Some("file") => Part::Document(document(&mut fields)?),
        Some(other) => return Err(Refusal::field(fields.path("type"), format!("expected {PARTS}, got {other:?}"))),
        None => return Err(Refusal::field(fields.path("type"), format!("missing; expected {PARTS}"))),
    };
    fields.ignore("cache_control", "every prompt's beginning is remembered as it is");
    fields.finish()?;
    Ok(part)
}

/// `{"image_url": {"url": …, "detail": …}}`
fn picture(fields: &mut Fields) -> Result<Media, Refusal> {
    let mut inner = object(fields, "image_url")?;
    let url = inner.needed("url")?;
    inner.string("detail")?;
    inner.finish()?;
    Ok(Media::Url(url))
}

/// `{"input_audio": {"data": …, "format": …}}`
fn sound(fields: &mut Fields) -> Result<Media, Refusal> {
    let mut inner = object(fields, "input_audio")?;
    let data = inner.needed("data")?;
    let kind = inner.needed("format")?;
    inner.finish()?;
    Ok(Media::Base64 { kind, data })
}

/// `{"file": {"file_data": …, "filename": …}}`
fn document(fields: &mut Fields) -> Result<Media, Refusal> {
    let mut inner = object(fields, "file")?;
    if inner.string("file_id")?.is_some() {
        let problem = "no files are stored here; send file_data instead";
        return Err(Refusal::field(inner.path("file_id"), problem));
    }
    let data = inner.needed("file_data")?;
    let kind = inner.string("filename")?.unwrap_or_default();
    inner.finish()?;
    Ok(Media::Base64 { kind, data })
}

/// An object that must be there.
fn object(fields: &mut Fields, name: &'static str) -> Result<Fields, Refusal> {
    let inner = fields.object(name)?;
    inner.ok_or_else(|| Refusal::field(fields.path(name), "missing; expected an object"))
}
