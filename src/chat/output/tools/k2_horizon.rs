//! K2 Horizon of IFM: GLM's pairs, with or without the value's type, or a JSON object, in tags of its own.
//!
//! `<ifm|tool_calls>\n<ifm|tool_call>f\n<ifm|arg_key>x</ifm|arg_key>\n<ifm|arg_value>1</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>`

use super::{Envelope, Format, pairs::Pairs};

const TAGS: Pairs = Pairs {
    open: "<ifm|tool_call>",
    head: "\n",
    key: ["<ifm|arg_key>", "</ifm|arg_key>"],
    gap: "\n",
    kind: Some(["<ifm|arg_type>", "</ifm|arg_type>"]),
    value: ["<ifm|arg_value>", "</ifm|arg_value>"],
    tail: "\n",
    close: "</ifm|tool_call>",
    all: Some(["<ifm|tool_calls>", "</ifm|tool_calls>"]),
};

pub static FORMAT: Format = Format {
    name: "k2_horizon",
    opens: &["<ifm|tool_calls>", "<ifm|tool_call>"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "<ifm|tool_calls>\n", between: "\n", close: "\n</ifm|tool_calls>" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
