//! Hermes, Qwen 2.5 and 3, and many others: a JSON object between tags.
//!
//! `<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>`

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
    format!("<tool_call>\n{}\n</tool_call>", object::render(call))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let (open, close) = (rules.mark("<tool_call>"), rules.mark("</tool_call>"));
    let newline = rules.literal("\n");
    format!("{open} {newline} {} {newline} {close}", object::grammar(rules, tool))
}
