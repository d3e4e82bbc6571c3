//! `GET /v1/models` and `GET /v1/models/{id}`

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::{IntoResponse, Response},
};

use super::refused;
use crate::{
    protocol::{Kind, Refusal, openai},
    server::{
        App,
        pool::{Entry, State as ModelState},
        reply::json,
    },
};

pub(super) async fn list(State(app): State<App>) -> impl IntoResponse {
    let models: Vec<_> = app.models().entries().iter().map(|entry| described(entry, entry.name())).collect();
    json(openai::models::list_to_wire(&models))
}

pub(super) async fn show(State(app): State<App>, id: Result<Path<String>, PathRejection>) -> Response {
    let id = match id {
        Ok(Path(id)) => id,
        Err(error) => return refused(&Refusal::new(Kind::Invalid, format!("the model's name: {error}"))),
    };
    match app.models().find(Some(&id)) {
        Ok(entry) => json(openai::models::to_wire(described(entry, &id))).into_response(),
        Err(refusal) => refused(&refusal.at("model")),
    }
}

/// A model by the name that it was asked for.
fn described<'a>(entry: &Entry, id: &'a str) -> openai::models::ListedModel<'a> {
    let (created, context) = match entry.state() {
        ModelState::Loaded { model, since } => (since, Some(model.context())),
        _ => (0, None),
    };
    openai::models::ListedModel { id, created, context }
}
