//! Mistral's calls behind a special token: a list of JSON objects up to 2024, later the name before the arguments. All
//! are read.
//!
//! `[{"name": "f", "arguments": {"x": 1}, "id": "abcdefghi"}]`, `f[ARGS]{"x": 1}`

use super::{
    NAME, NotACall, Region, Rules, in_name,
    object::{self, dumps},
};
use crate::chat::{
    Tool, ToolCall,
    dialect::{Mistral, Object, ObjectId},
};

/// An object of the list.
const OBJECT: Object = Object { id: ObjectId::Last, ..Object::PLAIN };

/// Reads what follows the token.
pub(super) async fn read(region: &Region) -> Result<(), NotACall> {
    region.input.skip_space().await;
    if region.input.is_next("[").await || region.input.is_next("{").await {
        object::calls(region).await
    } else {
        named(region).await
    }
}

/// `f{"x": 1}`, `f[ARGS]{"x": 1}` or `f[CALL_ID]abcdefghi[ARGS]{"x": 1}`.
async fn named(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let name = input.word(in_name, NAME).await.ok_or(NotACall)?;
    input.skip_space().await;
    let mut id = None;
    if input.eat("[CALL_ID]").await {
        id = input.word(|char| char.is_ascii_alphanumeric() || "_-".contains(char), NAME).await;
    }
    let is_certain = input.eat("[ARGS]").await;
    input.skip_space().await;
    if is_certain {
        // Behind this token nothing else can come; an answer that the model ended here has no arguments.
        if input.peek().await.is_none() && input.is_complete() {
            return region.call_with_all(&name, id, "null");
        }
        return region.call_with_object(&name, id, &["[TOOL_CALLS]"]).await;
    }
    if !input.is_next("{").await {
        return Err(NotACall);
    }
    region.call_with_id(&name, id)?.object(&["[TOOL_CALLS]"]).await
}

impl Mistral {
    /// One call.
    pub(super) fn render(self, call: &ToolCall) -> String {
        let arguments = dumps(&call.arguments);
        match self {
            Mistral::List => OBJECT.render(call, 0),
            Mistral::Arguments => format!("[TOOL_CALLS]{}[ARGS]{arguments}", call.name),
            Mistral::Ids => format!("[TOOL_CALLS]{}[CALL_ID]{}[ARGS]{arguments}", call.name, call.id),
        }
    }

    /// What [`Mistral::render`] writes.
    pub(super) fn grammar(self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        match self {
            Mistral::List => OBJECT.grammar(rules, tool),
            Mistral::Arguments => {
                let head = rules.literal(&format!("[TOOL_CALLS]{}[ARGS]", tool.name));
                format!("{head} {}", rules.json(&tool.parameters))
            }
            Mistral::Ids => {
                let head = rules.literal(&format!("[TOOL_CALLS]{}[CALL_ID]", tool.name));
                let id = rules.rule("/[a-zA-Z0-9]{9}/");
                format!("{head} {id} {} {}", rules.literal("[ARGS]"), rules.json(&tool.parameters))
            }
        }
    }
}
