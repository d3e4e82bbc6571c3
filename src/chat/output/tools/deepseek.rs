//! DeepSeek V2.5, V3 and R1: the name and a block of JSON between special tokens. V3.1 writes neither the word
//! `function` nor the block; this reads both.
//!
//! ``<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"x": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>``

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall};

/// The mark around all calls, as the models spell it and as models distilled from them do.
pub(super) const OPENS: &[&str] = &[
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool_calls_begin｜>",
    "<｜tool calls begin｜>",
    "<｜tool\\_calls\\_begin｜>",
    "<｜tool▁calls｜>",
];
const CALL: &[&str] = &["<｜tool▁call▁begin｜>", "<｜tool_call_begin｜>", "<｜tool call begin｜>"];
const SEPARATOR: &[&str] = &["<｜tool▁sep｜>", "<｜tool_sep｜>", "<｜tool sep｜>"];
const CALL_END: &[&str] = &["<｜tool▁call▁end｜>", "<｜tool_call_end｜>", "<｜tool call end｜>"];
const CLOSE: &[&str] = &["<｜tool▁calls▁end｜>", "<｜tool_calls_end｜>", "<｜tool calls end｜>"];

pub static FORMAT: Format = Format {
    name: "deepseek",
    opens: OPENS,
    bare: &[],
    parse,
    envelope: Envelope { open: "<｜tool▁calls▁begin｜>", between: "\n", close: "<｜tool▁calls▁end｜>" },
    render,
    grammar,
};

pub(super) fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let mut begun = CALL.contains(&OPENS[region.opened_by]);
        loop {
            region.input.skip_space().await;
            if begun || eat(&region, CALL).await {
                call(&region).await?;
                begun = false;
            } else if eat(&region, CLOSE).await {
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
    })
}

async fn eat(region: &Region, marks: &[&str]) -> bool {
    for mark in marks {
        if region.input.eat(mark).await {
            return true;
        }
    }
    false
}

/// One call, behind the mark that begins it.
async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let word = || input.word(|char| !"<`{\n".contains(char), NAME);
    input.skip_space().await;
    let first = word().await.ok_or(NotACall)?;
    if !eat(region, SEPARATOR).await {
        return Err(NotACall);
    }
    input.skip_space().await;
    let name = if input.is_next("{").await { first } else { word().await.ok_or(NotACall)? };
    input.skip_space().await;
    let fenced = input.eat("```").await;
    input.eat("json").await;
    input.skip_space().await;
    if !input.is_next("{").await {
        return Err(NotACall);
    }
    region.call(name.trim())?.object().await?;
    input.skip_space().await;
    if fenced {
        input.eat("```").await;
        input.skip_space().await;
    }
    eat(region, CALL_END).await;
    // What follows may be text, and this no part of it.
    input.pin();
    Ok(())
}

fn render(call: &ToolCall, _: usize) -> String {
    let arguments = object::dumps(&call.arguments);
    format!("{}function{}{}\n```json\n{arguments}\n```{}", CALL[0], SEPARATOR[0], call.name, CALL_END[0])
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("{}function{}{}\n```json\n", CALL[0], SEPARATOR[0], tool.name));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal(&format!("\n```{}", CALL_END[0])))
}
