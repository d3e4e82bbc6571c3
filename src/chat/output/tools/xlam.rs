//! xLAM 2: a JSON list that is the whole answer, often in a block of code.
//!
//! `[{"name": "f", "arguments": {"x": 1}}]`

use super::{Envelope, Format, Parsing, Region, object};

pub static FORMAT: Format = Format {
    name: "xlam",
    opens: &["```json"],
    bare: &['[', '{'],
    parse,
    envelope: Envelope { open: "[", between: ", ", close: "]" },
    render: |call, _| object::render(call),
    grammar: object::grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::calls(&region).await?;
        region.close("```").await;
        Ok(())
    })
}
