//! Requests to a model of scripted tokens.

use std::{num::NonZeroUsize, time::Duration};

use super::*;
use crate::chat::{
    Event, Finished, Format, Logprob, Message, ParallelCalls, Reason, Role, Thinking, Tool, ToolChoice, ToolEvent,
    prompt::tokenizer::tests::{byte_level, load, sentence_piece},
};
use crate::engine::{
    Advice, Device, Limits,
    scripted::{Log, Script, Scripted},
    text,
};

const TEMPLATE: &str = "{{ messages[0].content }}";

/// The scripted runner on a device of its own.
fn loaded(limits: Limits, script: Script) -> Handle<Job> {
    let loading = text::load_at_once(&Device::start(), limits, move || Ok::<_, String>(Scripted::new(script)));
    loading.wait().unwrap()
}

/// A model of 32 tokens of context that answers "Hé!" and ends, byte by byte.
fn model(template: Option<&str>, limits: Limits) -> (Model, Log) {
    let answer = "Hé!".bytes().map(|byte| 3 + u32::from(byte)).chain([1]).collect();
    let script = Script { answer, vocabulary: 261, context: 32, ..Script::default() };
    let log = script.log.clone();
    let engine = loaded(limits, script);
    let template = template.map(|source| Template::new(source.to_owned(), None, None).unwrap());
    (Model::new(ModelParts::new(load(byte_level("smollm")), template, vec![1]), engine).unwrap(), log)
}

fn ask(content: &str) -> Request {
    let message = Message::new(Role::User, content);
    Request { parallel_calls: ParallelCalls::Forbidden, ..Request::new(vec![message]) }
}

/// The whole answer: what `Started` says, the text, what `Finished` says.
fn answer(model: &Model, request: &Request) -> (usize, String, Reason, usize) {
    let (mut events, mut prompt, mut text) = (model.generate(request).unwrap(), 0, String::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while let Some((_, event)) = runtime.block_on(events.next()) {
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
    assert_eq!(model.prompt(&ask("hi")).unwrap().tokens, [3 + 104, 3 + 105]);
    assert_eq!(answer(&model, &ask("hi")), (2, "Hé!".into(), Reason::Stop, 4));
    let short = Request { max_tokens: Some(2), ..ask("hi") };
    assert_eq!(answer(&model, &short), (2, "H\u{fffd}".into(), Reason::Length(Phase::Text), 2));
    let stopped = Request { stop: vec!["é".into()], ..ask("hi") };
    assert_eq!(answer(&model, &stopped), (2, "H".into(), Reason::StopString("é".into()), 3));
}

#[test]
fn an_answer_is_cut_to_what_the_context_leaves() {
    let (model, _) = model(Some(TEMPLATE), Limits::default());
    let request = Request { max_tokens: Some(1000), ..ask(&"x".repeat(30)) };
    assert_eq!(answer(&model, &request), (30, "H\u{fffd}".into(), Reason::Length(Phase::Text), 2));
}

#[test]
fn requests_that_are_refused() {
    let check = |template: Option<&str>, request: Request, expected: Field, piece: &str| {
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
    check(Some(TEMPLATE), Request::new(Vec::new()), Field::Messages, "no messages");
    check(None, ask("hi"), Field::Messages, "no chat template");
    check(Some(TEMPLATE), ask(""), Field::Messages, "makes nothing");
    check(Some("{{ raise_exception('no!') }}"), ask("hi"), Field::Messages, "no!");
    check(Some(TEMPLATE), Request { max_tokens: Some(0), ..ask("hi") }, Field::MaxTokens, "at least 1");
    let sampling = Sampling { logit_bias: vec![(261, 1.0)], ..Sampling::default() };
    check(Some(TEMPLATE), Request { sampling, ..ask("hi") }, Field::LogitBias, "token 261");
    check(Some(TEMPLATE), Request { logprobs: Some(21), ..ask("hi") }, Field::TopLogprobs, "limit is 20");
    let format = Format::Regex("(".into());
    check(Some(TEMPLATE), Request { format, ..ask("hi") }, Field::Format, "unclosed");
}

#[test]
fn an_engine_that_takes_no_more() {
    let (model, _) = model(Some(TEMPLATE), Limits { rows: 0, waiting: 0, ..Limits::default() });
    assert_eq!(model.generate(&ask("hi")).unwrap_err(), Error::Busy { waiting: 0, limit: 0, retry_after: 1 });
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
    let engine = loaded(Limits::default(), script);
    let template = Template::new(TEMPLATE.to_owned(), None, None).unwrap();
    let model = Model::new(ModelParts::new(load(byte_level("smollm")), Some(template), vec![1]), engine).unwrap();
    let request = Request { format, logprobs, max_tokens: Some(14), ..ask("hi") };
    let (mut events, mut text, mut told) = (model.generate(&request).unwrap(), String::new(), Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    loop {
        match runtime.block_on(events.next()).unwrap().1 {
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
    assert_eq!(says(Format::Text), ("a".repeat(14), Reason::Length(Phase::Text)));
    assert_eq!(says(Format::Regex("b|a{5}".into())), ("aaaaa".into(), Reason::Stop));
    assert_eq!(says(Format::Choice(vec!["no".into(), "yes".into()])), ("no".into(), Reason::Stop));
    let schema = serde_json::json!({"type": "object", "properties": {"x": {"enum": ["b", 7]}}, "required": ["x"], "additionalProperties": false});
    assert_eq!(says(Format::JsonSchema(schema)), ("{\t\"x\"\t:\t\"b\"}".into(), Reason::Stop));
}

/// SentencePiece puts a space before a text. It is none of an answer's own, but that of a message that goes on is, and
/// so is that of an answer which is held to begin with one.
#[test]
fn a_first_space_is_part_of_a_text_that_goes_on_or_is_held_to() {
    let model = |answer: &[u32]| {
        let script = Script { answer: answer.to_vec(), vocabulary: 268, context: 64, ..Script::default() };
        let template = "{% for message in messages %}{{ message.content }}{% endfor %}".to_owned();
        let template = Template::new(template, None, None).unwrap();
        let parts = ModelParts::new(load(sentence_piece()), Some(template), vec![1]);
        Model::new(parts, loaded(Limits::default(), script)).unwrap()
    };
    let says_hit = model(&[264, 262, 1]);
    let mut request = ask("hi");
    assert_eq!(answer(&says_hit, &request).1, "hit");
    request.messages.push(Message::new(Role::Assistant, "it"));
    request.continue_final = true;
    assert_eq!(answer(&says_hit, &request).1, " hit");
    let draws = model(&[]);
    for text in [" hi", "  h", "hit", " "] {
        let format = Format::Choice(vec![text.to_owned()]);
        assert_eq!(answer(&draws, &Request { format, ..ask("hi") }).1, text);
    }
    let schema = serde_json::json!({"const": " hi"});
    assert_eq!(answer(&draws, &Request { format: Format::JsonSchema(schema), ..ask("hi") }).1, "\" hi\"");
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

/// An answer's text, its calls' names and arguments, and how it ended.
type Said = (String, Vec<(String, String)>, Reason);

/// All answers to a request.
fn answers(model: &Model, request: &Request) -> Vec<Said> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut events = model.generate(request).unwrap();
    let mut found = vec![(String::new(), Vec::new(), Reason::Closing); events.count()];
    while let Some((answer, event)) = runtime.block_on(events.next()) {
        let (text, calls, reason) = &mut found[answer];
        match event {
            Event::Text(part) => text.push_str(&part),
            Event::ToolCall(ToolEvent::Begun { name, .. }) => calls.push((name, String::new())),
            Event::ToolCall(ToolEvent::Arguments { index, fragment }) => calls[index].1.push_str(&fragment),
            Event::Finished(finished) => *reason = finished.reason,
            _ => {}
        }
    }
    found
}

/// A model of 4096 tokens of context that draws by hash, of single bytes.
fn hashing() -> Model {
    hashing_with(dialect("hermes"), "{% for message in messages %}{{ message.content }}{% endfor %}")
}

/// The same with another dialect and template.
fn hashing_with(dialect: &'static Dialect, template: &str) -> Model {
    Model::new(parts(dialect, template), hashing_engine()).unwrap()
}

fn hashing_engine() -> Handle<Job> {
    let script = Script { vocabulary: 261, context: 4096, ..Script::default() };
    loaded(Limits::default(), script)
}

fn parts(dialect: &'static Dialect, template: &str) -> ModelParts {
    let template = Template::new(template.to_owned(), None, None).unwrap();
    ModelParts { dialect, ..ModelParts::new(load(byte_level("smollm")), Some(template), vec![1]) }
}

fn dialect(name: &str) -> &'static Dialect {
    Dialect::named(name).unwrap()
}

fn tool(name: &str, strict: bool) -> Tool {
    let parameters = serde_json::json!({"type": "object", "properties": {"x": {"enum": ["a", "b"]}}, "required": ["x"],
        "additionalProperties": false});
    Tool { strict, ..Tool::new(name, parameters) }
}

#[test]
fn a_required_call_is_made() {
    let model = hashing();
    let tools = vec![tool("f", false), tool("g", false)];
    let request = Request { tools, tool_use: ToolChoice::Required, max_tokens: Some(3000), ..ask("hi") };
    for content in ["a", "b", "c", "d"] {
        let messages = vec![Message::new(Role::User, content)];
        let (text, calls, reason) =
            answers(&model, &Request { messages: messages.clone(), ..request.clone() }).remove(0);
        assert_eq!((text.as_str(), calls.len(), reason), ("", 1, Reason::ToolCalls));
        assert!(["{\"x\":\"a\"}", "{\"x\":\"b\"}"].contains(&calls[0].1.as_str()), "{calls:?}");
        let tool_use = ToolChoice::Named("g".into());
        let (_, calls, _) = answers(&model, &Request { messages, tool_use, ..request.clone() }).remove(0);
        assert_eq!(calls[0].0, "g");
    }
}

#[test]
fn an_answer_is_its_format_or_a_call() {
    let model = hashing();
    let request = Request {
        tools: vec![tool("f", false)],
        format: Format::Choice(vec!["yes".into(), "no".into()]),
        max_tokens: Some(300),
        ..ask("")
    };
    let mut seen = [0, 0];
    for content in 0..20 {
        let messages = vec![Message::new(Role::User, format!("hi {content}"))];
        let (text, calls, _) = answers(&model, &Request { messages, ..request.clone() }).remove(0);
        assert!(calls.len() == 1 && text.is_empty() || calls.is_empty() && (text == "yes" || text == "no"), "{text}");
        seen[calls.len()] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    let required = Request { tool_use: ToolChoice::Required, ..request };
    assert!(matches!(model.generate(&required), Err(Error::Request { field: Field::Format, .. })));
}

/// With strict tools, what comes after the mark of a call is a call; text without it is free.
#[test]
fn strict_arguments_are_held_to_beside_free_text() {
    let guide = |strict: bool| {
        let model = hashing();
        let request = Request { tools: vec![tool("f", strict)], ..ask("hi") };
        let prompt = model.prompt(&request).unwrap();
        let constraint = model.constraints.build(&request, &request.thinking, &prompt).unwrap();
        model.constraints.guide(&constraint).unwrap()
    };
    assert!(guide(false).is_none());
    let allowed = |text: &str| {
        let mut guide = guide(true).unwrap();
        let mut taken = Vec::new();
        for byte in text.bytes() {
            match guide.advise(&taken).unwrap() {
                Advice::Mask(mask) if !mask.contains(3 + u32::from(byte)) => return false,
                Advice::Force(forced) if forced[0] != 3 + u32::from(byte) => return false,
                Advice::End => return false,
                _ => taken = vec![TokenId(3 + u32::from(byte))],
            }
        }
        true
    };
    assert!(allowed("Any text, <b>even</b> <tool_cal"));
    assert!(allowed("Look: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"a\"}}\n</tool_call>"));
    assert!(!allowed("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": \"c\""));
    assert!(!allowed("<tool_call>\n{\"name\": \"h\""));
    assert!(!allowed("<tool_call> is a tag"));
}

#[test]
fn several_answers() {
    let model = hashing();
    let request = Request { answers: NonZeroUsize::new(3).unwrap(), max_tokens: Some(5), ..ask("hi") };
    let found = answers(&model, &request);
    assert_eq!(found.len(), 3);
    let one = answers(&model, &Request { answers: NonZeroUsize::MIN, ..request }).remove(0);
    assert_eq!(found[0], one);
}

/// Two tools, one of whose calls must be made.
fn must_call(content: &str) -> Request {
    let parameters = serde_json::json!({"type": "object", "properties": {"x": {"enum": ["a", "b"]},
        "on": {"type": "boolean"}}, "required": ["x", "on"], "additionalProperties": false});
    let tool = |name: &str| Tool { parameters: parameters.clone(), ..tool(name, false) };
    Request {
        tools: vec![tool("get_weather"), tool("now")],
        tool_use: ToolChoice::Required,
        max_tokens: Some(3000),
        ..ask(content)
    }
}

fn check_called(dialect: &Dialect, (text, calls, reason): Said, parallel: bool) {
    let name = dialect.name;
    assert_eq!((text.as_str(), reason), ("", Reason::ToolCalls), "{name}: {calls:?}");
    assert!(!calls.is_empty() && (parallel || calls.len() == 1), "{name}: {calls:?}");
    for (called, arguments) in calls {
        assert!(["get_weather", "now"].contains(&called.as_str()), "{name}: {called}");
        let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        let x = arguments["x"].as_str().unwrap_or_default();
        assert!(["a", "b"].contains(&x) && arguments["on"].is_boolean(), "{name}: {arguments}");
    }
}

/// Whatever the model draws, a call that must be made is made, in every family's own form, and read again.
#[test]
fn every_dialect_makes_the_call_it_must() {
    for &dialect in crate::chat::DIALECTS.iter() {
        let model = hashing_with(dialect, "{% for message in messages %}{{ message.content }}{% endfor %}");
        for (content, parallel) in [("a", false), ("b", true), ("c", false)] {
            let thinking = Thinking { enabled: Some(false), ..Thinking::default() };
            let parallel_calls = if parallel { ParallelCalls::Allowed } else { ParallelCalls::Forbidden };
            let request = Request { parallel_calls, thinking, ..must_call(content) };
            check_called(dialect, answers(&model, &request).remove(0), parallel);
        }
    }
}

/// A tool that is asked for by its name is called once, and no call that must be made is made twice, where the request
/// does not say that it wants several.
#[test]
fn a_named_tool_is_called_once_and_no_call_twice() {
    for &dialect in crate::chat::DIALECTS.iter() {
        let model = hashing_with(dialect, "{{ messages[0].content }}");
        for content in ["a", "b", "c"] {
            let thinking = Thinking { enabled: Some(false), ..Thinking::default() };
            let request = Request { parallel_calls: ParallelCalls::default(), thinking, ..must_call(content) };
            let named = Request { tool_use: ToolChoice::Named("now".to_owned()), ..request.clone() };
            let (text, calls, reason) = answers(&model, &named).remove(0);
            assert_eq!((text.as_str(), calls.len(), reason), ("", 1, Reason::ToolCalls), "{}: {calls:?}", dialect.name);
            let (_, calls, reason) = answers(&model, &request).remove(0);
            let different: std::collections::BTreeSet<_> = calls.iter().collect();
            assert_eq!((different.len(), reason), (calls.len(), Reason::ToolCalls), "{}: {calls:?}", dialect.name);
        }
    }
}

/// The same after a thought, which is cut at its budget; and an answer of a format, after a thought and without one.
#[test]
fn every_dialect_thinks_and_then_keeps_its_word() {
    for &dialect in crate::chat::DIALECTS.iter() {
        let Some(tags) = dialect.reasoning.as_ref().filter(|tags| !tags.close.is_empty()) else { continue };
        let template = format!("{{# {} #}}{{{{ messages[0].content }}}}", tags.open[0]);
        let model = hashing_with(dialect, &template);
        for content in ["a", "b", "c"] {
            let thinking = Thinking { enabled: Some(true), budget: Some(5), ..Thinking::default() };
            let request = Request { thinking, ..must_call(content) };
            check_called(dialect, answers(&model, &request).remove(0), false);
            for enabled in [true, false] {
                let thinking = Thinking { enabled: Some(enabled), budget: enabled.then_some(5), ..Thinking::default() };
                let format = Format::Choice(vec!["yes".into(), "no".into()]);
                let request = Request { format, thinking, max_tokens: Some(300), ..ask(content) };
                let (text, calls, reason) = answers(&model, &request).remove(0);
                assert!(text == "yes" || text == "no", "{}: {text:?}", dialect.name);
                assert_eq!((calls.len(), reason), (0, Reason::Stop), "{}", dialect.name);
            }
        }
    }
}

/// gpt-oss begins a new message after its thought, which is a call as well as an answer.
#[test]
fn a_thought_of_harmony_leads_to_either() {
    let template = "{# <|channel|>analysis<|message|> #}{{ messages[0].content }}<|start|>assistant";
    let model = hashing_with(dialect("harmony"), template);
    let check = |request: &Request, said: &str, expected: bool| {
        let prompt = model.prompt(request).unwrap();
        let constraint = model.constraints.build(request, &request.thinking, &prompt).unwrap();
        let mut guide = model.constraints.guide(&constraint).unwrap().unwrap();
        let (mut taken, mut fits) = (Vec::new(), true);
        for token in model.tokenizer.encode(said, false).unwrap() {
            fits &= match guide.advise(&taken).unwrap() {
                Advice::Mask(mask) => mask.contains(token),
                Advice::Force(forced) => forced[0] == token,
                Advice::End => false,
                Advice::Free => true,
            };
            if !fits {
                break;
            }
            taken = vec![TokenId(token)];
        }
        assert_eq!(fits, expected, "{said}");
    };
    const THOUGHT: &str = "<|channel|>analysis<|message|>so<|end|><|start|>assistant";
    let must = must_call("hi");
    let call = "<|channel|>commentary to=functions.now<|message|>{\"x\": \"a\", \"on\": true}<|call|>";
    check(&must, &format!("{THOUGHT}{call}"), true);
    check(&must, &format!("{THOUGHT}<|channel|>final<|message|>No"), false);
    let format = Format::Choice(vec!["yes".into()]);
    let either = Request { tool_use: ToolChoice::Auto, format: format.clone(), ..must };
    check(&either, &format!("{THOUGHT}{call}"), true);
    check(&either, &format!("{THOUGHT}<|channel|>final<|message|>yes"), true);
    check(&either, &format!("{THOUGHT}yes"), false);
    let answer = Request { format, ..ask("hi") };
    check(&answer, &format!("{THOUGHT}<|channel|>final<|message|>yes"), true);
    check(&answer, &format!("{THOUGHT}{call}"), false);
    let unthinking = Request { thinking: Thinking { enabled: Some(false), ..Thinking::default() }, ..answer };
    check(&unthinking, "<|channel|>final<|message|>yes", true);
}

#[test]
fn a_thought_that_was_begun_goes_on() {
    let model = hashing();
    let starts = |content: &str| {
        let messages = vec![Message::new(Role::User, "hi"), Message::new(Role::Assistant, content)];
        model.prompt(&Request { continue_final: true, ..Request::new(messages) }).unwrap().starts
    };
    assert_eq!(starts("<think>so far"), Phase::Reasoning);
    assert_eq!(starts("<think>so</think>It is"), Phase::Text);
    assert_eq!(starts("It is"), Phase::Text);
}

/// How much a model thinks by default is for requests that say nothing of it.
#[test]
fn a_model_thinks_as_it_is_set_up() {
    let template = "{{ messages[0].content }}{% if enable_thinking is defined and enable_thinking %}<think>{% endif %}";
    let on = Thinking { enabled: Some(true), budget: Some(9), ..Thinking::default() };
    let set_up = |template: &str| {
        let parts = ModelParts { thinking: on.clone(), ..parts(dialect("hermes"), template) };
        Model::new(parts, hashing_engine())
    };
    let model = set_up(template).unwrap();
    let thinks = |thinking: Thinking| model.thinking_of(&Request { thinking, ..ask("hi") }).clone();
    assert_eq!(thinks(Thinking::default()), on);
    let off = Thinking { enabled: Some(false), ..Thinking::default() };
    assert_eq!(thinks(off.clone()), off);
    assert_eq!(model.prompt(&ask("hi")).unwrap().starts, Phase::Reasoning);
    let refused = set_up(TEMPLATE);
    assert!(matches!(refused, Err(Error::Request { field: Field::Thinking, .. })));
}
