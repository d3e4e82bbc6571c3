//! Hunyuan 3: GLM's tags with a suffix, and one tag around all calls.
//!
//! `<tool_calls:opensource>\n<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>x</arg_key:opensource>\n…`

use super::{Envelope, Format, Region, pairs::Pairs};

macro_rules! tags {
    ($suffix:literal) => {
        Pairs {
            open: concat!("<tool_call", $suffix, ">"),
            head: concat!("<tool_sep", $suffix, ">\n"),
            key: [concat!("<arg_key", $suffix, ">"), concat!("</arg_key", $suffix, ">")],
            gap: "\n",
            kind: None,
            value: [concat!("<arg_value", $suffix, ">"), concat!("</arg_value", $suffix, ">")],
            tail: "\n",
            close: concat!("</tool_call", $suffix, ">"),
            all: Some([concat!("<tool_calls", $suffix, ">"), concat!("</tool_calls", $suffix, ">")]),
        }
    };
}

const TAGS: Pairs = tags!(":opensource");

/// As tokenizers have it that leave the suffix out.
const PLAIN: Pairs = tags!("");

pub static FORMAT: Format = Format {
    name: "hunyuan",
    opens: &["<tool_calls:opensource>", "<tool_call:opensource>", "<tool_calls>", "<tool_call>"],
    bare: &[],
    parse: |region| {
        Box::pin(async move {
            match region.opened_by {
                0 | 1 => TAGS.read(&region).await,
                plain => PLAIN.read(&Region { opened_by: plain - 2, ..region }).await,
            }
        })
    },
    envelope: Envelope { open: "<tool_calls:opensource>\n", between: "\n", close: "\n</tool_calls:opensource>" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
