//! The routes, in one table that both answers requests and says what there is to whoever asks for something else.

mod answer;
mod capabilities;
mod health;
mod models;

use axum::{
    Router,
    http::{Method, StatusCode, Uri},
    middleware,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};

use super::{App, cors, error, loading, task};
use crate::protocol::{Kind, Known, Refusal, Refused, Reply, Wire, openai};

/// Characters of a path that an error shows.
const SHOWN: usize = 200;

/// One path with one method.
pub(super) struct Route {
    method: &'static str,
    /// As people write it.
    path: &'static str,
    /// As the router writes it.
    pattern: &'static str,
    handler: MethodRouter<App>,
    /// The fields of its requests, where it has any.
    fields: Option<fn() -> Vec<Known>>,
    /// In whose words it refuses.
    refused: fn(&Refusal) -> Refused,
}

fn table() -> Vec<Route> {
    vec![
        plain("/health", "/health", get(health::show)),
        plain("/v1/capabilities", "/v1/capabilities", get(capabilities::show)),
        plain("/v1/models", "/v1/models", get(models::list)),
        // A name may have slashes.
        plain("/v1/models/{id}", "/v1/models/{*id}", get(models::show)),
        wire::<openai::ChatCompletions>("/v1/chat/completions"),
        wire::<openai::EmbeddingsEndpoint>("/v1/embeddings"),
    ]
}

fn plain(path: &'static str, pattern: &'static str, handler: MethodRouter<App>) -> Route {
    Route { method: "GET", path, pattern, handler, fields: None, refused: openai::error::refused }
}

/// An endpoint that asks a model for something.
pub(super) fn wire<W>(path: &'static str) -> Route
where
    W: Wire<Task: task::Task>,
    <W::Task as task::Task>::Events: task::Events<Event = <W::Reply as Reply>::Event>,
{
    Route {
        method: "POST",
        path,
        pattern: path,
        handler: post(answer::answer::<W>),
        fields: Some(W::known_fields),
        refused: W::refused,
    }
}

pub(super) fn router(app: App) -> Router {
    router_of(table(), app)
}

pub(super) fn router_of(table: Vec<Route>, app: App) -> Router {
    let words: Vec<_> = table.iter().map(|route| (route.path, route.refused)).collect();
    let router = table.into_iter().fold(Router::new(), |router, route| router.route(route.pattern, route.handler));
    let wrong = move |method: Method, uri: Uri| {
        let row = words.iter().find(|(path, _)| *path == uri.path());
        std::future::ready(wrong_method(&method, &uri, row.map_or(openai::error::refused, |row| row.1)))
    };
    let router = router.fallback(unknown).method_not_allowed_fallback(wrong);
    let cross_origin = middleware::from_fn_with_state(app.clone(), cors::cross_origin);
    let loading = middleware::from_fn_with_state(app.clone(), loading::turned_away);
    router.layer(loading).layer(cross_origin).with_state(app)
}

async fn unknown(method: Method, uri: Uri) -> Response {
    let there: Vec<String> = table().iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    let message = format!("there is no {method} {} here; there are {}", shown(&uri), there.join(", "));
    refused(&Refusal::new(Kind::UnknownPath, message))
}

/// A refusal where no endpoint says in whose words.
fn refused(refusal: &Refusal) -> Response {
    error::response(openai::error::refused(refusal))
}

/// The router adds which methods there are.
fn wrong_method(method: &Method, uri: &Uri, refused: fn(&Refusal) -> Refused) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let message = format!("{} does not take {method}; the header Allow says what it takes", shown(uri));
    error::response(refused(&Refusal::new(Kind::Method, message)))
}

fn shown(uri: &Uri) -> String {
    uri.path().chars().take(SHOWN).collect()
}
