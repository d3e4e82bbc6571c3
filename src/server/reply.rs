//! Sends an answer, as it comes or in one piece. Either way, a client that goes away drops the events, and with them
//! the work.

use std::time::Duration;

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::stream::{self, Stream};
use tokio::time::timeout;

use super::error::Refused;
use crate::{
    chat::Events,
    protocol::{Reply, Whole, sse},
};

/// A body of JSON.
pub(super) fn json(body: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], body)
}

/// The whole answer, when it is complete.
pub(super) async fn whole(reply: impl Reply, mut events: Events) -> Result<Response, Refused> {
    let mut whole = Whole::default();
    while let Some(event) = events.next().await {
        whole.add(event);
    }
    Ok(json(reply.body(whole)?).into_response())
}

/// The answer as it comes.
pub(super) fn streamed(reply: impl Reply, events: Events, keep_alive: Duration) -> Response {
    let headers = [
        (header::CONTENT_TYPE, sse::CONTENT_TYPE),
        (header::CACHE_CONTROL, "no-cache"),
        // Proxies that gather a response before they pass it on leave one alone that says so.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames(reply, events, keep_alive))).into_response()
}

fn frames<R: Reply>(
    reply: R,
    events: Events,
    keep_alive: Duration,
) -> impl Stream<Item = Result<String, std::convert::Infallible>> + Send + 'static {
    stream::unfold((reply, events), move |(mut reply, mut events)| async move {
        loop {
            // Nothing is lost where the time is over first: events are taken only when they are there.
            let frames = match timeout(keep_alive, events.next()).await {
                Ok(Some(event)) => reply.frames(event),
                Ok(None) => return None,
                Err(_) => sse::KEEP_ALIVE.to_owned(),
            };
            if !frames.is_empty() {
                return Some((Ok(frames), (reply, events)));
            }
        }
    })
}
