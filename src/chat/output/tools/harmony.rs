//! gpt-oss: a message to a tool, in the commentary channel. The channels themselves are read by
//! [`crate::chat::output::splitter::Answer::by_channels`]; this reads a message that stands alone.
//!
//! `<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"x": 1}<|call|>`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall};

pub static FORMAT: Format = Format {
    name: "harmony",
    opens: &["<|start|>assistant to=", "<|channel|>commentary to=", "<|channel|>analysis to="],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        let name = input.word(|char| char != '<' && !char.is_whitespace(), NAME).await.ok_or(NotACall)?;
        if !region.may_call(&name) || input.text_until(&["<|message|>"]).await.is_none() {
            return Err(NotACall);
        }
        message(&region, &name, &["<|call|>", "<|end|>", "<|start|>"]).await?;
        region.close("<|call|>").await;
        Ok(())
    })
}

/// A message to this tool: JSON, or else code up to one of these marks, whose index is returned.
pub(in crate::chat) async fn message(region: &Region, name: &str, ends: &[&str]) -> Result<Option<usize>, NotACall> {
    match region.input.peek_after(0).await.ok_or(NotACall)?.0 {
        '{' => region.call(name)?.object().await.map(|()| None),
        _ => region.code_for(name, ends).await.map(Some),
    }
}

fn render(call: &ToolCall, _: usize) -> String {
    let arguments = object::dumps(&call.arguments);
    format!("<|start|>assistant to=functions.{}<|channel|>commentary json<|message|>{arguments}<|call|>", call.name)
}

/// The prompt has begun the message already, unless a thought stands before it; the models write the recipient in
/// either place.
fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let recipient = rules.literal(&format!(" to=functions.{}", tool.name));
    let (start, channel) = (rules.literal("<|start|>assistant"), rules.literal("<|channel|>commentary"));
    let (constrain, json) = (rules.literal(" <|constrain|>json"), rules.literal(" json"));
    let (message, end) = (rules.literal("<|message|>"), rules.literal("<|call|>"));
    let header = rules.rule(&format!("{recipient} {channel} | {channel} {recipient}"));
    format!("({start})? {header} ({constrain} | {json})? {message} {} {end}", rules.json(&tool.parameters))
}
