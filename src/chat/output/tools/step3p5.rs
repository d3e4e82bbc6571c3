//! Step 3.5: Qwen's tags, and nothing between calls.

use super::{Envelope, Format, QWEN_XML};

pub static FORMAT: Format = Format {
    name: "step3p5",
    opens: QWEN_XML.opens,
    bare: &[],
    parse: QWEN_XML.parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render: QWEN_XML.render,
    grammar: QWEN_XML.grammar,
};
