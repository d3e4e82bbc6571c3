//! Nemotron 3: Qwen's tags, and a line end after each call.

use super::{Envelope, Format, QWEN_XML};

pub static FORMAT: Format = Format {
    name: "nemotron",
    opens: QWEN_XML.opens,
    bare: &[],
    parse: QWEN_XML.parse,
    envelope: Envelope { open: "", between: "\n", close: "\n" },
    render: QWEN_XML.render,
    grammar: QWEN_XML.grammar,
};
