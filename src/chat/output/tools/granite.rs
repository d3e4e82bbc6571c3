//! Granite 3: a JSON list behind a special token or a tag.
//!
//! `<|tool_call|>[{"name": "f", "arguments": {"x": 1}}]`

use super::{Envelope, Format, Parsing, Region, object};

pub static FORMAT: Format = Format {
    name: "granite",
    opens: &["<|tool_call|>", "<tool_call>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<|tool_call|>[", between: ", ", close: "]" },
    render: |call, _| object::render(call),
    grammar: object::grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::calls(&region).await?;
        region.close("</tool_call>").await;
        Ok(())
    })
}
