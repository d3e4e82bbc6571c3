//! Functionary 3.2: a recipient's name on a line, and JSON. Text goes to the recipient `all`, see
//! [`crate::chat::output::splitter::Answer::by_recipients`].
//!
//! `>>>f\n{"x": 1}`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, harmony, object};
use crate::chat::{Tool, ToolCall};

pub const OPEN: &str = ">>>";

pub static FORMAT: Format = Format {
    name: "functionary",
    opens: &[OPEN],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: OPEN, close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move { messages(&region, &[OPEN], "\n", &[">>>all\n", "<|eot_id|>", "<|eom_id|>"]).await })
}

/// Messages to tools, each a name, what ends that, and JSON or code up to one of `ends`. One of `opens` stands before
/// each, and may be written twice; where it ends code it is taken with that.
pub(super) async fn messages(region: &Region, opens: &[&str], begin: &str, ends: &[&str]) -> Result<(), NotACall> {
    let input = &region.input;
    loop {
        let mut open = 0;
        while open < opens.len() {
            open = if input.eat(opens[open]).await { 0 } else { open + 1 };
        }
        let name = input.word(|char| !char.is_whitespace() && !"{<>".contains(char), NAME).await.ok_or(NotACall)?;
        if !region.may_call(&name) || !input.eat(begin).await {
            return Err(NotACall);
        }
        match harmony::message(region, &name, ends).await? {
            Some(end) if opens.contains(&ends[end]) => {}
            _ => return Ok(()),
        }
    }
}

fn render(call: &ToolCall, index: usize) -> String {
    let open = if index == 0 { OPEN } else { "" };
    format!("{open}{}\n{}", call.name, object::dumps(&call.arguments))
}

/// The prompt has written the mark already, unless another message stands before this one.
fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let (open, name) = (rules.literal(OPEN), rules.literal(&format!("{}\n", tool.name)));
    format!("({open})? {name} {}", rules.json(&tool.parameters))
}
