//! Muse: a message to the tool, with the call in ATEM's tags.
//!
//! ` to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="x">1</atem:parameter>\n…`

use super::{
    Envelope, Format, Rules, Spelling,
    tagged::{Tagged, Typed},
};
use crate::chat::{Tool, ToolCall};

const TAGS: Tagged = Tagged {
    call: ["<atem:invoke", "</atem:invoke>"],
    head: "\n",
    empty: "",
    parameter: ["<atem:parameter", "</atem:parameter>"],
    tail: "\n",
    typed: Typed::No,
    spelling: Spelling::Json,
    verbatim: None,
    all: &[["<atem:function_calls>", "</atem:function_calls>"]],
};

pub static FORMAT: Format = Format {
    name: "muse",
    opens: &["<atem:function_calls>", "<atem:invoke"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "", between: "<|eom|><|start|>assistant", close: "" },
    render,
    grammar,
};

/// From behind the role on, which the prompt's end has written already.
fn render(call: &ToolCall, _: usize) -> String {
    let [open, close] = TAGS.all[0];
    format!(" to={}<|message|>{open}\n{}\n{close}", call.name, TAGS.render(call))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let [open, close] = TAGS.all[0];
    // After a thought the role is still to be written.
    let role = rules.literal("<|start|>assistant");
    let header = rules.literal(&format!(" to={}<|message|>{open}\n", tool.name));
    format!("({role})? {header} {} {}", TAGS.grammar(rules, tool), rules.literal(&format!("\n{close}")))
}
