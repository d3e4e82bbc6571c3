//! Mistral Small 3.2: the name, the call's id and its arguments, each behind a special token.
//!
//! `[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"x": 1}`

use super::{
    Envelope, Format, Rules,
    mistral::{self, OPEN},
    object,
};
use crate::chat::{Tool, ToolCall};

pub static FORMAT: Format = Format {
    name: "mistral_ids",
    opens: &[OPEN],
    bare: &[],
    parse: mistral::parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render,
    grammar,
};

fn render(call: &ToolCall, _: usize) -> String {
    format!("{OPEN}{}[CALL_ID]{}[ARGS]{}", call.name, call.id, object::dumps(&call.arguments))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("{OPEN}{}[CALL_ID]", tool.name));
    let id = rules.rule("/[a-zA-Z0-9]{9}/");
    format!("{head} {id} {} {}", rules.literal("[ARGS]"), rules.json(&tool.parameters))
}
