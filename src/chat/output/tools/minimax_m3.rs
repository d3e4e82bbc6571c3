//! MiniMax M3: every tag behind a special token, and a tag for each member and item however deep.
//!
//! `]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">]<]minimax[>[<x>1]<]minimax[>[</x>]<]minimax[>[</invoke>\n…`

use std::{future::Future, pin::Pin};

use serde_json::{Map, Value};

use super::{
    End, Envelope, Format, NotACall, Parsing, Region, Rules, Spelling,
    values::{resolved, with_definitions},
};
use crate::chat::{Tool, ToolCall, output::input::Input, schema::Shape};

/// Bytes of a name.
const NAME: usize = 256;

/// Values within values.
const DEPTH: usize = 100;

pub static FORMAT: Format = Format {
    name: "minimax_m3",
    opens: &["]<]minimax[>[<tool_call>", "]<]minimax[>[<invoke"],
    bare: &[],
    parse,
    envelope: Envelope { open: "]<]minimax[>[<tool_call>\n", between: "\n", close: "\n]<]minimax[>[</tool_call>" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        if region.opened_by > 0 {
            call(&region).await?;
            input.skip_space().await;
            if !input.eat("]<]minimax[>[</tool_call>").await {
                input.rewind();
            }
            return Ok(());
        }
        loop {
            input.skip_space().await;
            if input.eat("]<]minimax[>[<invoke").await {
                call(&region).await?;
            } else if input.eat("]<]minimax[>[</tool_call>").await {
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
    })
}

/// From the name on.
async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    if !input.eat(" name=\"").await {
        return Err(NotACall);
    }
    let name = input.word(|char| char != '"' && char != '\n', NAME).await.ok_or(NotACall)?;
    if !input.eat("\">").await {
        return Err(NotACall);
    }
    let mut arguments = region.call(&name)?;
    loop {
        input.skip_space().await;
        if input.eat("]<]minimax[>[</invoke>").await {
            arguments.end();
            return Ok(());
        }
        if !input.eat("]<]minimax[>[<").await {
            return Err(NotACall);
        }
        let key = tag(input).await?;
        let shape = arguments.shape().member(&key);
        let types = shape.types();
        let end = format!("]<]minimax[>[</{key}>");
        if types.is_some_and(|types| !types.array && !types.object) {
            arguments.text(&key, End::at(&[&end])).await?;
        } else {
            let (value, closed) = value(input, &shape, &key, 0).await?;
            arguments.fitted(&key, value);
            if !closed {
                if !input.eat("invoke>").await {
                    return Err(NotACall);
                }
                arguments.end();
                return Ok(());
            }
        }
    }
}

/// A tag's name, and its bracket.
async fn tag(input: &Input) -> Result<String, NotACall> {
    let key = input.word(|char| !"<>/\n".contains(char), NAME).await.ok_or(NotACall)?;
    if input.eat(">").await { Ok(key) } else { Err(NotACall) }
}

type Reading<'a> = Pin<Box<dyn Future<Output = Result<(Value, bool), NotACall>> + Send + 'a>>;

/// What stands in the tag of this name, to its end: text, or more tags. An empty container is left open at times: then
/// what begins the end of the tag around it has been taken, and the second is false.
fn value<'a>(input: &'a Input, shape: &'a Shape, name: &'a str, depth: usize) -> Reading<'a> {
    Box::pin(async move {
        let end = format!("]<]minimax[>[</{name}>");
        let marks = ["]<]minimax[>[<", "]<]minimax[>[</", &end];
        let (mut text, mut parts) = (String::new(), Vec::new());
        loop {
            let found = input.until(&marks, |piece| text.push_str(piece)).await.ok_or(NotACall)?;
            if found == 2 {
                return Ok((together(shape, text, parts), true));
            }
            if found == 1 {
                let empty = text.trim().is_empty() && parts.is_empty();
                return if empty { Ok((together(shape, text, parts), false)) } else { Err(NotACall) };
            }
            if depth > DEPTH {
                return Err(NotACall);
            }
            let key = tag(input).await?;
            let part = if key == "item" && !wants_object(shape) { shape.item() } else { shape.member(&key) };
            let (value, closed) = value(input, &part, &key, depth + 1).await?;
            parts.push((key.clone(), value));
            if !closed {
                let own = input.eat(&format!("{name}>")).await;
                return if own { Ok((together(shape, text, parts), true)) } else { Err(NotACall) };
            }
        }
    })
}

fn wants_object(shape: &Shape) -> bool {
    shape.types().is_some_and(|types| types.object && !types.array)
}

/// Items make an array, other tags an object; nothing at all is what the schema wants.
fn together(shape: &Shape, text: String, parts: Vec<(String, Value)>) -> Value {
    let types = shape.types();
    if parts.is_empty() {
        return match types {
            Some(types) if text.trim().is_empty() && types.array && !types.string => Value::Array(Vec::new()),
            Some(types) if text.trim().is_empty() && types.object && !types.string => Value::Object(Map::new()),
            _ => shape.read(&text),
        };
    }
    let is_list = !wants_object(shape) && parts.iter().all(|(key, _)| key == "item");
    match is_list {
        true => Value::Array(parts.into_iter().map(|(_, value)| value).collect()),
        false => Value::Object(parts.into_iter().collect()),
    }
}

fn render(call: &ToolCall, _: usize) -> String {
    let members: String = call.arguments.iter().map(|(name, value)| element(name, value)).collect();
    format!("]<]minimax[>[<invoke name=\"{}\">{members}]<]minimax[>[</invoke>", call.name)
}

/// Members that are null are left out, as the template has it.
fn element(name: &str, value: &Value) -> String {
    let inner = match value {
        Value::Null if name != "item" => return String::new(),
        Value::Null => String::new(),
        Value::Object(members) => members.iter().map(|(name, value)| element(name, value)).collect(),
        Value::Array(items) => items.iter().map(|item| element("item", item)).collect(),
        other => Spelling::Json.text(other),
    };
    format!("]<]minimax[>[<{name}>{inner}]<]minimax[>[</{name}>")
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let open = rules.literal(&format!("]<]minimax[>[<invoke name=\"{}\">", tool.name));
    let node = rules.described(&tool.parameters);
    let members = members(rules, &node);
    format!("{open} {members} {}", rules.literal("]<]minimax[>[</invoke>"))
}

/// A tag for each property of an object's schema.
fn members(rules: &mut Rules, node: &Value) -> String {
    rules.keep_members(node);
    let shape = Shape::of(node.clone());
    let mut text = String::new();
    for (name, part) in node["properties"].as_object().into_iter().flatten() {
        let element = element_rule(rules, name, &with_definitions(part, node));
        text += &if shape.requires(name) { format!(" {element}") } else { format!(" {element}?") };
    }
    text
}

/// The tag of this name around a value of this schema.
fn element_rule(rules: &mut Rules, name: &str, schema: &Value) -> String {
    let make = |rules: &mut Rules| {
        let body = body(rules, name, schema);
        format!("{} {body}", rules.literal(&format!("]<]minimax[>[<{name}>")))
    };
    match schema.get("$ref") {
        Some(_) => rules.once(name, schema, make),
        None => {
            let element = make(rules);
            rules.rule(&element)
        }
    }
}

/// What stands in the tag of this name, and its end.
fn body(rules: &mut Rules, name: &str, schema: &Value) -> String {
    let node = resolved(schema);
    let close = rules.literal(&format!("]<]minimax[>[</{name}>"));
    match Shape::of(schema.clone()).types() {
        Some(types) if types.object && !types.string && node.get("properties").is_some() => {
            format!("{} {close}", members(rules, &node))
        }
        Some(types) if types.array && !types.string && !types.object => {
            rules.keep(&node);
            let item = with_definitions(node.get("items").unwrap_or(&Value::Bool(true)), &node);
            let item = element_rule(rules, "item", &item);
            let least = node["minItems"].as_u64().unwrap_or(0);
            let most = node["maxItems"].as_u64().map_or(String::new(), |most| most.to_string());
            format!("{item}{{{least},{most}}} {close}")
        }
        // What is a container by its type alone is read from JSON as well as from tags. Text ends at the first mark.
        _ => {
            let text = rules.argument(schema, Spelling::Json, "]<]minimax[>[");
            format!("{text} {}", rules.literal(&format!("</{name}>")))
        }
    }
}
