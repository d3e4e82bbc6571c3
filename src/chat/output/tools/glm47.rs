//! GLM 4.7 and 5, Laguna S and Spark 2.5: GLM's tags without white space.
//!
//! `<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>`

use super::{Envelope, Format, pairs::Pairs};

const TAGS: Pairs = Pairs {
    open: "<tool_call>",
    head: "",
    gap: "",
    tail: "",
    close: "</tool_call>",
    key: ["<arg_key>", "</arg_key>"],
    kind: None,
    value: ["<arg_value>", "</arg_value>"],
    all: None,
};

pub static FORMAT: Format = Format {
    name: "glm47",
    opens: &["<tool_call>"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "", between: "", close: "" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
