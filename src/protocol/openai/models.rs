//! The list of models.

use serde::Serialize;

use crate::protocol::sse;

/// A model that can be asked.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(into = "Wire<'_>")]
pub struct ListedModel<'a> {
    pub id: &'a str,
    /// When it was loaded, in seconds since 1970; 0 where it is not yet.
    pub created: u64,
    /// The most tokens of a conversation, prompt and answer together, where it is loaded.
    pub context: Option<usize>,
}

#[derive(Serialize)]
struct Wire<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Not OpenAI's: several servers and clients give a model's context by this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_model_len: Option<usize>,
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: &'a [ListedModel<'a>],
}

impl<'a> From<ListedModel<'a>> for Wire<'a> {
    fn from(model: ListedModel<'a>) -> Wire<'a> {
        let ListedModel { id, created, context } = model;
        Wire { id, object: "model", created, owned_by: "mettle", max_model_len: context }
    }
}

/// One model.
pub fn to_wire(model: ListedModel<'_>) -> String {
    sse::json(&model)
}

/// All models.
pub fn list_to_wire(models: &[ListedModel<'_>]) -> String {
    sse::json(&List { object: "list", data: models })
}
