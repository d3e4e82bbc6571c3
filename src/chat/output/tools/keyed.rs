//! A list of JSON objects whose only key is the tool's name.
//!
//! `[{"f": {"x": 1}}]`

use serde_json::Value;

use super::{NotACall, Region, Rules, json, object::dumps};
use crate::chat::{Tool, ToolCall};

/// Reads the list, and the mark that closes it.
pub(super) async fn read(region: &Region, close: &str) -> Result<(), NotACall> {
    region.expect("[").await?;
    loop {
        call(region).await?;
        region.input.skip_space().await;
        if !region.input.eat(",").await {
            break;
        }
    }
    region.expect("]").await?;
    region.close(close).await;
    Ok(())
}

/// One object.
async fn call(region: &Region) -> Result<(), NotACall> {
    region.expect("{").await?;
    region.input.skip_space().await;
    if region.input.peek().await != Some('"') {
        return Err(NotACall);
    }
    let name = json::text(&region.input).await?;
    region.expect(":").await?;
    let name: String = serde_json::from_str(&name).map_err(|_| NotACall)?;
    region.call_with_object(&name, None, &[]).await?;
    region.expect("}").await
}

/// One object of the list.
pub(super) fn render(call: &ToolCall) -> String {
    format!("{{{}: {}}}", Value::from(call.name.as_str()), dumps(&call.arguments))
}

/// What [`render`] writes.
pub(super) fn grammar(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let head = rules.literal(&format!("{{{}: ", Value::from(tool.name.as_str())));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal("}"))
}
