//! The one handler of every endpoint that asks a model for something: body → room → request → work → answer, in the
//! words of whatever wire it is.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};

use crate::{
    protocol::{Ignored, Kind, Notes, Peek, Refusal, Reply, Wire},
    server::{
        App, body, error, ignored,
        pool::Entry,
        reply,
        task::{Events, Task},
    },
};

/// What a wire's task is turned into.
type EventsOf<W> = <<W as Wire>::Task as Task>::Events;

/// An answer that has begun, and how it is to be sent.
struct Answering<W: Wire<Task: Task>> {
    begun: reply::Begun<EventsOf<W>>,
    reply: W::Reply,
    stream: bool,
    ignored: Vec<Ignored>,
}

/// Room that was made for a request before anything was made of it.
struct Admitted<T: Task> {
    entry: Arc<Entry>,
    model: T::Model,
    permit: T::Permit,
}

pub(super) async fn answer<W>(State(app): State<App>, request: Request) -> Response
where
    W: Wire<Task: Task>,
    EventsOf<W>: Events<Event = <W::Reply as Reply>::Event>,
{
    match begin::<W>(&app, request).await {
        Ok(answering) => send(&app, answering).await,
        Err(refusal) => error::response(W::refused(&refusal)),
    }
}

async fn begin<W: Wire<Task: Task>>(app: &App, request: Request) -> Result<Answering<W>, Refusal> {
    let body = body::read(request, (app.0.config.max_body, app.0.config.body_patience)).await?;
    // Neither a glance at 32 MB nor reading, rendering and tokenising a long conversation is for the runtime's threads.
    // Where the client goes away meanwhile, what comes out is dropped, and that cancels it.
    let (peek, body) = aside(move || (peek::<W>(&body), body)).await?;
    let peek = peek?;
    let admitted = admit::<W>(app, &peek).await?;
    let strict = app.0.config.strict;
    aside(move || start::<W>(admitted, &body, strict)).await?
}

/// What decides whether there is room. Reading what is no request at all says what is wrong with it.
fn peek<W: Wire>(body: &[u8]) -> Result<Peek, Refusal> {
    match W::peek(body) {
        Some(peek) => Ok(peek),
        None => W::from_wire(body, "", &Notes::default()).map(|_| Peek { model: None, answers: 1 }),
    }
}

/// Finds the model and takes room for the answers, or says no at next to no cost.
async fn admit<W: Wire<Task: Task>>(app: &App, peek: &Peek) -> Result<Admitted<W::Task>, Refusal> {
    let of_model = |refusal: Refusal| refusal.at(W::field_name(crate::chat::Field::Model));
    let entry = app.models().find(peek.model.as_deref()).map_err(of_model)?;
    let loaded = entry.loaded(app.0.config.load_patience).await?;
    let kind = loaded.kind();
    let model = W::Task::model(loaded).ok_or_else(|| of_model(app.models().wrong_kind(entry, kind, W::Task::NAME)))?;
    let permit = W::Task::reserve(&model, peek.answers).map_err(|error| entry.refusal(&error, W::field_name))?;
    Ok(Admitted { entry: Arc::clone(entry), model, permit })
}

/// Reads the request and begins its work.
fn start<W: Wire<Task: Task>>(admitted: Admitted<W::Task>, body: &[u8], strict: bool) -> Result<Answering<W>, Refusal> {
    let Admitted { entry, model, permit } = admitted;
    let notes = Notes::new(strict);
    let asked = W::from_wire(body, entry.name(), &notes)?;
    let events = asked.task.begin(&model, permit).map_err(|error| entry.refusal(&error, W::field_name))?;
    let mut ignored = notes.ignored();
    ignored.extend(events.ignored().into_iter().map(|field| Ignored::by_model(W::field_name(field))));
    Ok(Answering { begun: reply::Begun { events, entry }, reply: asked.reply, stream: asked.stream, ignored })
}

async fn send<W>(app: &App, answering: Answering<W>) -> Response
where
    W: Wire<Task: Task>,
    EventsOf<W>: Events<Event = <W::Reply as Reply>::Event>,
{
    let Answering { mut begun, reply, stream, ignored } = answering;
    let config = &app.0.config;
    app.0.ignored.note(&ignored, &config.warn);
    let response = if stream {
        begun.events.set_interval(config.stream_interval);
        reply::streamed::<W, _>(reply, begun, config.keep_alive)
    } else {
        match reply::whole(reply, begun, W::field_name).await {
            Ok(response) => response,
            Err(refusal) => error::response(W::refused(&refusal)),
        }
    };
    ignored::told(response, &ignored)
}

/// Runs on a thread that may block.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Refusal::new(Kind::Internal, "reading this request failed; please report it"))
}
