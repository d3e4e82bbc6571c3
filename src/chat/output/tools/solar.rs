//! Solar Open: the call's id, the name and JSON between special tokens.
//!
//! `<|tool_call:begin|>ID<|tool_call:name|>f<|tool_call:args|>{"x": 1}<|tool_call:end|>`

use super::{NAME, NotACall, Region, Rules, object::dumps};
use crate::chat::{Tool, ToolCall};

const CALL: &str = "<|tool_call:begin|>";
const CALL_NAME: &str = "<|tool_call:name|>";
const ARGUMENTS: &str = "<|tool_call:args|>";
const CALL_END: &str = "<|tool_call:end|>";

/// Reads calls behind the token around all of them, or behind a call's own.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    let mut begun = region.is_opened_by(CALL);
    let mut count = 0;
    loop {
        if !begun {
            region.input.pin();
            region.input.skip_space().await;
        }
        if begun || region.input.eat(CALL).await {
            one(region).await?;
            begun = false;
            count += 1;
        } else if count == 0 || region.input.met_end() {
            return Err(NotACall);
        } else {
            region.input.rewind();
            return Ok(());
        }
    }
}

/// One call, behind the mark that begins it.
async fn one(region: &Region) -> Result<(), NotACall> {
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
    region.call_with_object(&name, id, &[CALL_END, CALL]).await?;
    input.skip_space().await;
    input.eat(CALL_END).await;
    // What follows may be text, and this no part of it.
    input.pin();
    Ok(())
}

/// One call.
pub(super) fn render(call: &ToolCall) -> String {
    let arguments = dumps(&call.arguments);
    format!("{CALL}{}{CALL_NAME}{}{ARGUMENTS}{arguments}{CALL_END}", call.id, call.name)
}

/// What [`render`] writes.
pub(super) fn grammar(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let id = rules.rule("/[a-zA-Z0-9_-]{1,64}/");
    let open = rules.literal(CALL);
    let close = rules.literal(CALL_END);
    let head = rules.literal(&format!("{CALL_NAME}{}{ARGUMENTS}", tool.name));
    format!("{open} {id} {head} {} {close}", rules.json(&tool.parameters))
}
