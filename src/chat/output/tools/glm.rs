//! GLM 4.5 and 4.6: a line for each key and each value.
//!
//! `<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n</tool_call>`

use super::{Envelope, Format, pairs::Pairs};

const TAGS: Pairs = Pairs {
    open: "<tool_call>",
    head: "\n",
    gap: "\n",
    tail: "\n",
    close: "</tool_call>",
    key: ["<arg_key>", "</arg_key>"],
    kind: None,
    value: ["<arg_value>", "</arg_value>"],
    all: None,
};

pub static FORMAT: Format = Format {
    name: "glm",
    opens: &["<tool_call>"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "", between: "\n", close: "" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
