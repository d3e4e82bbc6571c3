//! What is taken and what is refused, field by field, and how answers are written.

use serde_json::{Value, json};

use super::{ChatCompletions, chat::ChatReply, error, models};
use crate::{
    chat::{self, Event, Field, Finished, Message, Part, Phase, Reason, Role, Sampling},
    protocol::{Asked, Completion, Fate, Fold, Kind, Notes, Refusal, Reply, Usage, Wire},
};

/// A request for "hi" with these fields set as well.
fn with(fields: Value) -> Result<Asked<chat::Request, ChatReply>, Refusal> {
    read(fields, &Notes::new(false))
}

fn read(fields: Value, notes: &Notes) -> Result<Asked<chat::Request, ChatReply>, Refusal> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let (Value::Object(body_fields), Value::Object(fields)) = (&mut body, fields) else { panic!("objects") };
    body_fields.extend(fields);
    ChatCompletions::from_wire(body.to_string().as_bytes(), "own", notes)
}

/// What a request has in vain.
fn ignored(fields: Value) -> Vec<String> {
    let notes = Notes::new(false);
    read(fields.clone(), &notes).unwrap_or_else(|refusal| panic!("{fields}: {refusal:?}"));
    notes.ignored().into_iter().map(|ignored| ignored.path).collect()
}

/// A field that nobody knows is reported; where the server is strict, it is refused by its name and those there are.
fn check_unknown(fields: Value, field: &str, known: &str) {
    assert_eq!(ignored(fields.clone()), [field], "{fields}");
    let refusal = read(fields.clone(), &Notes::new(true)).expect_err(&fields.to_string());
    assert_eq!((refusal.kind, refusal.field.as_deref()), (Kind::Invalid, Some(field)), "{fields} {refusal:?}");
    assert!(refusal.message.contains("not known here") && refusal.message.contains(known), "{refusal:?}");
}

fn check(fields: Value, field: &str, piece: &str) {
    let refusal = with(fields.clone()).expect_err(&fields.to_string());
    assert_eq!((refusal.kind, refusal.field.as_deref()), (Kind::Invalid, Some(field)), "{fields} {refusal:?}");
    assert!(refusal.message.contains(piece), "{fields}: {}", refusal.message);
    assert!(refusal.message.starts_with(field), "{fields}: {}", refusal.message);
}

/// Each under its own name at the top of the request; where it is wrong within, the name goes on.
fn check_all(rows: &[(&str, Value, &str)]) {
    for (name, wrong, piece) in rows {
        let top = name.split(['[', '.']).next().expect("a name");
        check(json!({top: wrong}), name, piece);
    }
}

#[test]
fn refused_settings() {
    check_all(&[
        ("model", json!([1]), "expected a string, got [1]"),
        ("messages", json!("hi"), "expected a list of messages, got \"hi\""),
        ("messages", json!([]), "empty"),
        ("messages", json!(null), "missing"),
        ("stream", json!("yes"), "expected true or false, got \"yes\""),
        ("stream_options", json!({"include_usage": true}), "\"stream\": true"),
        ("temperature", json!("hot"), "expected a number between 0 and 2, got \"hot\""),
        ("temperature", json!(2.1), "got 2.1"),
        ("temperature", json!(-0.1), "between 0 and 2"),
        ("top_p", json!(-0.1), "between 0 and 1"),
        ("top_p", json!(1.5), "between 0 and 1"),
        ("top_k", json!(-1), "at least 0"),
        ("top_k", json!(1.5), "whole number"),
        ("top_k", json!(4_294_967_296_u64), "whole number"),
        ("min_p", json!(1.01), "between 0 and 1"),
        ("presence_penalty", json!(3), "between -2 and 2"),
        ("frequency_penalty", json!(-2.5), "between -2 and 2"),
        ("frequency_penalty", json!(true), "got true"),
        ("repetition_penalty", json!(0), "above 0"),
        ("repetition_penalty", json!(1e300), "above 0"),
        ("max_tokens", json!(0), "at least 1"),
        ("max_tokens", json!(-5), "at least 1"),
        ("max_tokens", json!(2.5), "whole number"),
        ("max_completion_tokens", json!(0), "at least 1"),
        ("logit_bias", json!([1]), "by token id"),
        ("logit_bias", json!({"hello": 1}), "\"hello\""),
        ("logit_bias", json!({"-1": 1}), "\"-1\""),
        ("logit_bias.7", json!({"7": 101}), "between -100 and 100, got 101"),
        ("seed", json!(0.5), "whole number"),
        ("seed", json!("7"), "whole number"),
        ("ignore_eos", json!(1), "true or false"),
        ("stop", json!(""), "every answer"),
        ("stop", json!(7), "a string or a list"),
        ("stop", json!(vec!["x"; 17]), "at most 16 strings, got 17"),
        ("stop[1]", json!(["a", ""]), "every answer"),
        ("stop[0]", json!([null]), "expected a string, got null"),
        ("chat_template_kwargs", json!("x"), "object"),
    ]);
    check_unknown(json!({"stream": true, "stream_options": {"x": 1}}), "stream_options.x", "include_usage");
    check(json!({"stream": true, "stream_options": []}), "stream_options", "an object");
    check(json!({"stream": true, "stream_options": {"include_usage": 1}}), "stream_options.include_usage", "got 1");
    check(json!({"max_tokens": 0, "max_completion_tokens": 5}), "max_tokens", "at least 1");
    let long = with(json!({"temperature": "é".repeat(1000)})).expect_err("too hot").message;
    assert!(long.len() < 250 && long.ends_with('…'), "{long}");
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    check_all(&[
        ("user", json!(1), "a string"),
        ("metadata", json!("x"), "an object"),
        ("store", json!(true), "nothing is stored"),
        ("modalities", json!(["text", "audio"]), "text only"),
        ("audio", json!({"voice": "x"}), "text only"),
        ("function_call", json!("auto"), "tool_choice"),
        ("min_tokens", json!(3), "got 3"),
        ("mirostat", json!(2), "not there"),
        ("verbosity", json!(["low"]), "a string"),
    ]);
}

#[test]
fn what_nobody_knows_is_reported() {
    check_unknown(json!({"max_token": 7}), "max_token", "known are model, messages, stream, stream_options, tools");
    check_unknown(json!({"é, \n": {"a": [null, 1e300]}}), "é, \n", "max_tokens");
    check_unknown(json!({"messages": [{"role": "user", "content": "x", "weight": 1}]}), "messages[0].weight", "name");
    let part = json!({"type": "text", "text": "x", "y": "z"});
    check_unknown(
        json!({"messages": [{"role": "user", "content": [part]}]}),
        "messages[0].content[0].y",
        "known are type, text",
    );
    let call = json!({"function": {"name": "f", "arguments": "{}", "y": true}});
    check_unknown(
        json!({"messages": [{"role": "assistant", "tool_calls": [call]}]}),
        "messages[0].tool_calls[0].function.y",
        "known are name and arguments",
    );
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"x-own": 1}, "returns": {}}});
    check_unknown(json!({"tools": [tool]}), "tools[0].function.returns", "known are name, description, strict");
    check_unknown(json!({"response_format": {"type": "text", "y": 1}}), "response_format.y", "known is type");
}

#[test]
fn what_does_nothing_is_reported() {
    let fields = json!({
        "user": "u", "safety_identifier": "s", "metadata": {}, "service_tier": "auto", "prompt_cache_key": "k",
        "verbosity": "low", "prediction": {"type": "content", "content": "x"}, "keep_alive": "5m",
        "reasoning": {"exclude": true},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "x"}}]}],
    });
    let names = [
        "messages[0].content[0].cache_control",
        "reasoning.exclude",
        "user",
        "safety_identifier",
        "metadata",
        "service_tier",
        "prompt_cache_key",
        "verbosity",
        "prediction",
        "keep_alive",
    ];
    assert_eq!(ignored(fields.clone()), names);
    assert!(read(fields, &Notes::new(true)).is_ok(), "what is known is no error, strict or not");
    assert_eq!(ignored(json!({"store": false, "modalities": ["text"], "mirostat": 0, "n": 1})), [""; 0]);
}

#[test]
fn the_fields_that_there_are() {
    let known = ChatCompletions::known_fields();
    let fate = |path: &str| known.iter().find(|known| known.path == path).map(|known| known.fate);
    for path in ["messages[].content[].image_url.url", "tools[].function.strict", "temperature", "guided_json", "n"] {
        assert_eq!(fate(path), Some(Fate::Honoured), "{path}");
    }
    assert!(matches!(fate("user"), Some(Fate::Ignored(_))) && matches!(fate("audio"), Some(Fate::Refused(_))));
    assert_eq!(fate("weight"), None);
}

#[test]
fn refused_messages() {
    for (message, field, piece) in [
        (json!("hi"), "messages[1]", "expected an object"),
        (json!({"content": "x"}), "messages[1].role", "missing; expected system"),
        (json!({"role": "robot", "content": "x"}), "messages[1].role", "got \"robot\""),
        (json!({"role": "user"}), "messages[1].content", "missing"),
        (json!({"role": "user", "content": null}), "messages[1].content", "missing"),
        (json!({"role": "user", "content": 7}), "messages[1].content", "a string or a list of parts, got 7"),
        (json!({"role": "user", "content": ["x"]}), "messages[1].content[0]", "an object"),
        (json!({"role": "user", "content": [{"text": "x"}]}), "messages[1].content[0].type", "missing"),
        (json!({"role": "user", "content": [{"type": "text"}]}), "messages[1].content[0].text", "missing"),
        (
            json!({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}]}),
            "messages[1].content[1].image_url.url",
            "missing",
        ),
        (json!({"role": "user", "content": [{"type": "video"}]}), "messages[1].content[0].type", "got \"video\""),
        (
            json!({"role": "user", "content": [{"type": "input_audio"}]}),
            "messages[1].content[0].input_audio",
            "missing",
        ),
        (
            json!({"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}),
            "messages[1].content[0].file.file_id",
            "file_data",
        ),
        (json!({"role": "user", "content": "x", "name": 7}), "messages[1].name", "a string"),
        (json!({"role": "assistant", "tool_calls": [{"id": "1"}]}), "messages[1].tool_calls[0].function", "missing"),
        (
            json!({"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}),
            "messages[1].tool_calls",
            "only a message of role assistant",
        ),
        (
            json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": \"cu"}}]}),
            "messages[1].tool_calls[0].function.arguments",
            "cut off",
        ),
        (
            json!({"role": "user", "content": "x", "tool_call_id": "1"}),
            "messages[1].tool_call_id",
            "only a message of role tool",
        ),
        (json!({"role": "user", "content": "x", "reasoning_content": "hm"}), "messages[1].reasoning_content", "thinks"),
    ] {
        let first = json!({"role": "user", "content": "hi"});
        let refusal = with(json!({"messages": [first, message]})).expect_err(&message.to_string());
        assert_eq!((refusal.kind, refusal.field.as_deref()), (Kind::Invalid, Some(field)), "{refusal:?}");
        assert!(refusal.message.contains(piece), "{message}: {}", refusal.message);
    }
}

#[test]
fn bodies_that_are_no_request() {
    let deep = "[".repeat(100_000);
    for (body, piece) in [
        (&b""[..], "empty"),
        (b" \n", "empty"),
        (b"{\"a\":\"\xff\"}", "not UTF-8 at byte 6"),
        (b"{\n\"model\": }", "line 2 column 10"),
        (b"{} {}", "line 1 column 4"),
        (b"{\"messages\": \"\\ud800\"}", "not valid JSON"),
        (b"{\"temperature\": 1e999}", "out of range"),
        (b"[1]", "expected an object, got [1]"),
        (b"null", "expected an object, got null"),
        (deep.as_bytes(), "recursion limit"),
    ] {
        let refusal = ChatCompletions::from_wire(body, "m", &Notes::new(false)).expect_err(piece);
        assert_eq!((refusal.kind, refusal.field), (Kind::Invalid, None));
        assert!(refusal.message.contains(piece), "{}", refusal.message);
    }
}

#[test]
fn a_request_in_full() {
    let request = with(json!({
        "messages": [
            {"role": "system", "content": "s", "name": "n"},
            {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "tool_calls": [], "refusal": null},
            {"role": "assistant", "content": "a", "refusal": "no"},
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
            {"role": "tool", "content": ""},
        ],
        "stream": true, "stream_options": {"include_usage": true, "include_obfuscation": false},
        "max_tokens": 5, "max_completion_tokens": 6, "stop": ["a", "b"], "seed": -1,
        "temperature": 2, "top_p": 1, "top_k": 0, "min_p": 0, "presence_penalty": -2, "frequency_penalty": 2,
        "repetition_penalty": 1.25, "logit_bias": {"7": -100, "3": 0.5}, "ignore_eos": true,
        "chat_template_kwargs": {"thinking": null, "depth": 3},
    }))
    .expect("a request");
    let message = |role, content: &str| Message::new(role, content);
    assert_eq!(
        request.task.messages,
        [
            Message { name: Some("n".to_owned()), ..message(Role::System, "s") },
            message(Role::Developer, "a").with(Part::Text("b".to_owned())),
            Message { content: Vec::new(), ..message(Role::Assistant, "") },
            message(Role::Assistant, "a").with(Part::Text("no".to_owned())),
            message(Role::Assistant, "a").with(Part::Text("no".to_owned())),
            message(Role::Tool, ""),
        ]
    );
    let expected = Sampling {
        temperature: Some(2.0),
        top_k: Some(0),
        top_p: Some(1.0),
        min_p: Some(0.0),
        repetition_penalty: Some(1.25),
        presence_penalty: Some(-2.0),
        frequency_penalty: Some(2.0),
        dry: None,
        logit_bias: vec![(7, -100.0), (3, 0.5)],
        seed: Some(u64::MAX),
    };
    assert_eq!(request.task.sampling, expected);
    assert_eq!((request.task.max_tokens, request.task.stop.as_slice()), (Some(6), &["a".into(), "b".into()][..]));
    assert!(request.task.ignore_eos);
    assert_eq!(Value::from(request.task.template_variables), json!({"thinking": null, "depth": 3}));
    assert!(request.stream);
}

#[test]
fn bookkeeping_and_nulls_change_nothing() {
    let with = |fields: Value| with(fields).map(|asked| asked.task);
    let plain = with(json!({})).expect("a request");
    let harmless = json!({
        "user": "u", "metadata": {"a": "b"}, "store": false, "service_tier": "auto", "safety_identifier": "s",
        "prompt_cache_key": "k", "tool_choice": "auto", "tools": [],
        "response_format": {"type": "text"}, "logprobs": false, "modalities": ["text"], "n": 1,
    });
    assert_eq!(with(harmless).expect("harmless"), plain);
    let nulls: Value = serde_json::from_str(
        r#"{"stream": null, "stream_options": null, "max_tokens": null, "temperature": null, "top_logprobs": null,
            "stop": null, "tools": null, "logit_bias": null, "seed": null, "audio": null, "anything": null}"#,
    )
    .expect("JSON");
    assert_eq!(with(nulls).expect("nulls"), plain);
    let names = |model: Value| {
        ChatCompletions::from_wire(
            json!({"model": model, "messages": [{"role": "user", "content": "hi"}]}).to_string().as_bytes(),
            "own",
            &Notes::new(false),
        )
    };
    for (model, expected) in [(json!(""), "own"), (json!(null), "own"), (json!("x"), "x")] {
        let body = names(model).expect("a request").reply.body(Vec::new()).expect("a body");
        assert!(body.contains(&format!("\"model\":\"{expected}\"")), "{body}");
    }
}

/// The events of an answer to "hi" and the frames that they become, without the `data: `.
fn frames(fields: Value, reason: Reason) -> Vec<String> {
    let mut reply = with(fields).expect("a request").reply;
    let frames: String = events(reason).into_iter().map(|event| reply.frames(0, event)).collect();
    let frames: Vec<String> = frames.split_terminator("\n\n").map(str::to_owned).collect();
    frames.iter().map(|frame| frame.strip_prefix("data: ").expect("data").to_owned()).collect()
}

fn events(reason: Reason) -> Vec<Event> {
    vec![
        Event::Started { prompt_tokens: 5, cached_tokens: 4 },
        Event::Text("H\n".to_owned()),
        Event::Text("é".to_owned()),
        Event::Finished(Finished { reason, completion_tokens: 3, reasoning_tokens: 0, rejected: Vec::new() }),
    ]
}

fn parsed(frames: &[String]) -> Vec<Value> {
    frames.iter().map(|frame| serde_json::from_str(frame).expect(frame)).collect()
}

#[test]
fn a_stream() {
    let frames =
        frames(json!({"stream": true, "stream_options": {"include_usage": true}}), Reason::Length(Phase::Text));
    assert_eq!(frames.last().map(String::as_str), Some("[DONE]"));
    let chunks = parsed(&frames[..frames.len() - 1]);
    let choice = |delta: Value, reason: Value| {
        let mut choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
        if reason == "length" {
            choice["finish_details"] = json!({"type": "length", "in": "text"});
        }
        json!([choice])
    };
    let choices: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"]).collect();
    let expected = [
        choice(json!({"role": "assistant", "content": ""}), json!(null)),
        choice(json!({"content": "H\n"}), json!(null)),
        choice(json!({"content": "é"}), json!(null)),
        choice(json!({}), json!("length")),
        json!([]),
    ];
    assert_eq!(choices, expected.iter().collect::<Vec<_>>());
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 0}});
    let usages: Vec<Option<&Value>> = chunks.iter().map(|chunk| chunk.get("usage")).collect();
    let null = Some(&Value::Null);
    assert_eq!(usages, [null, null, null, null, Some(&usage)]);
    for chunk in &chunks {
        assert_eq!((&chunk["object"], &chunk["model"]), (&json!("chat.completion.chunk"), &json!("m")));
        assert_eq!((&chunk["id"], &chunk["created"]), (&chunks[0]["id"], &chunks[0]["created"]));
        assert!(chunk["system_fingerprint"].as_str().is_some_and(|print| print.starts_with("mettle-")));
    }
}

#[test]
fn a_stream_without_usage() {
    let frames = frames(json!({"stream": true}), Reason::Stop);
    let chunks = parsed(&frames[..frames.len() - 1]);
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    assert_eq!(chunks.last().map(|chunk| &chunk["choices"][0]["finish_reason"]), Some(&json!("stop")));
}

#[test]
fn a_stream_that_fails() {
    for (reason, message) in [(Reason::Failed("no memory".to_owned()), "no memory"), (Reason::Closing, "closing")] {
        let frames = frames(json!({"stream": true}), reason);
        assert_eq!(frames.last().map(String::as_str), Some("[DONE]"));
        let error = &parsed(&frames[3..4])[0]["error"];
        assert_eq!((&error["type"], frames.len()), (&json!("server_error"), 5));
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{error}");
    }
}

#[test]
fn a_whole_answer() {
    let fold = |reason| {
        let mut whole = Completion::default();
        events(reason).into_iter().for_each(|event| whole.add(event));
        whole
    };
    let reply = || with(json!({})).expect("a request").reply;
    assert_eq!(fold(Reason::Stop).usage, Usage { prompt: 5, cached: 4, completion: 3, reasoning: 0 });
    let mut body: Value = serde_json::from_str(&reply().body(vec![fold(Reason::Stop)]).expect("a body")).expect("JSON");
    let (id, other) = (body["id"].take(), reply().body(vec![fold(Reason::Stop)]).expect("a body"));
    let id = id.as_str().expect("an id");
    assert!(id.starts_with("chatcmpl-") && !other.contains(id));
    assert!(body["created"].take().as_u64().is_some_and(|seconds| seconds > 1_700_000_000));
    let fingerprint = body["system_fingerprint"].take();
    let expected = json!({
        "id": null, "object": "chat.completion", "created": null, "model": "m", "system_fingerprint": null,
        "choices": [{
            "index": 0, "logprobs": null, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "H\né", "refusal": null},
        }],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 0}},
    });
    assert_eq!((body, fingerprint.is_string()), (expected, true));

    let kind = |whole| reply().body(vec![whole]).map_err(|refusal| refusal.kind);
    assert_eq!(kind(fold(Reason::Failed("x".to_owned()))), Err(Kind::Internal));
    assert_eq!(kind(fold(Reason::Closing)), Err(Kind::Closing));
    assert_eq!(kind(Completion::default()), Err(Kind::Internal));
}

#[test]
fn errors_and_models() {
    let check = |refusal: Refusal, r#type: &str, param: Value, code: Value| {
        let body: Value = serde_json::from_str(&error::refused(&refusal).body).expect("JSON");
        let expected = json!({"message": refusal.message, "type": r#type, "param": param, "code": code});
        assert_eq!(body, json!({"error": expected}));
    };
    let refusal = |error: chat::Error| Refusal::of_chat(&error, ChatCompletions::field_name);
    let of_chat = |field, message: &str| refusal(chat::Error::Request { field, message: message.into() });
    check(Refusal::field("top_p", "no"), "invalid_request_error", json!("top_p"), json!(null));
    check(of_chat(Field::TemplateVariables, "no"), "invalid_request_error", json!("chat_template_kwargs"), json!(null));
    let busy = refusal(chat::Error::Busy { waiting: 3, limit: 3, retry_after: 7 });
    check(busy, "rate_limit_error", json!(null), json!("rate_limit_exceeded"));
    check(Refusal::closing(), "server_error", json!(null), json!("server_closing"));
    let internal = refusal(chat::Error::Internal("x".into()));
    check(internal, "server_error", json!(null), json!(null));

    let model = models::ListedModel { id: "a/b", created: 7, context: Some(64) };
    let wire = json!({"id": "a/b", "object": "model", "created": 7, "owned_by": "mettle", "max_model_len": 64});
    assert_eq!(models::to_wire(model), wire.to_string());
    assert_eq!(models::list_to_wire(&[model]), json!({"object": "list", "data": [wire]}).to_string());
}
