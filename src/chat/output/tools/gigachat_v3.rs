//! GigaChat 3: a message of the role `function call` with a JSON object in it.
//!
//! `function call<|role_sep|>\n{"name": "f", "arguments": {"x": 1}}`

use super::{Envelope, Format, Rules, gigachat, object};
use crate::chat::Tool;

pub static FORMAT: Format = Format {
    name: "gigachat_v3",
    opens: gigachat::OPENS,
    bare: &[],
    parse: gigachat::parse,
    envelope: Envelope { open: "", between: "<|message_sep|>\n\n", close: "" },
    render: |call, _| format!("function call<|role_sep|>\n{}", object::render(call)),
    grammar,
};

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    format!("{} {}", rules.literal("function call<|role_sep|>\n"), object::grammar(rules, tool))
}
