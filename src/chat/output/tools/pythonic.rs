//! Calls as a list of Python expressions: Llama 4, and others that write their own marks around it.
//!
//! `[f(x="a", n=1), g()]`

use serde_json::{Value, json};

use super::{Arguments, Envelope, Format, NAME, NotACall, Parsing, Region, Rules, in_name, rules::Parameter};
use crate::chat::{
    Tool, ToolCall,
    output::{input::Input, json},
    python,
    schema::Types,
};

pub static FORMAT: Format = Format {
    name: "pythonic",
    opens: &["<|python_start|>"],
    bare: &['['],
    parse,
    envelope: Envelope { open: "[", between: ", ", close: "]" },
    render: |call, _| render(call),
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        list(&region).await?;
        region.close("<|python_end|>").await;
        Ok(())
    })
}

/// Reads a list of calls, from its bracket on.
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

/// Reads one call, from its name on.
pub(super) async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    let name = input.word(in_name, NAME).await.ok_or(NotACall)?;
    if !input.eat("(").await {
        return Err(NotACall);
    }
    let arguments = region.call(&name)?;
    input.skip_space().await;
    match input.is_next("{").await && !first_is_an_object(&arguments) {
        true => all(region, arguments).await,
        false => each(region, arguments).await,
    }
}

/// All arguments as one object, and the parenthesis that closes them.
pub(super) async fn all(region: &Region, arguments: Arguments) -> Result<(), NotACall> {
    arguments.object().await?;
    region.input.skip_space().await;
    if region.input.eat(")").await { Ok(()) } else { Err(NotACall) }
}

/// Arguments one by one, and the parenthesis that closes them.
pub(super) async fn each(region: &Region, mut arguments: Arguments) -> Result<(), NotACall> {
    let input = &region.input;
    let mut position = 0;
    while !input.eat(")").await {
        argument(input, &mut arguments, position).await?;
        position += 1;
        input.skip_space().await;
        if !input.eat(",").await && !input.is_next(")").await {
            return Err(NotACall);
        }
        input.skip_space().await;
    }
    arguments.end();
    Ok(())
}

/// Whether a single object between the parentheses is the first argument, and not all of them.
fn first_is_an_object(arguments: &Arguments) -> bool {
    let shape = arguments.shape();
    shape.members().first().is_some_and(|name| shape.member(name).types().is_none_or(|types| types.object))
}

/// `name=value`, or the value alone, which takes its name from its place.
async fn argument(input: &Input, arguments: &mut Arguments, position: usize) -> Result<(), NotACall> {
    let by_place = arguments.shape().members().into_iter().nth(position);
    let first = input.peek().await.ok_or(NotACall)?;
    if !first.is_alphabetic() && first != '_' {
        return arguments.argument(&by_place.ok_or(NotACall)?).await;
    }
    let word = input.word(|char| char.is_alphanumeric() || "_-".contains(char), NAME).await.ok_or(NotACall)?;
    input.skip_space().await;
    if input.eat("=").await {
        return arguments.argument(&word).await;
    }
    let value = json::literal(&word).and_then(json::read).ok_or(NotACall)?;
    arguments.member(&by_place.ok_or(NotACall)?, &value);
    Ok(())
}

/// One call as Python.
pub(super) fn render(call: &ToolCall) -> String {
    let argument = |(name, value): (&String, &Value)| format!("{name}={}", expression(value));
    let arguments: Vec<String> = call.arguments.iter().map(argument).collect();
    format!("{}({})", call.name, arguments.join(", "))
}

fn expression(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => python::dumps(other),
    }
}

/// One call of this tool: its parameters by name, in the schema's order.
pub(super) fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let parameters = rules.parameters(tool);
    // What may follow once an argument was written, and what may come before any was.
    let (mut after, mut before) = (rules.literal(")"), rules.literal(")"));
    for parameter in parameters.iter().rev() {
        let name = rules.literal(&format!("{}=", parameter.name));
        let value = expressions(rules, parameter);
        let argument = rules.rule(&format!("{name} {value}"));
        let comma = rules.literal(", ");
        let (first, next) = (format!("{argument} {after}"), format!("{comma} {argument} {after}"));
        let (first, next) = match parameter.required {
            true => (first, next),
            false => (format!("{first} | {before}"), format!("{next} | {after}")),
        };
        (before, after) = (rules.rule(&first), rules.rule(&next));
    }
    format!("{} {before}", rules.literal(&format!("{}(", tool.name)))
}

/// JSON, and Python's literals where the schema allows them.
fn expressions(rules: &mut Rules, parameter: &Parameter) -> String {
    let schema = &parameter.schema;
    let closed = schema.get("enum").is_some() || schema.get("const").is_some();
    let types = crate::chat::schema::Shape::of(schema.clone()).types();
    let allows = |value: Value| !closed && types.is_none_or(|types: Types| types.allow(&value));
    let mut choices = vec![rules.json(schema)];
    for (value, word) in [(json!(true), "True"), (json!(false), "False"), (json!(null), "None")] {
        if allows(value) {
            choices.push(rules.literal(word));
        }
    }
    rules.rule(&choices.join(" | "))
}
