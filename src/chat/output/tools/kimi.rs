//! Kimi K2: an id that names the tool, and JSON, between special tokens.
//!
//! `<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|><|tool_calls_section_end|>`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall};

const CALL: &str = "<|tool_call_begin|>";
const ARGUMENTS: &str = "<|tool_call_argument_begin|>";
const CALL_END: &str = "<|tool_call_end|>";

pub static FORMAT: Format = Format {
    name: "kimi",
    // The second spelling is a mistake that the models make.
    opens: &["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", CALL],
    bare: &[],
    parse,
    envelope: Envelope { open: "<|tool_calls_section_begin|>", between: "", close: "<|tool_calls_section_end|>" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        let mut begun = FORMAT.opens[region.opened_by] == CALL;
        loop {
            input.skip_space().await;
            if begun || input.eat(CALL).await {
                call(&region).await?;
                begun = false;
            } else if input.eat("<|tool_calls_section_end|>").await || input.eat("<|tool_call_section_end|>").await {
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
    })
}

/// One call, behind the mark that begins it.
async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    let id = input.word(|char| char != '<' && !char.is_whitespace(), NAME).await.ok_or(NotACall)?;
    input.skip_space().await;
    if !input.eat(ARGUMENTS).await {
        return Err(NotACall);
    }
    let name = match id.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => id.clone(),
    };
    region.call_with_id(&name, Some(id))?.object().await?;
    input.skip_space().await;
    input.eat(CALL_END).await;
    // What follows may be text, and this no part of it.
    input.pin();
    Ok(())
}

fn render(call: &ToolCall, index: usize) -> String {
    format!("{CALL}functions.{}:{index}{ARGUMENTS}{}{CALL_END}", call.name, object::dumps(&call.arguments))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("{CALL}functions.{}:", tool.name));
    let number = rules.rule("/[0-9]+/");
    let (open, close) = (rules.literal(ARGUMENTS), rules.literal(CALL_END));
    format!("{head} {number} {open} {} {close}", rules.json(&tool.parameters))
}
