//! The list of models.

use serde::Serialize;

use crate::protocol::sse;

/// A model that is loaded.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(into = "Wire<'_>")]
pub struct Model<'a> {
    pub id: &'a str,
    /// When it was loaded, in seconds since 1970.
    pub created: u64,
    /// The most tokens of a conversation, prompt and answer together.
    pub context: usize,
}

#[derive(Serialize)]
struct Wire<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Not OpenAI's: several servers and clients give a model's context by this name.
    max_model_len: usize,
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: &'a [Model<'a>],
}

impl<'a> From<Model<'a>> for Wire<'a> {
    fn from(model: Model<'a>) -> Wire<'a> {
        let Model { id, created, context } = model;
        Wire { id, object: "model", created, owned_by: "mettle", max_model_len: context }
    }
}

/// One model.
pub fn to_wire(model: Model<'_>) -> String {
    sse::json(&model)
}

/// All models.
pub fn list_to_wire(models: &[Model<'_>]) -> String {
    sse::json(&List { object: "list", data: models })
}
