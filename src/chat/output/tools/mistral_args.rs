//! Mistral since 2025 (Devstral, Magistral, Ministral 3): the name, and its arguments behind another special token.
//!
//! `[TOOL_CALLS]f[ARGS]{"x": 1}`

use super::{
    Envelope, Format, Rules,
    mistral::{self, OPEN},
    object,
};
use crate::chat::{Tool, ToolCall};

pub static FORMAT: Format = Format {
    name: "mistral_args",
    opens: &[OPEN],
    bare: &[],
    parse: mistral::parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render,
    grammar,
};

fn render(call: &ToolCall, _: usize) -> String {
    format!("{OPEN}{}[ARGS]{}", call.name, object::dumps(&call.arguments))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("{OPEN}{}[ARGS]", tool.name));
    format!("{head} {}", rules.json(&tool.parameters))
}
