//! Cohere Command R and R+: the word `Action:`, and a JSON list in a block of code.
//!
//! ``Action:\n```json\n[\n    {\n        "tool_name": "f",\n        "parameters": {…}\n    }\n]``` ``

use serde_json::Value;

use super::{Envelope, Format, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall, python::Dumps};

pub static FORMAT: Format = Format {
    name: "command_r",
    opens: &["Action:"],
    bare: &[],
    parse,
    envelope: Envelope { open: "Action:\n```json\n[\n", between: ",\n", close: "\n]```" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        region.input.skip_space().await;
        if !region.input.eat("```json").await {
            return Err(NotACall);
        }
        object::calls(&region).await?;
        region.close("```").await;
        Ok(())
    })
}

fn render(call: &ToolCall, _: usize) -> String {
    let arguments =
        Dumps { indent: Some("    ".to_owned()), ..Dumps::default() }.json(&Value::Object(call.arguments.clone()));
    let (name, arguments) = (Value::from(call.name.as_str()), arguments.replace('\n', "\n        "));
    format!("    {{\n        \"tool_name\": {name},\n        \"parameters\": {arguments}\n    }}")
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let name = Value::from(tool.name.as_str());
    let head = rules.literal(&format!("    {{\n        \"tool_name\": {name},\n        \"parameters\": "));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal("\n    }"))
}
