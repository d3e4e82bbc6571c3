//! A call as a JSON object with a name and arguments, whatever stands around it and whatever it calls the two.

use serde_json::{Map, Value};

use super::{NotACall, Region, Rules};
use crate::chat::{Tool, ToolCall, output::json, python, schema::Shape};

/// What the name and the arguments are called.
const NAMES: &[&str] = &["name", "tool_name", "tool", "function_name"];
const ARGUMENTS: &[&str] = &["arguments", "parameters", "args", "input"];
/// What may stand before either.
const BEFORE: &[&str] = &["id", "tool_call_id", "call_id", "type", "index"];

/// Reads a list of calls, or calls one after the other, or one.
pub(super) async fn calls(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    if input.is_next("[").await {
        return list(region).await;
    }
    call(region).await?;
    loop {
        input.pin();
        input.skip_space().await;
        if input.eat(";").await || input.eat(",").await {
            input.skip_space().await;
        }
        if !input.is_next("{").await {
            input.rewind();
            return Ok(());
        }
        call(region).await?;
    }
}

/// Reads one object, from its brace on.
pub(super) async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    if !input.eat("{").await {
        return Err(NotACall);
    }
    let (mut name, mut arguments) = (None, None);
    let mut called = false;
    loop {
        input.skip_space().await;
        if input.eat("}").await {
            break;
        }
        let key = string(region).await?;
        input.skip_space().await;
        if !input.eat(":").await {
            return Err(NotACall);
        }
        match key.as_str() {
            key if NAMES.contains(&key) && name.is_none() => {
                name = Some(string(region).await?).filter(|name| region.may_call(name));
                if name.is_none() {
                    return Err(NotACall);
                }
            }
            // OpenAI's own form has both inside.
            "function" if name.is_none() => match nested(region).await? {
                Nested::Name(own) => name = Some(own),
                Nested::Call => called = true,
            },
            key if ARGUMENTS.contains(&key) && !called => match &name {
                Some(name) => {
                    region.call(name)?.object().await?;
                    called = true;
                }
                None => arguments = Some(value(region).await?),
            },
            // An object that begins with something else is no call, and may be long.
            key if name.is_none() && !called && !BEFORE.contains(&key) => return Err(NotACall),
            _ => drop(value(region).await?),
        }
        input.skip_space().await;
        if !input.eat(",").await && !input.is_next("}").await {
            return Err(NotACall);
        }
    }
    match (called, name) {
        (true, _) => {
            // What follows may be text, and the brace no part of it.
            input.pin();
            Ok(())
        }
        (false, Some(name)) => region.call(&name)?.all(arguments.as_deref().unwrap_or("null")),
        (false, None) => Err(NotACall),
    }
}

enum Nested {
    Name(String),
    Call,
}

/// `"function": "name"` or `"function": {"name": …, "arguments": …}`.
async fn nested(region: &Region) -> Result<Nested, NotACall> {
    region.input.skip_space().await;
    match region.input.is_next("{").await {
        true => Box::pin(call(region)).await.map(|()| Nested::Call),
        false => string(region).await.map(Nested::Name),
    }
}

async fn value(region: &Region) -> Result<String, NotACall> {
    let mut raw = String::new();
    json::copy(&region.input, &Shape::unknown(), &mut raw).await?;
    Ok(raw)
}

async fn string(region: &Region) -> Result<String, NotACall> {
    region.input.skip_space().await;
    if !matches!(region.input.peek().await, Some('"' | '\'')) {
        return Err(NotACall);
    }
    let raw = json::text(&region.input).await?;
    serde_json::from_str(&raw).map_err(|_| NotACall)
}

/// Reads a list of such objects, from its bracket on.
pub(super) async fn list(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    if !input.eat("[").await {
        return Err(NotACall);
    }
    loop {
        call(region).await?;
        input.skip_space().await;
        let more = input.eat(",").await;
        input.skip_space().await;
        match input.eat("]").await {
            true => return Ok(()),
            false if more => {}
            false => return Err(NotACall),
        }
    }
}

/// `{"name": "f", "arguments": {"x": 1}}`, as most families' templates write it.
pub(super) fn render(call: &ToolCall) -> String {
    render_as(call, "arguments")
}

/// [`render`] with another word for the arguments.
pub(super) fn render_as(call: &ToolCall, arguments: &str) -> String {
    format!("{{\"name\": {}, \"{arguments}\": {}}}", Value::from(call.name.as_str()), dumps(&call.arguments))
}

/// [`render`] with the call's id, which templates write of calls that were answered.
pub(super) fn render_with_id(call: &ToolCall, _: usize) -> String {
    let object = render(call);
    format!("{}, \"id\": {}}}", &object[..object.len() - 1], Value::from(call.id.as_str()))
}

/// What [`render_with_id`] writes; models may leave the id out.
pub(super) fn grammar_with_id(rules: &mut Rules, tool: &Tool) -> String {
    let object = open_grammar(rules, tool, "arguments");
    let id = rules.rule("/, \"id\": \"[a-zA-Z0-9_-]+\"/");
    format!("{object} {id}? {}", rules.literal("}"))
}

/// What [`render`] writes.
pub(super) fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    grammar_as(rules, tool, "arguments")
}

/// What [`render_as`] writes.
pub(super) fn grammar_as(rules: &mut Rules, tool: &Tool, arguments: &str) -> String {
    format!("{} {}", open_grammar(rules, tool, arguments), rules.literal("}"))
}

/// [`grammar_as`] without the brace that closes the object.
pub(super) fn open_grammar(rules: &mut Rules, tool: &Tool, arguments: &str) -> String {
    let head = rules.literal(&format!("{{\"name\": {}, \"{arguments}\": ", Value::from(tool.name.as_str())));
    format!("{head} {}", rules.json(&tool.parameters))
}

/// Arguments as `tojson` writes them.
pub(super) fn dumps(arguments: &Map<String, Value>) -> String {
    python::dumps(&Value::Object(arguments.clone()))
}
