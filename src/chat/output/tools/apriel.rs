//! Apriel: a JSON list in a tag.
//!
//! `<tool_calls>[{"name": "f", "arguments": {"x": 1}}]</tool_calls>`

use super::{Envelope, Format, Parsing, Region, object};

pub static FORMAT: Format = Format {
    name: "apriel",
    opens: &["<tool_calls>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<tool_calls>[", between: ", ", close: "]</tool_calls>" },
    render: object::render_with_id,
    grammar: object::grammar_with_id,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::calls(&region).await?;
        region.close("</tool_calls>").await;
        Ok(())
    })
}
