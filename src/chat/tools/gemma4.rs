//! Gemma 4: a notation of its own, with a special token for the quotes around strings.
//!
//! `<|tool_call>call:f{x:1,y:<|"|>text<|"|>}<tool_call|>`

use std::{future::Future, pin::Pin};

use serde_json::{Map, Value};

use super::{Arguments, End, Envelope, Format, NotACall, Notation, Parsing, Region, Rules};
use crate::chat::{Tool, ToolCall, input::Input, json, python, schema::Shape};

const QUOTE: &str = "<|\"|>";

/// Bytes of a name, and of a value that is no string.
const NAME: usize = 256;
const WORD: usize = 400;

/// Containers within containers.
const DEPTH: usize = 100;

pub static FORMAT: Format = Format {
    name: "gemma4",
    opens: &["<|tool_call>", "<|tool_call|>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render,
    grammar,
};

const NOTATION: Notation = Notation {
    string: |rules, schema| {
        let text = rules.string(schema, QUOTE).unwrap_or_else(|| rules.text_until(QUOTE));
        format!("{} {text}", rules.literal(QUOTE))
    },
    key: str::to_owned,
    words: ["true", "false", "None"],
    comma: ",",
    colon: ":",
    sorted: true,
    json: false,
    json_objects: false,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        input.skip_space().await;
        // The word before the colon gets lost.
        input.eat("call").await;
        loop {
            call(&region).await?;
            input.skip_space().await;
            if !input.eat("call").await {
                break;
            }
        }
        if !input.eat("<tool_call|>").await {
            input.rewind();
        }
        Ok(())
    })
}

/// From the colon before the name on.
async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    if !input.eat(":").await {
        return Err(NotACall);
    }
    input.skip_space().await;
    let name = input.word(|char| !char.is_whitespace() && !"{}()<>\"".contains(char), NAME).await.ok_or(NotACall)?;
    let end = match input.next().await {
        Some('{') => '}',
        Some('(') => ')',
        _ => return Err(NotACall),
    };
    let mut arguments = region.call(&name)?;
    members(input, &mut arguments, end).await?;
    arguments.end();
    Ok(())
}

/// From behind the call's bracket to the one that closes it.
async fn members(input: &Input, arguments: &mut Arguments, end: char) -> Result<(), NotACall> {
    loop {
        input.skip_space().await;
        if input.peek().await == Some(end) {
            input.next().await;
            return Ok(());
        }
        let key = key(input).await?;
        input.skip_space().await;
        if input.eat(QUOTE).await {
            arguments.stated(&key, End::at(&[QUOTE]), true).await?;
        } else {
            match value(input, end, 0).await? {
                Written::Text(text) => {
                    let value = arguments.shape().member(&key).read(&text);
                    let value = if arguments.shape().member(&key).types().is_none() { guess(&text) } else { value };
                    arguments.member(&key, &value);
                }
                Written::Value(value) => arguments.fitted(&key, value),
            }
        }
        separator(input, end).await?;
    }
}

/// A key, which may have quotes, and its colon.
async fn key(input: &Input) -> Result<String, NotACall> {
    let key = if input.eat(QUOTE).await {
        input.text_until(&[QUOTE]).await.ok_or(NotACall)?.0
    } else if matches!(input.peek().await, Some('"' | '\'')) {
        serde_json::from_str(&json::text(input).await?).map_err(|_| NotACall)?
    } else {
        input.word(|char| !"{}[]:,<>\n".contains(char), NAME).await.ok_or(NotACall)?
    };
    input.skip_space().await;
    if input.eat(":").await { Ok(key.trim().to_owned()) } else { Err(NotACall) }
}

/// A comma, or nothing before the end.
async fn separator(input: &Input, end: char) -> Result<(), NotACall> {
    input.skip_space().await;
    match input.peek().await.ok_or(NotACall)? {
        ',' => {
            input.next().await;
            Ok(())
        }
        next if next == end => Ok(()),
        _ => Err(NotACall),
    }
}

enum Written {
    /// Without quotes, so that the schema decides what it is.
    Text(String),
    Value(Value),
}

type Reading<'a> = Pin<Box<dyn Future<Output = Result<Written, NotACall>> + Send + 'a>>;

/// `end` closes what the value stands in.
fn value(input: &Input, end: char, depth: usize) -> Reading<'_> {
    Box::pin(async move {
        input.skip_space().await;
        if depth > DEPTH {
            return Err(NotACall);
        }
        if input.eat(QUOTE).await {
            let (text, _) = input.text_until(&[QUOTE]).await.ok_or(NotACall)?;
            return Ok(Written::Value(Value::String(text)));
        }
        match input.peek().await.ok_or(NotACall)? {
            '{' => object(input, depth).await.map(Written::Value),
            '[' => array(input, depth).await.map(Written::Value),
            '"' | '\'' => {
                let text = json::text(input).await?;
                Ok(Written::Value(serde_json::from_str(&text).map_err(|_| NotACall)?))
            }
            _ => {
                let text = input.word(|char| char != end && !",}]\n<".contains(char), WORD).await.ok_or(NotACall)?;
                // 12 at the end of a text that was cut may have been on its way to 120.
                if input.is_over() { Err(NotACall) } else { Ok(Written::Text(text.trim().to_owned())) }
            }
        }
    })
}

async fn object(input: &Input, depth: usize) -> Result<Value, NotACall> {
    input.next().await;
    let mut members = Map::new();
    loop {
        input.skip_space().await;
        if input.eat("}").await {
            return Ok(Value::Object(members));
        }
        let key = key(input).await?;
        let value = known(value(input, '}', depth + 1).await?);
        members.insert(key, value);
        separator(input, '}').await?;
    }
}

async fn array(input: &Input, depth: usize) -> Result<Value, NotACall> {
    input.next().await;
    let mut items = Vec::new();
    loop {
        input.skip_space().await;
        if input.eat("]").await {
            return Ok(Value::Array(items));
        }
        items.push(known(value(input, ']', depth + 1).await?));
        separator(input, ']').await?;
    }
}

fn known(written: Written) -> Value {
    match written {
        Written::Text(text) => guess(&text),
        Written::Value(value) => value,
    }
}

/// A value without quotes where no schema says what it is.
fn guess(text: &str) -> Value {
    Shape::unknown().read_value(text)
}

fn render(call: &ToolCall, _: usize) -> String {
    format!("<|tool_call>call:{}{}<tool_call|>", call.name, spelled(&Value::Object(call.arguments.clone())))
}

/// As the template's macro writes it: keys in alphabetical order, whatever their case, and without quotes.
fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{QUOTE}{text}{QUOTE}"),
        Value::Bool(value) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(spelled).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.to_lowercase());
            let member = |(key, value): (&String, &Value)| format!("{key}:{}", spelled(value));
            format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        other => python::repr(other),
    }
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let open = rules.literal(&format!("<|tool_call>call:{}{{", tool.name));
    let members = NOTATION.members(rules, &tool.parameters, 0);
    format!("{open} {members} {}", rules.literal("}<tool_call|>"))
}
