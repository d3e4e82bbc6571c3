//! Nemotron Nano 2: a JSON list in a tag.
//!
//! `<TOOLCALL>[{"name": "f", "arguments": {"x": 1}}]</TOOLCALL>`

use super::{Envelope, Format, Parsing, Region, object};

pub static FORMAT: Format = Format {
    name: "nemotron_nano",
    opens: &["<TOOLCALL>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<TOOLCALL>[", between: ", ", close: "]</TOOLCALL>" },
    render: |call, _| object::render(call),
    grammar: object::grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::calls(&region).await?;
        region.close("</TOOLCALL>").await;
        Ok(())
    })
}
