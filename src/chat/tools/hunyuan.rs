//! Hunyuan 3: GLM's tags with a suffix, and one tag around all calls.
//!
//! `<tool_calls:opensource>\n<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>x</arg_key:opensource>\n…`

use super::{Envelope, Format, pairs::Pairs};

const TAGS: Pairs = Pairs {
    open: "<tool_call:opensource>",
    head: "<tool_sep:opensource>\n",
    key: ["<arg_key:opensource>", "</arg_key:opensource>"],
    gap: "\n",
    kind: None,
    value: ["<arg_value:opensource>", "</arg_value:opensource>"],
    tail: "\n",
    close: "</tool_call:opensource>",
    all: Some(["<tool_calls:opensource>", "</tool_calls:opensource>"]),
};

pub static FORMAT: Format = Format {
    name: "hunyuan",
    opens: &["<tool_calls:opensource>", "<tool_call:opensource>"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "<tool_calls:opensource>\n", between: "\n", close: "\n</tool_calls:opensource>" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
