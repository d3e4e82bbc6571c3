//! `GET /health`: that the server lives, and what its engines do.

use axum::{extract::State, response::IntoResponse};
use serde_json::{Value, json};

use crate::server::{App, pool::Entry, reply};

pub(super) async fn show(State(app): State<App>) -> impl IntoResponse {
    let models: Vec<Value> = app.0.models.entries().iter().map(counters).collect();
    let health = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": app.0.started.elapsed().as_secs_f64(),
        "models": models,
    });
    reply::json(health.to_string())
}

fn counters(entry: &Entry) -> Value {
    let stats = entry.model().engine().stats();
    json!({
        "id": entry.name(),
        "names": entry.names(),
        "context": entry.model().context(),
        "running": stats.running,
        "waiting": stats.waiting,
        "finished": stats.finished,
        "cancelled": stats.cancelled,
        "failed": stats.failed,
        "prompt_tokens": stats.prompt_tokens,
        "cached_tokens": stats.cached_tokens,
        "generated_tokens": stats.generated_tokens,
        "prefix_entries": stats.prefix_entries,
        "prefix_bytes": stats.prefix_bytes,
        "prefill_seconds": stats.prefill_microseconds as f64 / 1e6,
        "decode_seconds": stats.decode_microseconds as f64 / 1e6,
    })
}
