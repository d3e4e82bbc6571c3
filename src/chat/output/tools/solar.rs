//! Solar Open: the call's id, the name and JSON between special tokens.
//!
//! `<|tool_calls|><|tool_call:begin|>ID<|tool_call:name|>f<|tool_call:args|>{"x": 1}<|tool_call:end|>`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall};

const CALL: &str = "<|tool_call:begin|>";
const CALL_NAME: &str = "<|tool_call:name|>";
const ARGUMENTS: &str = "<|tool_call:args|>";
const CALL_END: &str = "<|tool_call:end|>";

pub static FORMAT: Format = Format {
    name: "solar",
    opens: &["<|tool_calls|>", CALL],
    bare: &[],
    parse,
    envelope: Envelope { open: "<|tool_calls|>", between: "", close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let mut begun = FORMAT.opens[region.opened_by] == CALL;
        let mut count = 0;
        loop {
            if !begun {
                region.input.pin();
                region.input.skip_space().await;
            }
            if begun || region.input.eat(CALL).await {
                call(&region).await?;
                (begun, count) = (false, count + 1);
            } else if count == 0 || region.input.met_end() {
                return Err(NotACall);
            } else {
                region.input.rewind();
                return Ok(());
            }
        }
    })
}

/// One call, behind the mark that begins it.
async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let word = || input.word(|char| char != '<' && !char.is_whitespace(), NAME);
    let id = word().await;
    if !input.eat(CALL_NAME).await {
        return Err(NotACall);
    }
    let name = word().await.ok_or(NotACall)?;
    if !input.eat(ARGUMENTS).await {
        return Err(NotACall);
    }
    region.call_with_id(&name, id)?.object().await?;
    input.skip_space().await;
    input.eat(CALL_END).await;
    // What follows may be text, and this no part of it.
    input.pin();
    Ok(())
}

fn render(call: &ToolCall, _: usize) -> String {
    let arguments = object::dumps(&call.arguments);
    format!("{CALL}{}{CALL_NAME}{}{ARGUMENTS}{arguments}{CALL_END}", call.id, call.name)
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let id = rules.rule("/[a-zA-Z0-9_-]{1,64}/");
    let (open, close) = (rules.literal(CALL), rules.literal(CALL_END));
    let head = rules.literal(&format!("{CALL_NAME}{}{ARGUMENTS}", tool.name));
    format!("{open} {id} {head} {} {close}", rules.json(&tool.parameters))
}
