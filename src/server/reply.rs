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
    chat::Answers,
    protocol::{Reply, Whole, sse},
};

/// A body of JSON.
pub(super) fn json(body: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], body)
}

/// The whole answer, when it is complete.
pub(super) async fn whole(reply: impl Reply, mut answers: Answers) -> Result<Response, Refused> {
    let mut wholes = vec![Whole::default(); answers.count()];
    while let Some((answer, event)) = answers.next().await {
        wholes[answer].add(event);
    }
    Ok(json(reply.body(wholes)?).into_response())
}

/// The answer as it comes.
pub(super) fn streamed(reply: impl Reply, answers: Answers, keep_alive: Duration) -> Response {
    let headers = [
        (header::CONTENT_TYPE, sse::CONTENT_TYPE),
        (header::CACHE_CONTROL, "no-cache"),
        // Proxies that gather a response before they pass it on leave one alone that says so.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames(reply, answers, keep_alive))).into_response()
}

fn frames<R: Reply>(
    reply: R,
    answers: Answers,
    keep_alive: Duration,
) -> impl Stream<Item = Result<String, std::convert::Infallible>> + Send + 'static {
    stream::unfold((reply, answers), move |(mut reply, mut answers)| async move {
        loop {
            // Nothing is lost where the time is over first: events are taken only when they are there.
            let frames = match timeout(keep_alive, answers.next()).await {
                Ok(Some((answer, event))) => reply.frames(answer, event),
                Ok(None) => return None,
                Err(_) => sse::KEEP_ALIVE.to_owned(),
            };
            if !frames.is_empty() {
                return Some((Ok(frames), (reply, answers)));
            }
        }
    })
}
