//! MiniMax M1: a line of JSON a call, in one tag around all.
//!
//! `<tool_calls>\n{"name": "f", "arguments": {"x": 1}}\n</tool_calls>`

use super::{Envelope, Format, Parsing, Region, object};

pub static FORMAT: Format = Format {
    name: "minimax_m1",
    opens: &["<tool_calls>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<tool_calls>\n", between: "\n", close: "\n</tool_calls>" },
    render: |call, _| object::render(call),
    grammar: object::grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::calls(&region).await?;
        region.close("</tool_calls>").await;
        Ok(())
    })
}
