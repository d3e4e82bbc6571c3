//! Answers from played steps, whatever the tokens and however they are cut.

use std::time::Duration;

use super::super::tokenizer::tests::{byte_level, load};
use super::super::{Format, Logprob, Message, Role};
use super::*;
use crate::engine::Limits;
use crate::engine::scripted::{Log, Script, Scripted};

/// An answer whose steps the test plays.
fn events(stop: &[&str]) -> (UnboundedSender<Step>, Events) {
    let (sender, steps) = unbounded_channel();
    let stop: Vec<String> = stop.iter().map(|stop| (*stop).to_owned()).collect();
    let text = Text::new(Arc::new(load(byte_level("smollm"))), &stop);
    (sender, Events { steps: Some(steps), text, ready: VecDeque::new(), prompt_tokens: 5, completion_tokens: 0 })
}

/// Sends a token for each byte.
fn send(sender: &UnboundedSender<Step>, bytes: &[u8]) {
    for &byte in bytes {
        sender.send(Step::Token((3 + u32::from(byte)).into())).unwrap();
    }
}

/// The whole text and the last event.
fn collect(mut events: Events) -> (String, Event) {
    let mut text = String::new();
    loop {
        match events.blocking_next().unwrap() {
            Event::Text(part) => text.push_str(&part),
            Event::Started { prompt_tokens, cached_tokens } => assert_eq!((prompt_tokens, cached_tokens), (5, 2)),
            finished @ Event::Finished(_) => {
                assert_eq!(events.blocking_next(), None);
                return (text, finished);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn check(stop: &[&str], bytes: &[u8], finish: Finish, expected: (&str, Reason, usize)) {
    let (sender, events) = events(stop);
    sender.send(Step::Started { cached: 2 }).unwrap();
    send(&sender, bytes);
    sender.send(Step::Finished(finish)).unwrap();
    let (text, finished) = collect(events);
    let (expected, reason, completion_tokens) = expected;
    assert_eq!(
        (text.as_str(), finished),
        (expected, Event::Finished(Finished { reason, completion_tokens, reasoning_tokens: 0 }))
    );
}

#[test]
fn answers() {
    check(&[], "grüß".as_bytes(), Finish::Stop, ("grüß", Reason::Stop, 6));
    check(&[], b"", Finish::Length, ("", Reason::Length(Cut::Text), 0));
    check(&[], b"a\xe2\x82", Finish::Length, ("a\u{fffd}", Reason::Length(Cut::Text), 3));
    check(&["###"], b"a##", Finish::Stop, ("a##", Reason::Stop, 3));
    check(&["ü"], "grüß".as_bytes(), Finish::Length, ("gr", Reason::Stop, 4));
    check(&["\u{fffd}"], b"a\xe2", Finish::Length, ("a", Reason::Stop, 2));
    check(&["x"], b"abx", Finish::Failed("no memory".into()), ("ab", Reason::Stop, 3));
    check(&[], b"a", Finish::Failed("no memory".into()), ("a", Reason::Failed("no memory".into()), 1));
    check(&[], b"a", Finish::Closing, ("a", Reason::Closing, 1));
}

#[test]
fn a_stop_string_cancels_the_job() {
    let (sender, mut events) = events(&["b"]);
    send(&sender, b"ab");
    assert_eq!(events.blocking_next(), Some(Event::Text("a".into())));
    assert!(!sender.is_closed());
    assert_eq!(
        events.blocking_next(),
        Some(Event::Finished(Finished { reason: Reason::Stop, completion_tokens: 2, reasoning_tokens: 0 }))
    );
    assert!(sender.is_closed());
    assert_eq!(events.blocking_next(), None);
}

#[test]
fn dropping_cancels_the_job() {
    let (sender, events) = events(&[]);
    drop(events);
    assert!(sender.is_closed());
}

#[test]
fn an_engine_that_vanishes_fails_the_answer() {
    let (sender, events) = events(&[]);
    sender.send(Step::Started { cached: 2 }).unwrap();
    send(&sender, b"a");
    drop(sender);
    let (text, finished) = collect(events);
    assert_eq!(text, "a");
    assert!(
        matches!(
            finished,
            Event::Finished(Finished { reason: Reason::Failed(_), completion_tokens: 1, reasoning_tokens: 0 })
        ),
        "{finished:?}"
    );
}

#[test]
fn text_comes_as_soon_as_it_is_certain() {
    let (sender, mut events) = events(&["###"]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    send(&sender, b"a#b");
    let mut next = || runtime.block_on(events.next()).unwrap();
    assert_eq!([next(), next()], [Event::Text("a".into()), Event::Text("#b".into())]);
}

const TEMPLATE: &str = "{{ messages[0].content }}";

/// A model of 32 tokens of context that answers "Hé!" and ends, byte by byte.
fn model(template: Option<&str>, limits: Limits) -> (Model, Log) {
    let answer = "Hé!".bytes().map(|byte| 3 + u32::from(byte)).chain([1]).collect();
    let script = Script { answer, vocabulary: 261, context: 32, ..Script::default() };
    let log = script.log.clone();
    let engine = Engine::start(limits, move || Ok::<_, String>(Scripted(script))).unwrap();
    let template = template.map(|source| Template::new(source.to_owned(), None, None).unwrap());
    (Model::new(load(byte_level("smollm")), template, Overrides::default(), vec![1], engine), log)
}

fn ask(content: &str) -> Request {
    let message = Message::new(Role::User, content);
    Request { messages: vec![message], ..Request::default() }
}

/// The whole answer: what `Started` says, the text, what `Finished` says.
fn answer(model: &Model, request: &Request) -> (usize, String, Reason, usize) {
    let (mut events, mut prompt, mut text) = (model.generate(request).unwrap(), 0, String::new());
    while let Some(event) = events.blocking_next() {
        match event {
            Event::Started { prompt_tokens, .. } => prompt = prompt_tokens,
            Event::Text(part) => text.push_str(&part),
            Event::Finished(Finished { reason, completion_tokens, .. }) => {
                return (prompt, text, reason, completion_tokens);
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("an answer without an end");
}

#[test]
fn a_model_answers() {
    let (model, _) = model(Some(TEMPLATE), Limits::default());
    assert_eq!(model.prompt(&ask("hi<|e|>")).unwrap(), [3 + 104, 3 + 105, 1]);
    assert_eq!(answer(&model, &ask("hi")), (2, "Hé!".into(), Reason::Stop, 4));
    let short = Request { max_tokens: Some(2), ..ask("hi") };
    assert_eq!(answer(&model, &short), (2, "H\u{fffd}".into(), Reason::Length(Cut::Text), 2));
    let stopped = Request { stop: vec!["é".into()], ..ask("hi") };
    assert_eq!(answer(&model, &stopped), (2, "H".into(), Reason::Stop, 3));
}

#[test]
fn an_answer_is_cut_to_what_the_context_leaves() {
    let (model, _) = model(Some(TEMPLATE), Limits::default());
    let request = Request { max_tokens: Some(1000), ..ask(&"x".repeat(30)) };
    assert_eq!(answer(&model, &request), (30, "H\u{fffd}".into(), Reason::Length(Cut::Text), 2));
}

#[test]
fn requests_that_are_refused() {
    let check = |template: Option<&str>, request: Request, expected: &str, piece: &str| {
        let (model, log) = model(template, Limits::default());
        match model.generate(&request) {
            Err(Error::Request { field, message }) => {
                assert_eq!(field, expected);
                assert!(message.contains(piece), "{message}");
            }
            other => panic!("{other:?}"),
        }
        assert!(log.passes().is_empty());
    };
    check(Some(TEMPLATE), Request::default(), "messages", "no messages");
    check(None, ask("hi"), "messages", "no chat template");
    check(Some(TEMPLATE), ask(""), "messages", "makes nothing");
    check(Some("{{ raise_exception('no!') }}"), ask("hi"), "messages", "no!");
    check(Some(TEMPLATE), Request { max_tokens: Some(0), ..ask("hi") }, "max_tokens", "at least 1");
    let sampling = Overrides { logit_bias: vec![(261, 1.0)], ..Overrides::default() };
    check(Some(TEMPLATE), Request { sampling, ..ask("hi") }, "logit_bias", "token 261");
    check(Some(TEMPLATE), Request { logprobs: Some(21), ..ask("hi") }, "top_logprobs", "limit is 20");
    let format = Format::Regex("(".into());
    check(Some(TEMPLATE), Request { format, ..ask("hi") }, "response_format", "unclosed");
}

#[test]
fn an_engine_that_takes_no_more() {
    let (model, _) = model(Some(TEMPLATE), Limits { rows: 0, waiting: 0, ..Limits::default() });
    assert_eq!(model.generate(&ask("hi")).unwrap_err(), Error::Busy { waiting: 0, limit: 0 });
    model.engine().close(Duration::ZERO);
    assert_eq!(model.generate(&ask("hi")).unwrap_err(), Error::Closing);
}

#[test]
fn a_prompt_that_fills_the_context_is_refused_with_both_numbers() {
    let (model, log) = model(Some(TEMPLATE), Limits::default());
    assert_eq!(model.generate(&ask(&"x".repeat(32))).unwrap_err(), Error::TooLong { prompt: 32, context: 32 });
    assert!(log.passes().is_empty());
}

/// A model that says what it is let say, of the bytes from the lowest on.
fn guided(format: Format, logprobs: Option<usize>) -> (String, Vec<Logprob>, Reason) {
    let script = Script { answer: vec![3 + 97], vocabulary: 261, context: 64, ..Script::default() };
    let engine = Engine::start(Limits::default(), move || Ok::<_, String>(Scripted(script))).unwrap();
    let template = Template::new(TEMPLATE.to_owned(), None, None).unwrap();
    let model = Model::new(load(byte_level("smollm")), Some(template), Overrides::default(), vec![1], engine);
    let request = Request { format, logprobs, max_tokens: Some(14), ..ask("hi") };
    let (mut events, mut text, mut told) = (model.generate(&request).unwrap(), String::new(), Vec::new());
    loop {
        match events.blocking_next().unwrap() {
            Event::Started { .. } => {}
            Event::Text(part) => text.push_str(&part),
            Event::Logprob(logprob) => told.push(logprob),
            Event::Finished(finished) => return (text, told, finished.reason),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_answer_is_what_its_format_says() {
    let says = |format: Format| {
        let (text, told, reason) = guided(format, None);
        assert_eq!(told, []);
        (text, reason)
    };
    assert_eq!(says(Format::Text), ("a".repeat(14), Reason::Length(Cut::Text)));
    assert_eq!(says(Format::Regex("b|a{5}".into())), ("aaaaa".into(), Reason::Stop));
    assert_eq!(says(Format::Choice(vec!["no".into(), "yes".into()])), ("no".into(), Reason::Stop));
    let schema = serde_json::json!({"type": "object", "properties": {"x": {"enum": ["b", 7]}}, "required": ["x"], "additionalProperties": false});
    assert_eq!(says(Format::JsonSchema(schema)), ("{\t\"x\"\t:\t\"b\"}".into(), Reason::Stop));
}

#[test]
fn each_token_is_told_with_its_log_probability() {
    let (text, told, _) = guided(Format::Regex("a<.b".into()), Some(2));
    assert_eq!(text, "a<ab");
    let spelled: Vec<u8> = told.iter().flat_map(|logprob| logprob.token.bytes.clone()).collect();
    assert_eq!(spelled, b"a<ab");
    let ids = |logprob: &Logprob| logprob.top.iter().map(|token| token.id).collect::<Vec<_>>();
    assert_eq!(told.iter().map(ids).next(), Some(vec![3 + 97, 3 + 98]));
}

#[test]
fn a_recommendation_fills_what_the_checkpoint_leaves_open() {
    let (mut model, _) = model(Some(TEMPLATE), Limits::default());
    let temperature = |t| Overrides { temperature: Some(t), ..Overrides::default() };
    model.recommend(&temperature(0.2));
    model.recommend(&Overrides { top_k: Some(7), ..temperature(0.9) });
    let sampling = model.job(&ask("hi"), vec![1], tokio::sync::mpsc::unbounded_channel().0).unwrap().sampling;
    assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p), (0.2, 7, 1.0));
}
