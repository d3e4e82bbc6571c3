//! FunctionGemma: Gemma 4's notation with other tokens.
//!
//! `<start_function_call>call:f{x:1,y:<escape>text<escape>}<end_function_call>`

use super::{
    Envelope, Format,
    braces::{self, Braces},
};

const QUOTE: &str = "<escape>";

const BRACES: Braces = Braces {
    open: "<start_function_call>",
    quote: QUOTE,
    close: "<end_function_call>",
    string: |rules, schema| braces::string(rules, schema, QUOTE),
};

pub static FORMAT: Format = Format {
    name: "function_gemma",
    opens: &["<start_function_call>"],
    bare: &[],
    parse: |region| Box::pin(async move { BRACES.read(&region).await }),
    envelope: Envelope { open: "", between: "", close: "" },
    render: |call, _| BRACES.render(call),
    grammar: |rules, tool| BRACES.grammar(rules, tool),
};
