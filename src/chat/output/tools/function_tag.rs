//! JSON in a tag that names the function.
//!
//! `<function=f>{"x": 1}</function>`

use super::{NAME, NotACall, Region, Rules, object::dumps};
use crate::chat::{Tool, ToolCall};

/// Reads from the function's name on.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let name = input.word(|char| !">\n{<".contains(char), NAME).await.ok_or(NotACall)?;
    if !input.eat(">").await {
        return Err(NotACall);
    }
    input.skip_space().await;
    region.call_with_object(name.trim(), None, &["</function>"]).await?;
    region.close("</function>").await;
    Ok(())
}

/// One call.
pub(super) fn render(call: &ToolCall) -> String {
    format!("<function={}>{}</function>", call.name, dumps(&call.arguments))
}

/// What [`render`] writes.
pub(super) fn grammar(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let head = rules.literal(&format!("<function={}>", tool.name));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal("</function>"))
}
