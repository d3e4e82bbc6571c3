//! GigaChat 3.1: a JSON object behind a special token. GigaChat 3 writes it as a message of its own, which is read too.
//!
//! `<|function_call|>{"name": "f", "arguments": {"x": 1}}`

use super::{Envelope, Format, Parsing, Region, Rules, object};
use crate::chat::Tool;

pub(super) const OPENS: &[&str] = &["<|function_call|>", "function call<|role_sep|>"];

pub static FORMAT: Format = Format {
    name: "gigachat",
    opens: OPENS,
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render: |call, _| format!("<|function_call|>{}", object::render(call)),
    grammar,
};

pub(super) fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::calls(&region).await?;
        region.close("<|message_sep|>").await;
        Ok(())
    })
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    format!("{} {}", rules.literal("<|function_call|>"), object::grammar(rules, tool))
}
