//! Whether a template makes use of tools, found by rendering a small conversation with it.

use serde_json::json;

use super::Template;
use crate::chat::{Message, Request, Role, Tool, ToolField};

/// A name that no template has of its own.
const NAME: &str = "mettle_probes_tools";

/// Whether tools given by a request reach the prompt.
pub(super) fn knows_tools(template: &Template) -> bool {
    let given = vec![ToolField::Name, ToolField::Description, ToolField::Parameters];
    let plain = Tool::new(NAME, json!({"type": "object", "properties": {}}));
    let tool = Tool { description: Some(String::new()), given, ..plain };
    let messages = vec![Message::new(Role::User, "Hello")];
    let request = Request { tools: vec![tool], ..Request::new(messages) };
    template.render(&request).is_ok_and(|rendered| rendered.text.contains(NAME))
}
