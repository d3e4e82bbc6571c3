//! What of a request a chat template renders.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::chat::{Message, Request, Tool, request::Thinking};

/// A conversation as a chat template is to render it. Borrows from the request whatever stays as it is.
#[derive(Debug, Clone)]
pub struct Conversation<'a> {
    /// The turns, in order.
    pub messages: Cow<'a, [Message]>,
    /// The tools that the model is to see.
    pub tools: &'a [Tool],
    /// How much the model is to think.
    pub thinking: &'a Thinking,
    /// Whether the last message is gone on with.
    pub continue_final: bool,
    /// Extra variables for the template.
    pub variables: &'a Map<String, Value>,
}

impl<'a> From<&'a Request> for Conversation<'a> {
    fn from(request: &'a Request) -> Conversation<'a> {
        Conversation {
            messages: Cow::Borrowed(&request.messages),
            tools: request.callable(),
            thinking: &request.thinking,
            continue_final: request.continue_final,
            variables: &request.template_variables,
        }
    }
}
