//! MiniCPM 5: a tag with the name, and CDATA around strings that XML could not hold.
//!
//! `<function name="f"><param name="x">1</param></function>`

use super::{
    Envelope, Format, Spelling,
    tagged::{Tagged, Typed},
};

const TAGS: Tagged = Tagged {
    call: ["<function", "</function>"],
    head: "",
    empty: "",
    parameter: ["<param", "</param>"],
    tail: "",
    typed: Typed::No,
    spelling: Spelling::Repr,
    verbatim: Some(["<![CDATA[", "]]>"]),
    all: &[],
};

pub static FORMAT: Format = Format {
    name: "minicpm",
    opens: &["<function"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "", between: "\n", close: "" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
