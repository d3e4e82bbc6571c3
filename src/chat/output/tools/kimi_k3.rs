//! Kimi K3: XML of three special tokens, with each argument's type.
//!
//! `<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="x" type="number"<|sep|>1…`

use serde_json::{Value, json};

use super::{End, Envelope, Format, NotACall, Parsing, Region, Rules, Spelling};
use crate::chat::{Tool, ToolCall};

/// Bytes of a name.
const NAME: usize = 256;

const CLOSE: &str = "<|close|>argument<|sep|>";

pub static FORMAT: Format = Format {
    name: "kimi_k3",
    opens: &["<|open|>tools<|sep|>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<|open|>tools<|sep|>", between: "", close: "<|close|>tools<|sep|>" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        loop {
            input.skip_space().await;
            if input.eat("<|open|>call").await {
                call(&region).await?;
            } else if input.eat("<|close|>tools<|sep|>").await {
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
    })
}

/// From the call's attributes on.
async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let [name, _] = attributes(region, ["tool", "index"]).await?;
    let name = name.ok_or(NotACall)?;
    let mut arguments = region.call(&name)?;
    loop {
        input.skip_space().await;
        if input.eat("<|open|>argument").await {
            let [key, kind] = attributes(region, ["key", "type"]).await?;
            let (key, is_string) = (key.ok_or(NotACall)?, kind.is_none_or(|kind| kind == "string"));
            arguments.stated(&key, End::at(&[CLOSE]), is_string).await?;
        } else if input.eat("<|open|>json").await {
            attributes(region, ["type", ""]).await?;
            arguments.object().await?;
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

fn render(call: &ToolCall, index: usize) -> String {
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

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let open = rules.literal(&format!("<|open|>call tool=\"{}\" index=\"", attribute(&tool.name)));
    let mut text = format!("{open} {} {}", rules.rule("/[1-9][0-9]?/"), rules.literal("\"<|sep|>"));
    for parameter in rules.parameters(tool) {
        let types = crate::chat::schema::Shape::of(parameter.schema.clone()).types();
        let string = rules.string(&parameter.schema, CLOSE);
        let string = string.map(|value| format!("{} {value}", rules.literal(&head(&parameter.name, "string"))));
        let mut choices: Vec<String> = string.into_iter().collect();
        for sample in [json!(null), json!(true), json!(1), json!([]), json!({})] {
            let allowed = types.is_none_or(|types| types.allow(&sample) || sample.is_number() && types.number);
            if allowed {
                let mut schema = parameter.schema.clone();
                schema["type"] = Value::from(kind(&sample));
                let whole_only = types.is_some_and(|types| !types.number);
                if sample.is_number() && whole_only {
                    schema["type"] = Value::from("integer");
                }
                let value = rules.no_string(&schema, Spelling::Json, CLOSE);
                choices.extend(
                    value.map(|value| format!("{} {value}", rules.literal(&head(&parameter.name, kind(&sample))))),
                );
            }
        }
        let choice = rules.rule(&choices.join(" | "));
        text += &if parameter.required { format!(" {choice}") } else { format!(" {choice}?") };
    }
    format!("{text} {}", rules.literal("<|close|>call<|sep|>"))
}
