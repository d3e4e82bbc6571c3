//! Functionary 3.1, and Llama 3 where its prompt asks for it: JSON in a tag that names the function.
//!
//! `<function=f>{"x": 1}</function>`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, object};
use crate::chat::{Tool, ToolCall};

pub static FORMAT: Format = Format {
    name: "function_tag",
    opens: &["<function="],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        let name = input.word(|char| !">\n{<".contains(char), NAME).await.ok_or(NotACall)?;
        if !input.eat(">").await {
            return Err(NotACall);
        }
        input.skip_space().await;
        if !input.is_next("{").await {
            return Err(NotACall);
        }
        region.call(name.trim())?.object().await?;
        region.close("</function>").await;
        Ok(())
    })
}

fn render(call: &ToolCall, _: usize) -> String {
    format!("<function={}>{}</function>", call.name, object::dumps(&call.arguments))
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("<function={}>", tool.name));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal("</function>"))
}
