//! DeepSeek V3.2: tags of its own, and each parameter says whether it is a string.
//!
//! `<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>\n…`

use super::{
    Envelope, Format, Spelling,
    tagged::{Tagged, Typed},
};

const TAGS: Tagged = Tagged {
    call: ["<｜DSML｜invoke", "</｜DSML｜invoke>"],
    head: "\n",
    parameter: ["<｜DSML｜parameter", "</｜DSML｜parameter>"],
    tail: "\n",
    typed: Typed::String,
    spelling: Spelling::Json,
    verbatim: None,
    all: &[
        ["<｜DSML｜function_calls>", "</｜DSML｜function_calls>"],
        ["<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"],
    ],
    empty: "",
};

pub static FORMAT: Format = Format {
    name: "deepseek_v32",
    opens: &["<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke"],
    bare: &[],
    parse: |region| Box::pin(async move { TAGS.read(&region).await }),
    envelope: Envelope { open: "<｜DSML｜function_calls>\n", between: "\n", close: "\n</｜DSML｜function_calls>" },
    render: |call, _| TAGS.render(call),
    grammar: |rules, tool| TAGS.grammar(rules, tool),
};
