//! What is answered before the models are there: nothing that asks may hang, or take the server for ready.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use super::{App, error};
use crate::protocol::{Kind, Refusal, openai};

/// Seconds until it is worth to ask again.
const LOOK_AGAIN: u32 = 2;

/// 503 with a time to come back until the models are there.
pub(super) async fn turned_away(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.0.models.0.get().is_some() {
        return next.run(request).await;
    }
    let refusal = Refusal::new(Kind::Loading, "the models are still being loaded; try again later").after(LOOK_AGAIN);
    error::response(openai::error::refused(&refusal))
}
