//! `POST /v1/chat/completions`

use axum::{
    extract::{Request, State},
    response::Response,
};

use crate::{
    chat::Answers,
    protocol::{Kind, Refusal, openai},
    server::{App, body, error::Refused, reply},
};

/// An answer that has begun, and how it is to be sent.
struct Begun {
    answers: Answers,
    reply: openai::chat::Reply,
    stream: bool,
}

pub(super) async fn create(State(app): State<App>, request: Request) -> Result<Response, Refused> {
    let config = app.0.config;
    let body = body::read(request, config.max_body).await?;
    // A long conversation takes a while to parse, render and tokenise. Where the client goes away meanwhile, what
    // comes out is dropped, and that cancels it.
    let begun = tokio::task::spawn_blocking(move || begin(&app, &body)).await;
    let Begun { mut answers, reply, stream } =
        begun.map_err(|_| Refusal::new(Kind::Internal, "reading this request failed; please report it"))??;
    match stream {
        true => {
            answers.set_interval(config.stream_interval);
            Ok(reply::streamed(reply, answers, config.keep_alive))
        }
        false => reply::whole(reply, answers).await,
    }
}

fn begin(app: &App, body: &[u8]) -> Result<Begun, Refusal> {
    let asked = openai::chat::Request::from_wire(body)?;
    let entry = app.0.models.find(asked.model.as_deref())?;
    let reply = asked.reply(asked.model.as_deref().unwrap_or(entry.name()));
    let answers = entry.model().generate(&asked.chat).map_err(|error| openai::error::of_chat(&error))?;
    Ok(Begun { answers, reply, stream: asked.stream })
}
