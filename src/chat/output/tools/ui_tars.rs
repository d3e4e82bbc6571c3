//! UI-TARS: actions on a screen as Python. An action is a tool of that name, or of the tool for the whole computer.
//!
//! `Action: click(start_box='(100,200)')`

use serde_json::Value;

use super::{Envelope, Format, NotACall, Notation, Parsing, Region, Rules, statement};
use crate::chat::{Tool, ToolCall, python};

/// Tools that take every action, by its name in `action`.
const COMPUTERS: &[&str] = &["computer", "computer_use", "browser", "mobile_use"];

pub static FORMAT: Format = Format {
    name: "ui_tars",
    opens: &["Action:"],
    bare: &[],
    parse,
    envelope: Envelope { open: "Action: ", between: "\n\n", close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        input.skip_space().await;
        let mut name = statement::name(&region).await?;
        loop {
            action(&region, name).await?;
            // More of them may follow after empty lines.
            input.skip_space().await;
            input.eat("Action:").await;
            input.skip_space().await;
            name = match statement::name(&region).await {
                Ok(name) if takes(&region, &name) => name,
                _ => {
                    input.rewind();
                    return Ok(());
                }
            };
        }
    })
}

/// Whether there is a tool for this action.
fn takes(region: &Region, name: &str) -> bool {
    region.declares(name) || COMPUTERS.iter().any(|computer| region.declares(computer))
}

/// From behind the parenthesis.
async fn action(region: &Region, name: String) -> Result<(), NotACall> {
    let arguments = match region.declares(&name) {
        true => region.call(&name)?,
        false => {
            let computer = COMPUTERS.iter().find(|name| region.declares(name)).ok_or(NotACall)?;
            let mut arguments = region.call(computer)?;
            arguments.member("action", &Value::from(name));
            arguments
        }
    };
    statement::arguments(region, arguments).await
}

fn render(call: &ToolCall, _: usize) -> String {
    let argument = |(name, value): (&String, &Value)| format!("{name}={}", python::repr(value));
    let arguments: Vec<String> = call.arguments.iter().map(argument).collect();
    format!("{}({})", call.name, arguments.join(", "))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let open = rules.literal(&format!("{}(", tool.name));
    let arguments = Notation::PYTHON.named(rules, &tool.parameters, 0, &|name| format!("{name}="));
    format!("{open} {arguments} {}", rules.literal(")"))
}
