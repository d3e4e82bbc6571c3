//! Inkling of Thinking Machines: a message of a type of its own, with a JSON object.
//!
//! `<|message_model|>f<|content_invoke_tool_json|>{"name": "f", "args": {"x": 1}}<|end_message|>`

use super::{Envelope, Format, Parsing, Region, Rules, object};
use crate::chat::Tool;

pub static FORMAT: Format = Format {
    name: "inkling",
    opens: &["<|content_invoke_tool_json|>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "<|end_message|><|message_model|>", close: "<|end_message|>" },
    render: |call, _| format!("{}<|content_invoke_tool_json|>{}", call.name, object::render_as(call, "args")),
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move { object::call(&region).await })
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    // After a thought the message is still to be opened.
    let message = rules.literal("<|message_model|>");
    let name = rules.literal(&format!("{}<|content_invoke_tool_json|>", tool.name));
    format!("{message}? {name} {}", object::grammar_as(rules, tool, "args"))
}
