//! Hermes, Qwen 2.5 and 3, and many others: a JSON object between tags.
//!
//! `<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>`

use super::{Envelope, Format, Parsing, Region, Rules, object};
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
        object::calls(&region).await?;
        region.close("</tool_call>").await;
        Ok(())
    })
}

fn render(call: &ToolCall, _: usize) -> String {
    format!("<tool_call>\n{}\n</tool_call>", object::render(call))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let (open, close) = (rules.literal("<tool_call>\n"), rules.literal("\n</tool_call>"));
    format!("{open} {} {close}", object::grammar(rules, tool))
}
