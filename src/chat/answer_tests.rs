//! Answers from played steps, whatever the tokens and however they are cut.

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;
use crate::chat::{
    Beginning, Dialect, Tool, ToolEvent,
    prompt::tokenizer::tests::{byte_level, load},
};
use crate::engine::TokenId;

/// An answer whose steps the test plays.
fn answer_to(stop: &[&str], tools: &[Tool], parallel_calls: ParallelCalls) -> (UnboundedSender<Step>, Answers) {
    let (sender, steps) = unbounded_channel();
    let stop: Vec<String> = stop.iter().map(|stop| (*stop).to_owned()).collect();
    let dialect = Dialect::named("hermes").unwrap();
    let beginning = Beginning { tools, phase: Phase::Text, special_tokens: Default::default(), ids: 7 };
    let reader = Reader {
        tokenizer: Arc::new(load(byte_level("smollm"))),
        decoder: Decoder::default(),
        splitter: Splitter::new(dialect, beginning),
        stop: StopStrings::new(&stop),
        loops: Some(Loops::new()),
        parallel_calls,
        repeats: Repeats::default(),
    };
    (sender, Answers::new(vec![Answer::new(steps, reader, 5)]))
}

fn events(stop: &[&str]) -> (UnboundedSender<Step>, Answers) {
    answer_to(stop, &[], ParallelCalls::Allowed)
}

/// The next event of the only answer.
fn next(answers: &mut Answers) -> Option<Event> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(answers.next()).map(|(answer, event)| {
        assert_eq!(answer, 0);
        event
    })
}

/// Sends a token for each byte.
fn send(sender: &UnboundedSender<Step>, bytes: &[u8]) {
    for &byte in bytes {
        sender.send(Step::Token(TokenId(3 + u32::from(byte)).into())).unwrap();
    }
}

/// The whole text and the last event.
fn collect(mut events: Answers) -> (String, Event) {
    let mut text = String::new();
    loop {
        match next(&mut events).unwrap() {
            Event::Text(part) => text.push_str(&part),
            Event::Started { prompt_tokens, cached_tokens } => assert_eq!((prompt_tokens, cached_tokens), (5, 2)),
            finished @ Event::Finished(_) => {
                assert_eq!(next(&mut events), None);
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
        (expected, Event::Finished(Finished { reason, completion_tokens, reasoning_tokens: 0, rejected: Vec::new() }))
    );
}

#[test]
fn answers() {
    check(&[], "grüß".as_bytes(), Finish::Stop, ("grüß", Reason::Stop, 6));
    check(&[], b"", Finish::Length, ("", Reason::Length(Phase::Text), 0));
    check(&[], b"a\xe2\x82", Finish::Length, ("a\u{fffd}", Reason::Length(Phase::Text), 3));
    check(&["###"], b"a##", Finish::Stop, ("a##", Reason::Stop, 3));
    check(&["ü"], "grüß".as_bytes(), Finish::Length, ("gr", Reason::StopString("ü".into()), 4));
    check(&["\u{fffd}"], b"a\xe2", Finish::Length, ("a", Reason::StopString("\u{fffd}".into()), 2));
    check(&["x"], b"abx", Finish::Failed("no memory".into()), ("ab", Reason::StopString("x".into()), 3));
    check(&[], b"a", Finish::Failed("no memory".into()), ("a", Reason::Failed("no memory".into()), 1));
    check(&[], b"a", Finish::Closing, ("a", Reason::Closing, 1));
}

#[test]
fn a_stop_string_cancels_the_job() {
    let (sender, mut events) = events(&["b"]);
    send(&sender, b"ab");
    assert_eq!(next(&mut events), Some(Event::Text("a".into())));
    assert!(!sender.is_closed());
    assert_eq!(
        next(&mut events),
        Some(Event::Finished(Finished {
            reason: Reason::StopString("b".into()),
            completion_tokens: 2,
            reasoning_tokens: 0,
            rejected: Vec::new()
        }))
    );
    assert!(sender.is_closed());
    assert_eq!(next(&mut events), None);
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
            Event::Finished(Finished { reason: Reason::Failed(_), completion_tokens: 1, reasoning_tokens: 0, .. })
        ),
        "{finished:?}"
    );
}

#[test]
fn text_comes_as_soon_as_it_is_certain() {
    let (sender, mut events) = events(&["###"]);
    send(&sender, b"a#b");
    let mut next = || next(&mut events).unwrap();
    assert_eq!([next(), next()], [Event::Text("a".into()), Event::Text("#b".into())]);
}

/// What an answer of these bytes says: thoughts, text, calls (name, arguments, whether it ended) and the end.
fn said(
    stop: &[&str],
    parallel: ParallelCalls,
    bytes: &[u8],
    finish: Finish,
) -> (String, String, Vec<(String, String, bool)>, Finished) {
    let tool = Tool::new("f", serde_json::json!({"type": "object", "properties": {"x": {"type": "string"}}}));
    let (sender, mut events) = answer_to(stop, &[tool], parallel);
    send(&sender, bytes);
    let _ = sender.send(Step::Finished(finish));
    let (mut reasoning, mut text, mut calls) = (String::new(), String::new(), Vec::new());
    loop {
        match next(&mut events).unwrap() {
            Event::Reasoning(part) => reasoning += &part,
            Event::Text(part) => text += &part,
            Event::ToolCall(ToolEvent::Begun { name, .. }) => calls.push((name, String::new(), false)),
            Event::ToolCall(ToolEvent::Arguments { index, fragment }) => calls[index].1 += &fragment,
            Event::ToolCall(ToolEvent::Ended { index }) => calls[index].2 = true,
            Event::Finished(finished) => return (reasoning, text, calls, finished),
            other => panic!("{other:?}"),
        }
    }
}

const CALL: &str = "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"stop here\"}}</tool_call>";

#[test]
fn calls_end_an_answer_with_their_reason() {
    let call = ("f".to_owned(), "{\"x\":\"stop here\"}".to_owned(), true);
    let (_, text, calls, finished) = said(&[], ParallelCalls::Allowed, format!("Hi. {CALL}").as_bytes(), Finish::Stop);
    assert_eq!((text.as_str(), calls, finished.reason), ("Hi.", vec![call.clone()], Reason::ToolCalls));
    // One call is all there is where only one is wanted.
    let twice = format!("{CALL}\n{CALL}");
    let (_, _, calls, finished) = said(&[], ParallelCalls::Forbidden, twice.as_bytes(), Finish::Stop);
    assert_eq!((calls.len(), finished.reason), (1, Reason::ToolCalls));
    assert_eq!(said(&[], ParallelCalls::Allowed, twice.as_bytes(), Finish::Stop).2.len(), 2);
    // Cut in the middle of the value.
    let (_, text, calls, finished) = said(&[], ParallelCalls::Allowed, &CALL.as_bytes()[..50], Finish::Length);
    assert_eq!((text.as_str(), &calls[0].1[..8], calls[0].2), ("", "{\"x\":\"st", false));
    assert_eq!(finished.reason, Reason::Length(Phase::ToolCall));
}

/// Where a request does not say whether calls may be several, no call is made twice, however the tokens fall and the
/// answer ends; others come after each other, and what was begun of one is passed on.
#[test]
fn no_call_is_made_twice() {
    let call = |x: &str| format!("<tool_call>{{\"name\": \"f\", \"arguments\": {{\"x\": \"{x}\"}}}}</tool_call>");
    let cut = |text: String, length: usize| text[..text.len() - length].to_owned();
    for (answer, finish, expected, reason) in [
        (call("a").repeat(8), Finish::Stop, vec!["a"], Reason::ToolCalls),
        (format!("{}\n{} and again", call("a"), call("a")), Finish::Length, vec!["a"], Reason::ToolCalls),
        (
            format!("{}{}{}{}", call("a"), call("ab"), call("a"), call("c")),
            Finish::Stop,
            vec!["a", "ab"],
            Reason::ToolCalls,
        ),
        (format!("{}{}", call("ab"), call("a")), Finish::Stop, vec!["ab", "a"], Reason::ToolCalls),
        (cut(call("ab").repeat(2), 16), Finish::Length, vec!["ab", "a"], Reason::Length(Phase::ToolCall)),
    ] {
        let (_, text, calls, finished) = said(&[], ParallelCalls::Distinct, answer.as_bytes(), finish);
        let values: Vec<&str> = calls.iter().map(|call| call.1.split('"').nth(3).unwrap()).collect();
        assert_eq!((values, finished.reason, text.as_str()), (expected, reason, ""), "{answer}");
    }
}

#[test]
fn stop_strings_see_the_answer_only() {
    let bytes = format!("<think>stop? no</think>{CALL}Now stop.");
    let (reasoning, text, calls, finished) = said(&["stop"], ParallelCalls::Allowed, bytes.as_bytes(), Finish::Stop);
    assert_eq!((reasoning.as_str(), text.as_str(), calls.len()), ("stop? no", "Now ", 1));
    assert_eq!(finished.reason, Reason::StopString("stop".into()));
    // All tokens between the marks, and the mark itself, are thoughts.
    assert_eq!(finished.reasoning_tokens, "stop? no</think>".len());
}

#[test]
fn a_cut_says_where() {
    assert_eq!(
        said(&[], ParallelCalls::Allowed, b"<think>hm", Finish::Length).3.reason,
        Reason::Length(Phase::Reasoning)
    );
    assert_eq!(
        said(&[], ParallelCalls::Allowed, b"<think>hm</think>so", Finish::Length).3.reason,
        Reason::Length(Phase::Text)
    );
}

#[test]
fn a_loop_is_stopped_and_marked() {
    let (_, text, _, finished) = said(&[], ParallelCalls::Allowed, &b"ha ".repeat(1000), Finish::Stop);
    assert_eq!((text.len(), finished.reason), (403, Reason::Loop(Phase::Text)));
    let calls = "<tool_call>{\"name\": \"f\"}</tool_call>".repeat(100);
    let (_, text, calls, finished) = said(&[], ParallelCalls::Allowed, calls.as_bytes(), Finish::Stop);
    assert_eq!((text.as_str(), calls.iter().all(|call| call.2), finished.reason), ("", true, Reason::ToolCalls));
    let thought = [b"<think>".to_vec(), b"ha ".repeat(1000)].concat();
    assert_eq!(said(&[], ParallelCalls::Allowed, &thought, Finish::Stop).3.reason, Reason::Loop(Phase::Reasoning));
}

/// Two answers in one thread, piece by piece: what one has read says nothing about the other.
#[test]
fn answers_share_no_state() {
    let (first, mut one) = answer_to(&[], &[], ParallelCalls::Allowed);
    let (second, mut two) = answer_to(&[], &[], ParallelCalls::Allowed);
    for (a, b) in "<think>one</think>1".bytes().zip("plain two <think> x".bytes()) {
        send(&first, &[a]);
        send(&second, &[b]);
    }
    let collect = |sender: UnboundedSender<Step>, answers: &mut Answers| {
        sender.send(Step::Finished(Finish::Stop)).unwrap();
        let (mut reasoning, mut text) = (String::new(), String::new());
        while let Some(event) = next(answers) {
            match event {
                Event::Reasoning(part) => reasoning += &part,
                Event::Text(part) => text += &part,
                _ => {}
            }
        }
        (reasoning, text)
    };
    assert_eq!(collect(first, &mut one), ("one".to_owned(), "1".to_owned()));
    assert_eq!(collect(second, &mut two), (String::new(), "plain two <think> x".to_owned()));
}

/// Chunks of several tokens say what chunks of one do, the first of them at once.
#[test]
fn tokens_told_together() {
    for interval in [1, 2, 5, 100] {
        let (sender, mut answers) = events(&[]);
        answers.set_interval(interval);
        sender.send(Step::Started { cached: 2 }).unwrap();
        send(&sender, b"abcdefgh");
        sender.send(Step::Finished(Finish::Stop)).unwrap();
        let mut texts = Vec::new();
        while let Some(event) = next(&mut answers) {
            texts.extend(match event {
                Event::Text(text) => Some(text),
                _ => None,
            });
        }
        let mut expected: Vec<String> = vec!["a".into()];
        expected.extend("bcdefgh".as_bytes().chunks(interval).map(|text| String::from_utf8(text.to_vec()).unwrap()));
        assert_eq!(texts, expected);
    }
}

#[test]
fn undeclared_tools_are_told() {
    let tool = Tool::new("f", serde_json::json!({}));
    let (sender, answers) = answer_to(&[], &[tool], ParallelCalls::Allowed);
    let text = "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>";
    sender.send(Step::Started { cached: 2 }).unwrap();
    send(&sender, text.as_bytes());
    sender.send(Step::Finished(Finish::Stop)).unwrap();
    let (said, finished) = collect(answers);
    let Event::Finished(Finished { reason, rejected, .. }) = finished else { panic!("{finished:?}") };
    assert_eq!((said.as_str(), reason, rejected), (text, Reason::Stop, vec!["g".to_owned()]));
}
