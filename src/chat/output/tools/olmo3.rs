//! OLMo 3: a line of Python for each call, its arguments as JSON.
//!
//! `<function_calls>f(x=1)\ng(text="a")</function_calls>`

use serde_json::Value;

use super::{Envelope, Format, Parsing, Region, pythonic, statement};
use crate::chat::{ToolCall, python};

pub static FORMAT: Format = Format {
    name: "olmo3",
    opens: &["<function_calls>"],
    bare: &[],
    parse,
    envelope: Envelope { open: "<function_calls>", between: "\n", close: "</function_calls>" },
    render: |call, _| render(call),
    grammar: pythonic::grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        loop {
            input.skip_space().await;
            if input.eat("</function_calls>").await {
                return Ok(());
            }
            let name = statement::name(&region).await?;
            let arguments = region.call(&name)?;
            statement::arguments(&region, arguments).await?;
        }
    })
}

fn render(call: &ToolCall) -> String {
    let argument = |(name, value): (&String, &Value)| format!("{name}={}", python::dumps(value));
    let arguments: Vec<String> = call.arguments.iter().map(argument).collect();
    format!("{}({})", call.name, arguments.join(", "))
}
