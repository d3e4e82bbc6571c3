//! FireFunction v2: the word `functools`, and a JSON list.
//!
//! ` functools[{"name": "f", "arguments": {"x": 1}}]`

use super::{Envelope, Format, NotACall, Parsing, Region, object};

pub static FORMAT: Format = Format {
    name: "firefunction",
    opens: &["functools"],
    bare: &[],
    parse,
    envelope: Envelope { open: " functools[", between: ", ", close: "]" },
    render: |call, _| object::render(call),
    grammar: object::grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        // `functools` is also a module of Python.
        match region.input.is_next("[").await {
            true => object::calls(&region).await,
            false => Err(NotACall),
        }
    })
}
