//! XML of three special tokens, with each argument's type, as Kimi K3 writes it.
//!
//! `<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="x" type="number"<|sep|>1…`

use serde_json::{Value, json};

use super::{End, NAME, NotACall, Parameter, Region, Rules, with_type};
use crate::chat::{Tool, ToolCall, dialect::Spelling};

const CLOSE: &str = "<|close|>argument<|sep|>";

/// Reads calls behind the tag around all of them.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    while region.one_of(&["<|close|>tools<|sep|>", "<|open|>call"]).await? == 1 {
        one(region).await?;
    }
    Ok(())
}

/// From the call's attributes on.
async fn one(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let [name, _] = attributes(region, ["tool", "index"]).await?;
    let name = name.ok_or(NotACall)?;
    let mut arguments = region.call(&name)?;
    loop {
        input.skip_space().await;
        if input.eat("<|open|>argument").await {
            let [key, kind] = attributes(region, ["key", "type"]).await?;
            let key = key.ok_or(NotACall)?;
            let is_string = kind.is_none_or(|kind| kind == "string");
            arguments.stated(&key, End::at(&[CLOSE]), is_string).await?;
        } else if input.eat("<|open|>json").await {
            attributes(region, ["type", ""]).await?;
            arguments.object(&["<|close|>"]).await?;
            input.skip_space().await;
            let closed = input.eat("<|close|>json<|sep|>").await && input.eat("<|close|>call<|sep|>").await;
            return if closed { Ok(()) } else { Err(NotACall) };
        } else if input.eat("<|close|>call<|sep|>").await {
            arguments.end();
            return Ok(());
        } else {
            return Err(NotACall);
        }
    }
}

/// The values of these attributes, and the token that ends them.
async fn attributes(region: &Region, names: [&str; 2]) -> Result<[Option<String>; 2], NotACall> {
    let input = &region.input;
    let mut values = [None, None];
    loop {
        input.skip_space().await;
        if input.eat("<|sep|>").await {
            return Ok(values);
        }
        let name =
            input.word(|char| char.is_ascii_alphanumeric() || "_-".contains(char), NAME).await.ok_or(NotACall)?;
        if !input.eat("=\"").await {
            return Err(NotACall);
        }
        let value = input.word(|char| char != '"' && char != '\n', NAME).await.ok_or(NotACall)?;
        if !input.eat("\"").await {
            return Err(NotACall);
        }
        for (place, own) in values.iter_mut().zip(names) {
            if own == name {
                *place = Some(value.replace("&quot;", "\"").replace("&amp;", "&"));
            }
        }
    }
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;")
}

/// One call.
pub(super) fn render(call: &ToolCall, index: usize) -> String {
    let mut text = format!("<|open|>call tool=\"{}\" index=\"{}\"<|sep|>", attribute(&call.name), index + 1);
    for (name, value) in &call.arguments {
        text += &format!("{}{}{CLOSE}", head(name, kind(value)), Spelling::Json.text(value));
    }
    text + "<|close|>call<|sep|>"
}

fn head(name: &str, kind: &str) -> String {
    format!("<|open|>argument key=\"{}\" type=\"{kind}\"<|sep|>", attribute(name))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What [`render`] writes.
pub(super) fn grammar(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let open = rules.literal(&format!("<|open|>call tool=\"{}\" index=\"", attribute(&tool.name)));
    let mut text = format!("{open} {} {}", rules.rule("/[1-9][0-9]?/"), rules.literal("\"<|sep|>"));
    for parameter in rules.parameters(tool) {
        let choices = choices(rules, &parameter);
        let choice = rules.rule(&choices.join(" | "));
        text += &if parameter.required { format!(" {choice}") } else { format!(" {choice}?") };
    }
    format!("{text} {}", rules.literal("<|close|>call<|sep|>"))
}

/// The ways to write an argument, one for each type that its schema allows.
fn choices(rules: &mut Rules<'_>, parameter: &Parameter<'_>) -> Vec<String> {
    let types = parameter.schema.types();
    let string = rules.string(&parameter.schema, CLOSE);
    let string = string.map(|value| format!("{} {value}", rules.literal(&head(parameter.name, "string"))));
    let mut choices: Vec<String> = string.into_iter().collect();
    for sample in [json!(null), json!(true), json!(1), json!([]), json!({})] {
        let allowed = types.is_none_or(|types| types.allow(&sample) || sample.is_number() && types.number);
        if !allowed {
            continue;
        }
        let whole_only = sample.is_number() && types.is_some_and(|types| !types.number);
        let schema = with_type(parameter.schema.node(), if whole_only { "integer" } else { kind(&sample) });
        let value = rules.no_string(&parameter.schema.with_node(&schema), Spelling::Json, CLOSE);
        choices.extend(value.map(|value| {
            let head = rules.literal(&head(parameter.name, kind(&sample)));
            format!("{head} {value}")
        }));
    }
    choices
}
