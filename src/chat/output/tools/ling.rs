//! Ling 3.0: GLM's tags with line ends of its own.
//!
//! `<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n</tool_call>`

use super::{Envelope, Format, pairs::Pairs};

const TAGS: Pairs = Pairs {
    open: "<tool_call>",
    head: "\n",
    key: ["<arg_key>", "</arg_key>"],
    gap: "\n",
    kind: None,
    value: ["<arg_value>", "</arg_value>"],
    tail: "",
    close: "\n</tool_call>",
    all: None,
};

/// White space before the closing tag is no part of it.
const READ: Pairs = Pairs { close: "</tool_call>", ..TAGS };

pub static FORMAT: Format = Format {
    name: "ling",
    opens: &["<tool_call>"],
    bare: &[],
    parse: |region| Box::pin(async move { READ.read(&region).await }),
    envelope: Envelope { open: "", between: "\n", close: "" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
