//! Hermes, Qwen 2.5 and 3, and many others: a JSON object between tags.
//!
//! `<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>`

use serde_json::{Value, json};

use super::{Envelope, Format, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall};

pub static FORMAT: Format = Format {
    name: "hermes",
    opens: &["<tool_call>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "\n", close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::call(&region).await?;
        close(&region).await
    })
}

/// The closing tag, which models leave out at the end or before the next call.
async fn close(region: &Region) -> Result<(), NotACall> {
    region.input.pin();
    region.input.skip_space().await;
    if !region.input.eat("</tool_call>").await {
        region.input.rewind();
    }
    Ok(())
}

fn render(call: &ToolCall, _: usize) -> String {
    let call = json!({"name": call.name, "arguments": call.arguments});
    format!("<tool_call>\n{call}\n</tool_call>")
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("\n{{\"name\": {}, \"arguments\": ", Value::from(tool.name.as_str())));
    let arguments = rules.json(&tool.parameters);
    format!("{} {head} {arguments} {} {}", rules.mark("<tool_call>"), rules.literal("}\n"), rules.mark("</tool_call>"))
}
