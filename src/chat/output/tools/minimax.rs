//! MiniMax M2: a tag with the name for each call and each parameter.
//!
//! `<minimax:tool_call>\n<invoke name="f">\n<parameter name="x">1</parameter>\n</invoke>\n</minimax:tool_call>`

use super::{
    Envelope, Format, Spelling,
    tagged::{Tagged, Typed},
};

const TAGS: Tagged = Tagged {
    call: ["<invoke", "</invoke>"],
    head: "\n",
    empty: "",
    parameter: ["<parameter", "</parameter>"],
    tail: "\n",
    typed: Typed::No,
    spelling: Spelling::Json,
    verbatim: None,
    all: &[["<minimax:tool_call>", "</minimax:tool_call>"]],
};

pub static FORMAT: Format = Format {
    name: "minimax",
    opens: &["<minimax:tool_call>", "<invoke"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "<minimax:tool_call>\n", between: "\n", close: "\n</minimax:tool_call>" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
