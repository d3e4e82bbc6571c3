//! DeepSeek V3.1 and V3.2-Exp: the name and its JSON between special tokens.
//!
//! `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`

use super::{Envelope, Format, Rules, deepseek, object};
use crate::chat::{Tool, ToolCall};

pub static FORMAT: Format = Format {
    name: "deepseek_v31",
    opens: deepseek::OPENS,
    bare: &[],
    parse: deepseek::parse,
    envelope: Envelope { open: "<｜tool▁calls▁begin｜>", between: "", close: "<｜tool▁calls▁end｜>" },
    render,
    grammar,
};

fn render(call: &ToolCall, _: usize) -> String {
    let arguments = object::dumps(&call.arguments);
    format!("<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>", call.name)
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("<｜tool▁call▁begin｜>{}<｜tool▁sep｜>", tool.name));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal("<｜tool▁call▁end｜>"))
}
