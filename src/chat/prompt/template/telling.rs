//! How a request is told to a template that fails on it as it is: with what the request may leave out said to be
//! empty, and with arguments as the JSON text that clients send. A template is told the first way that it can render.

use serde_json::{Map, Value as Json, json};

use super::definition::definition;
use super::variables::shown_tools;
use crate::chat::Request;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Telling {
    /// Tools have a description and parameters, and these a description: empty ones, where a client gave none.
    pub complete: bool,
    /// The arguments of past calls are text: templates of models like Functionary's add it to their own.
    pub text_arguments: bool,
}

impl Telling {
    /// The ways to tell a request that are not the same, in the order in which they are tried.
    pub(super) fn all(request: &Request) -> impl Iterator<Item = Telling> {
        // Asked only once a template has failed.
        let lacks = || shown_tools(request).iter().map(definition).any(|tool| completed(&tool) != tool);
        let calls = || request.messages.iter().any(|message| message.tool_calls().next().is_some());
        [(false, false), (true, false), (false, true), (true, true)]
            .into_iter()
            .filter(move |(complete, text)| (!complete || lacks()) && (!text || calls()))
            .map(|(complete, text_arguments)| Telling { complete, text_arguments })
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
