//! A tool in the shape that chat templates were written for: OpenAI's.

use serde_json::{Map, Value, json};

use crate::chat::{Tool, ToolField};

/// A function as the request describes it: what it says, in its order.
pub(in crate::chat) fn definition(tool: &Tool) -> Map<String, Value> {
    let field = |field: &ToolField| match field {
        ToolField::Name => ("name".to_owned(), json!(tool.name)),
        ToolField::Description => ("description".to_owned(), json!(tool.description)),
        ToolField::Parameters => ("parameters".to_owned(), tool.parameters.clone()),
        ToolField::Strict => ("strict".to_owned(), json!(tool.strict)),
    };
    tool.given.iter().map(field).collect()
}
