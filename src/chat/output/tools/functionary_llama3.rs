//! Functionary 2.5, of Llama 3: a special token, the name on a line, and JSON.
//!
//! `<|reserved_special_token_249|>f\n{"x": 1}`

use super::{Envelope, Format, Parsing, Region, Rules, functionary, object};
use crate::chat::Tool;

const OPEN: &str = "<|reserved_special_token_249|>";

pub static FORMAT: Format = Format {
    name: "functionary_llama3",
    opens: &[OPEN],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render: |call, _| format!("{OPEN}{}\n{}", call.name, object::dumps(&call.arguments)),
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move { functionary::messages(&region, &[OPEN], "\n", &[OPEN, "<|eot_id|>"]).await })
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    format!("{} {}", rules.literal(&format!("{OPEN}{}\n", tool.name)), rules.json(&tool.parameters))
}
