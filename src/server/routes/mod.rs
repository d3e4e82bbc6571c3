//! The routes, in one table that both answers requests and tells the lost what there is.

mod chat;
mod health;
mod models;

use axum::{
    Router,
    extract::State,
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};

use super::{App, error::Refused};
use crate::protocol::{Kind, Refusal};

/// Characters of a path that an error shows.
const SHOWN: usize = 200;

/// A method, a path as people write it, the path as the router writes it, and who answers.
type Route = (&'static str, &'static str, &'static str, MethodRouter<App>);

fn table() -> [Route; 4] {
    [
        ("GET", "/health", "/health", get(health::show)),
        ("GET", "/v1/models", "/v1/models", get(models::list)),
        // A name may have slashes.
        ("GET", "/v1/models/{id}", "/v1/models/{*id}", get(models::show)),
        ("POST", "/v1/chat/completions", "/v1/chat/completions", post(chat::create)),
    ]
}

pub(super) fn router(app: App) -> Router {
    let router = table().into_iter().fold(Router::new(), |router, (_, _, path, route)| router.route(path, route));
    router.fallback(unknown).method_not_allowed_fallback(wrong_method).with_state(app)
}

async fn unknown(method: Method, uri: Uri) -> Refused {
    let there: Vec<String> = table().iter().map(|(method, path, ..)| format!("{method} {path}")).collect();
    let message = format!("there is no {method} {} here; there are {}", shown(&uri), there.join(", "));
    Refusal::new(Kind::UnknownPath, message).into()
}

/// The router adds which methods there are.
async fn wrong_method(State(_): State<App>, method: Method, uri: Uri) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let message = format!("{} does not take {method}; the header Allow says what it takes", shown(&uri));
    Refused::from(Refusal::new(Kind::Method, message)).into_response()
}

fn shown(uri: &Uri) -> String {
    uri.path().chars().take(SHOWN).collect()
}
