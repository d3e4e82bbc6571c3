//! Apertus: a list of objects whose only key is the tool's name, between special tokens.
//!
//! `<|tools_prefix|>[{"f": {"x": 1}}]<|tools_suffix|>`

use serde_json::Value;

use super::{Envelope, Format, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall, output::json};

pub static FORMAT: Format = Format {
    name: "apertus",
    opens: &["<|tools_prefix|>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<|tools_prefix|>[", between: ", ", close: "]<|tools_suffix|>" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        expect(&region, "[").await?;
        loop {
            expect(&region, "{").await?;
            region.input.skip_space().await;
            if region.input.peek().await != Some('"') {
                return Err(NotACall);
            }
            let name = json::text(&region.input).await?;
            expect(&region, ":").await?;
            let name: String = serde_json::from_str(&name).map_err(|_| NotACall)?;
            region.call(&name)?.object().await?;
            expect(&region, "}").await?;
            region.input.skip_space().await;
            if !region.input.eat(",").await {
                break;
            }
        }
        expect(&region, "]").await?;
        region.close("<|tools_suffix|>").await;
        Ok(())
    })
}

async fn expect(region: &Region, mark: &str) -> Result<(), NotACall> {
    region.input.skip_space().await;
    if region.input.eat(mark).await { Ok(()) } else { Err(NotACall) }
}

fn render(call: &ToolCall, _: usize) -> String {
    format!("{{{}: {}}}", Value::from(call.name.as_str()), object::dumps(&call.arguments))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("{{{}: ", Value::from(tool.name.as_str())));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal("}"))
}
