//! LFM 2: a list of Python calls between special tokens.
//!
//! `<|tool_call_start|>[f(x=1)]<|tool_call_end|>`

use serde_json::Value;

use super::{Envelope, Format, Notation, Parsing, Region, Rules, pythonic};
use crate::chat::{
    Tool, ToolCall,
    python::{self, Dumps},
};

pub static FORMAT: Format = Format {
    name: "lfm2",
    opens: &["<|tool_call_start|>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<|tool_call_start|>[", between: ", ", close: "]<|tool_call_end|>" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        pythonic::list(&region).await?;
        region.input.pin();
        region.input.skip_space().await;
        if !region.input.eat("<|tool_call_end|>").await {
            region.input.rewind();
        }
        Ok(())
    })
}

/// As the template does it, but for quotes, backslashes and line ends in strings, which it does not escape and nobody
/// could read again.
fn render(call: &ToolCall, _: usize) -> String {
    let argument = |(name, value): (&String, &Value)| match value {
        Value::Object(_) => format!("{name}={}", Dumps::default().json(value)),
        other => format!("{name}={}", python::repr(other)),
    };
    let arguments: Vec<String> = call.arguments.iter().map(argument).collect();
    format!("{}({})", call.name, arguments.join(", "))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let open = rules.literal(&format!("{}(", tool.name));
    let arguments = LFM.named(rules, &tool.parameters, 0, &|name| format!("{name}="));
    format!("{open} {arguments} {}", rules.literal(")"))
}

const LFM: Notation = Notation { json_objects: true, ..Notation::PYTHON };
