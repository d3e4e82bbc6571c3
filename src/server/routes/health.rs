//! `GET /health`: that the server lives, how its models are, and what their engines do.

use axum::{extract::State, response::IntoResponse};
use serde_json::{Value, json};

use crate::{
    engine::Stats,
    server::{
        App,
        pool::{Entry, State as ModelState},
        reply,
    },
};

pub(super) async fn show(State(app): State<App>) -> impl IntoResponse {
    let entries = app.models().entries();
    let failures: Vec<String> = entries.iter().filter_map(|entry| failure(entry)).collect();
    let mut health = json!({
        "status": if failures.is_empty() { "ok" } else { "degraded" },
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": app.0.started.elapsed().as_secs_f64(),
        "models": entries.iter().map(|entry| model(entry)).collect::<Vec<Value>>(),
    });
    if !failures.is_empty() {
        health["problems"] = json!(failures);
    }
    reply::json(health.to_string())
}

/// What is wrong with a model, if anything is.
fn failure(entry: &Entry) -> Option<String> {
    let why = match entry.state() {
        ModelState::Failed { why, .. } => format!("could not be loaded: {why}"),
        ModelState::Loaded { model, .. } => match model.failure() {
            Some(why) => format!("has failed: {why}"),
            None => format!("makes no embeddings any more: {}", model.embedding_failure()?),
        },
        ModelState::Absent | ModelState::Loading => return None,
    };
    Some(format!("the model {} {why}", entry.name()))
}

fn model(entry: &Entry) -> Value {
    let mut model = json!({"id": entry.name(), "names": entry.names()});
    model["state"] = json!(match entry.state() {
        ModelState::Absent => "not loaded",
        ModelState::Loading => "loading",
        ModelState::Failed { .. } => "failed",
        ModelState::Loaded { model: loaded, .. } => {
            model["kind"] = json!(loaded.kind());
            model["context"] = json!(loaded.context());
            add(&mut model, &loaded.stats());
            if loaded.failure().is_some() { "failed" } else { "loaded" }
        }
    });
    if let Some(failure) = failure(entry) {
        model["problem"] = json!(failure);
    }
    model
}

/// What an engine has done and is doing.
fn add(model: &mut Value, stats: &Stats) {
    for (name, count) in [
        ("running", stats.running),
        ("waiting", stats.waiting),
        ("finished", stats.finished),
        ("cancelled", stats.cancelled),
        ("failed", stats.failed),
        ("prompt_tokens", stats.prompt_tokens),
        ("cached_tokens", stats.cached_tokens),
        ("generated_tokens", stats.generated_tokens),
        ("prefix_entries", stats.prefix_entries),
        ("prefix_bytes", stats.prefix_bytes),
    ] {
        model[name] = json!(count);
    }
    model["prefill_seconds"] = json!(stats.prefill_microseconds as f64 / 1e6);
    model["decode_seconds"] = json!(stats.decode_microseconds as f64 / 1e6);
}
