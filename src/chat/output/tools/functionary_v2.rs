//! Functionary 2: messages from the assistant to a tool. Text goes to the recipient `all`, see
//! [`crate::chat::output::splitter::Answer::by_recipients`].
//!
//! `<|from|>assistant\n<|recipient|>f\n<|content|>{"x": 1}`

use super::{Envelope, Format, Parsing, Region, Rules, functionary, object};
use crate::chat::{Tool, ToolCall};

/// What the prompt has written before the first message.
pub const RECIPIENT: &str = "<|recipient|>";
const MESSAGE: &str = "<|from|>assistant\n<|recipient|>";
const CONTENT: &str = "\n<|content|>";
/// What a message of text begins with.
pub const TEXT: &str = "<|from|>assistant\n<|recipient|>all\n<|content|>";

pub static FORMAT: Format = Format {
    name: "functionary_v2",
    opens: &[MESSAGE, RECIPIENT],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "\n<|from|>assistant\n<|recipient|>", close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move { functionary::messages(&region, FORMAT.opens, CONTENT, &[TEXT, MESSAGE, "<|stop|>"]).await })
}

fn render(call: &ToolCall, index: usize) -> String {
    let open = if index == 0 { MESSAGE } else { "" };
    format!("{open}{}{CONTENT}{}", call.name, object::dumps(&call.arguments))
}

/// The prompt has begun the message already, unless another stands before this one.
fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let (open, head) = (rules.literal(MESSAGE), rules.literal(&format!("{}{CONTENT}", tool.name)));
    format!("({open})? {head} {}", rules.json(&tool.parameters))
}
