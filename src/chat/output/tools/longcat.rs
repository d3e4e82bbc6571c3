//! LongCat Flash: GLM's tags under other names.
//!
//! `<longcat_tool_call>f\n<longcat_arg_key>x</longcat_arg_key>\n<longcat_arg_value>1</longcat_arg_value>\n</longcat_tool_call>`

use super::{Envelope, Format, pairs::Pairs};

const TAGS: Pairs = Pairs {
    open: "<longcat_tool_call>",
    head: "\n",
    gap: "\n",
    tail: "\n",
    close: "</longcat_tool_call>",
    key: ["<longcat_arg_key>", "</longcat_arg_key>"],
    kind: None,
    value: ["<longcat_arg_value>", "</longcat_arg_value>"],
    all: None,
};

pub static FORMAT: Format = Format {
    name: "longcat",
    opens: &["<longcat_tool_call>"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "", between: "\n", close: "" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
