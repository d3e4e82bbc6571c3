//! `GET /v1/models` and `GET /v1/models/{id}`

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::IntoResponse,
};

use crate::{
    protocol::{Kind, Refusal, openai},
    server::{App, error::Refused, pool::Entry, reply::json},
};

pub(super) async fn list(State(app): State<App>) -> impl IntoResponse {
    let models: Vec<_> = app.0.models.entries().iter().map(|entry| described(entry, entry.name())).collect();
    json(openai::models::list_to_wire(&models))
}

pub(super) async fn show(
    State(app): State<App>,
    id: Result<Path<String>, PathRejection>,
) -> Result<impl IntoResponse, Refused> {
    let Path(id) = id.map_err(|error| Refusal::new(Kind::Invalid, format!("the model's name: {error}")))?;
    let entry = app.0.models.find(Some(&id))?;
    Ok(json(openai::models::to_wire(described(entry, &id))))
}

/// A model by the name that it was asked for.
fn described<'a>(entry: &Entry, id: &'a str) -> openai::models::Model<'a> {
    openai::models::Model { id, created: entry.loaded(), context: entry.model().context() }
}
