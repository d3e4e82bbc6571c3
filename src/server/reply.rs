//! Sends an answer, as it comes or in one piece. Either way, a client that goes away drops the events, and with them
//! the work.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::stream::{self, Stream};
use tokio::time::timeout;

use super::{pool::Entry, task::Events};
use crate::{
    chat::Field,
    protocol::{Fold, Refusal, Reply, Wire},
};

/// Events of a task, and whose they are.
pub(super) struct Begun<E> {
    pub events: E,
    pub entry: Arc<Entry>,
}

/// A body of JSON.
pub(super) fn json(body: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], body)
}

/// The whole answer, when it is complete.
pub(super) async fn whole<R, E>(reply: R, mut begun: Begun<E>, name: fn(Field) -> String) -> Result<Response, Refusal>
where
    R: Reply,
    E: Events<Event = R::Event>,
{
    let mut answers: Vec<R::Whole> = Vec::new();
    answers.resize_with(begun.events.count(), Default::default);
    loop {
        match begun.events.next().await {
            Ok(Some((answer, event))) => answers[answer].add(event),
            Ok(None) => return Ok(json(reply.body(answers)?).into_response()),
            Err(error) => return Err(begun.entry.refusal(&error, name)),
        }
    }
}

/// The answer as it comes.
pub(super) fn streamed<W: Wire, E>(reply: W::Reply, begun: Begun<E>, keep_alive: Duration) -> Response
where
    E: Events<Event = <W::Reply as Reply>::Event>,
{
    let headers = [
        (header::CONTENT_TYPE, W::STREAM_TYPE),
        (header::CACHE_CONTROL, "no-cache"),
        // Proxies that gather a response before they pass it on leave one alone that says so.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames::<W, E>(reply, begun, keep_alive))).into_response()
}

fn frames<W: Wire, E>(
    reply: W::Reply,
    begun: Begun<E>,
    keep_alive: Duration,
) -> impl Stream<Item = Result<String, Infallible>> + Send + 'static
where
    E: Events<Event = <W::Reply as Reply>::Event>,
{
    stream::unfold((reply, begun), move |(mut reply, mut begun)| async move {
        loop {
            // Nothing is lost where the time is over first: events are taken only when they are there.
            let frames = match timeout(keep_alive, begun.events.next()).await {
                Ok(Ok(Some((answer, event)))) => reply.frames(answer, event),
                Ok(Ok(None) | Err(_)) => return None,
                Err(_) => W::KEEP_ALIVE.to_owned(),
            };
            if !frames.is_empty() {
                return Some((Ok(frames), (reply, begun)));
            }
        }
    })
}
