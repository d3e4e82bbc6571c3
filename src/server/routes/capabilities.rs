//! `GET /v1/capabilities`: which fields each endpoint knows, what becomes of them, and what clients have sent in vain.

use axum::{extract::State, response::IntoResponse};
use serde_json::{Value, json};

use super::table;
use crate::{
    protocol::{Fate, Known},
    server::{App, pool::State as ModelState, reply},
};

pub(super) async fn show(State(app): State<App>) -> impl IntoResponse {
    let endpoints: Vec<Value> = table()
        .into_iter()
        .filter_map(|route| {
            let fields: Vec<Value> = route.fields?().iter().map(field).collect();
            Some(json!({"method": route.method, "path": route.path, "fields": fields}))
        })
        .collect();
    let models = app.models().entries().iter().map(|entry| match entry.state() {
        ModelState::Loaded { model, .. } => json!({"id": entry.name(), "kind": model.kind()}),
        _ => json!({"id": entry.name()}),
    });
    let ignored = app
        .0
        .ignored
        .list()
        .into_iter()
        .map(|(name, seen)| json!({"field": name, "why": seen.why, "count": seen.count}));
    let capabilities = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "strict": app.0.config.strict,
        "unknown_fields": if app.0.config.strict { "refused" } else { "ignored" },
        "endpoints": endpoints,
        "models": models.collect::<Vec<_>>(),
        "ignored": ignored.collect::<Vec<_>>(),
    });
    reply::json(capabilities.to_string())
}

fn field(known: &Known) -> Value {
    let path = &known.path;
    match known.fate {
        Fate::Honoured => json!({"field": path, "is": "honoured"}),
        Fate::Ignored(why) => json!({"field": path, "is": "ignored", "why": why}),
        Fate::Refused(why) => json!({"field": path, "is": "refused", "why": why}),
    }
}
