//! Kimi K2: an id that names the tool, and JSON, between special tokens.
//!
//! `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|>`

use super::{NAME, NotACall, Region, Rules, object::dumps};
use crate::chat::{Tool, ToolCall};

const CALL: &str = "<|tool_call_begin|>";
const ARGUMENTS: &str = "<|tool_call_argument_begin|>";
const CALL_END: &str = "<|tool_call_end|>";
/// Behind all calls; the second is a mistake that the models make.
const ENDS: [&str; 2] = ["<|tool_calls_section_end|>", "<|tool_call_section_end|>"];

/// Reads calls behind the token around all of them, or behind a call's own.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let mut begun = region.is_opened_by(CALL);
    loop {
        input.skip_space().await;
        if begun || input.eat(CALL).await {
            one(region).await?;
            begun = false;
        } else if input.eat(ENDS[0]).await || input.eat(ENDS[1]).await {
            return Ok(());
        } else {
            return Err(NotACall);
        }
    }
}

/// One call, behind the mark that begins it.
async fn one(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    let id = input.word(|char| char != '<' && !char.is_whitespace(), NAME).await.ok_or(NotACall)?;
    region.expect(ARGUMENTS).await?;
    let name = match id.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => id.clone(),
    };
    region.call_with_object(&name, Some(id), &[CALL_END, CALL, ENDS[0], ENDS[1]]).await?;
    input.skip_space().await;
    input.eat(CALL_END).await;
    // What follows may be text, and this no part of it.
    input.pin();
    Ok(())
}

/// One call.
pub(super) fn render(call: &ToolCall, index: usize) -> String {
    format!("{CALL}functions.{}:{index}{ARGUMENTS}{}{CALL_END}", call.name, dumps(&call.arguments))
}

/// What [`render`] writes.
pub(super) fn grammar(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let head = rules.literal(&format!("{CALL}functions.{}:", tool.name));
    let number = rules.rule("/[0-9]+/");
    let open = rules.literal(ARGUMENTS);
    let close = rules.literal(CALL_END);
    format!("{head} {number} {open} {} {close}", rules.json(&tool.parameters))
}
