//! What models write that imitate how other programs put their calls into a conversation's past. It is only read.
//!
//! `[Calling tool: f({"x": 1})]`

use super::{NotACall, Region, Rules, object::dumps, python};
use crate::chat::{Tool, ToolCall};

/// Reads what follows the words.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    python::call(region, |_| false).await?;
    region.close("]").await;
    Ok(())
}

/// One call.
pub(super) fn render(call: &ToolCall) -> String {
    format!("[Calling tool: {}({})]", call.name, dumps(&call.arguments))
}

/// What [`render`] writes.
pub(super) fn grammar(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let head = rules.literal(&format!("[Calling tool: {}(", tool.name));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal(")]"))
}
