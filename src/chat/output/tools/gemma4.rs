//! Gemma 4: a notation of its own, with a special token for the quotes around strings.
//!
//! `<|tool_call>call:f{x:1,y:<|"|>text<|"|>}<tool_call|>`

use super::{
    Envelope, Format,
    braces::{self, Braces},
};

const QUOTE: &str = "<|\"|>";

const BRACES: Braces = Braces {
    open: "<|tool_call>",
    quote: QUOTE,
    close: "<tool_call|>",
    string: |rules, schema| braces::string(rules, schema, QUOTE),
};

pub static FORMAT: Format = Format {
    name: "gemma4",
    opens: &["<|tool_call>", "<|tool_call|>"],
    bare: &[],
    parse: |region| Box::pin(async move { BRACES.read(&region).await }),
    envelope: Envelope { open: "", between: "", close: "" },
    render: |call, _| BRACES.render(call),
    grammar: |rules, tool| BRACES.grammar(rules, tool),
};
