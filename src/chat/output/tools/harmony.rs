//! gpt-oss: a message to a tool, in the commentary channel. `splitter::channels` reads the channels themselves; this
//! reads a message that stands alone.
//!
//! `<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"x": 1}<|call|>`

use super::{NAME, NotACall, Region, Rules, object::dumps};
use crate::chat::{Tool, ToolCall};

/// Reads from the recipient on.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let name = input.word(|char| char != '<' && !char.is_whitespace(), NAME).await.ok_or(NotACall)?;
    if !region.may_call(&name) || input.text_until(&["<|message|>"]).await.is_none() {
        return Err(NotACall);
    }
    message(region, &name, &["<|call|>", "<|end|>", "<|start|>"]).await?;
    region.close("<|call|>").await;
    Ok(())
}

/// A message to this tool: JSON, or else code up to one of these marks, whose index is returned.
pub(in crate::chat::output) async fn message(
    region: &Region,
    name: &str,
    ends: &[&str],
) -> Result<Option<usize>, NotACall> {
    region.input.skip_space().await;
    for end in ends {
        if region.input.is_next(end).await {
            return region.call_with_all(name, None, "null").map(|()| None);
        }
    }
    match region.input.peek().await.ok_or(NotACall)? {
        '{' => region.call(name)?.object(ends).await.map(|()| None),
        _ => region.code_for(name, ends).await.map(Some),
    }
}

/// One call.
pub(super) fn render(call: &ToolCall) -> String {
    let arguments = dumps(&call.arguments);
    format!("<|start|>assistant to=functions.{}<|channel|>commentary json<|message|>{arguments}<|call|>", call.name)
}

/// The prompt has begun the message already, unless a thought stands before it; the models write the recipient in
/// either place.
pub(super) fn grammar(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let recipient = rules.literal(&format!(" to=functions.{}", tool.name));
    let start = rules.literal("<|start|>assistant");
    let channel = rules.literal("<|channel|>commentary");
    let constrain = rules.literal(" <|constrain|>json");
    let json = rules.literal(" json");
    let message = rules.literal("<|message|>");
    let end = rules.literal("<|call|>");
    let header = rules.rule(&format!("{recipient} {channel} | {channel} {recipient}"));
    format!("({start})? {header} ({constrain} | {json})? {message} {} {end}", rules.json(&tool.parameters))
}
