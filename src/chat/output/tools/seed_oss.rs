//! Seed-OSS: Qwen's tags in one of its own, with nothing around a value.
//!
//! `<seed:tool_call>\n<function=f>\n<parameter=x>1</parameter>\n</function>\n</seed:tool_call>`

use super::{
    Envelope, Format, Spelling,
    qwen_xml::{self, Tags},
};

const SEED: Tags = Tags { all: ["<seed:tool_call>", "</seed:tool_call>"], newline: "", spelling: Spelling::Repr };

pub static FORMAT: Format = Format {
    name: "seed_oss",
    opens: &["<seed:tool_call>", "<function="],
    bare: &[],
    parse: |region| Box::pin(async move { qwen_xml::calls(&region, &SEED).await }),
    envelope: Envelope { open: "", between: "\n", close: "" },
    render: |call, _| qwen_xml::render(call, &SEED),
    grammar: |rules, tool| qwen_xml::grammar(rules, tool, &SEED),
};
