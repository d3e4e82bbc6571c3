//! Cohere Command R7B, Command A and North: a JSON list between special tokens.
//!
//! `<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "f", "parameters": {"x": 1}}\n]<|END_ACTION|>`

use serde_json::Value;

use super::{Envelope, Format, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall};

pub static FORMAT: Format = Format {
    name: "cohere",
    opens: &["<|START_ACTION|>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<|START_ACTION|>[\n", between: ",\n", close: "\n]<|END_ACTION|>" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        object::calls(&region).await?;
        region.close("<|END_ACTION|>").await;
        Ok(())
    })
}

fn render(call: &ToolCall, index: usize) -> String {
    let (name, arguments) = (Value::from(call.name.as_str()), object::dumps(&call.arguments));
    format!("    {{\"tool_call_id\": \"{index}\", \"tool_name\": {name}, \"parameters\": {arguments}}}")
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let number = rules.rule("/ *\\{\"tool_call_id\": \"[0-9]+\", /");
    let name = rules.literal(&format!("\"tool_name\": {}, \"parameters\": ", Value::from(tool.name.as_str())));
    format!("{number} {name} {} {}", rules.json(&tool.parameters), rules.literal("}"))
}
