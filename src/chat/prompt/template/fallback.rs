//! How a conversation is given to a template that fails on it as it is: with what a request may leave out said to be
//! empty, and with arguments as the JSON text that clients send. The first way that the template can render counts.

use serde_json::{Map, Value as Json, json};

use super::definition::definition;
use crate::chat::prompt::conversation::Conversation;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fallback {
    /// Tools have a description and parameters, and these a description: empty ones, where a client gave none.
    pub complete: bool,
    /// The arguments of past calls are text: templates of models like Functionary's add it to their own.
    pub text_arguments: bool,
}

impl Fallback {
    /// The ways to give a conversation that are not the same, in the order in which they are tried.
    pub(super) fn all(conversation: &Conversation<'_>) -> impl Iterator<Item = Fallback> {
        // Asked only once a template has failed.
        let lacks = || conversation.tools.iter().map(definition).any(|tool| completed(&tool) != tool);
        let calls = || conversation.messages.iter().any(|message| message.tool_calls().next().is_some());
        [(false, false), (true, false), (false, true), (true, true)]
            .into_iter()
            .filter(move |(complete, text)| (!complete || lacks()) && (!text || calls()))
            .map(|(complete, text_arguments)| Fallback { complete, text_arguments })
    }
}

/// A tool's definition with all that templates read.
pub(super) fn completed(definition: &Map<String, Json>) -> Map<String, Json> {
    let mut definition = definition.clone();
    definition.entry("description").or_insert_with(|| json!(""));
    let parameters = definition.entry("parameters").or_insert_with(|| json!({}));
    if let Json::Object(parameters) = parameters {
        parameters.entry("type").or_insert_with(|| json!("object"));
        parameters.entry("properties").or_insert_with(|| json!({}));
        describe(parameters);
    }
    definition
}

/// Gives a schema's members a description.
fn describe(schema: &mut Map<String, Json>) {
    if let Some(Json::Object(members)) = schema.get_mut("properties") {
        for member in members.values_mut().filter_map(Json::as_object_mut) {
            member.entry("description").or_insert_with(|| json!(""));
            describe(member);
        }
    }
    if let Some(Json::Object(items)) = schema.get_mut("items") {
        describe(items);
    }
}
