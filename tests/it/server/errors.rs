//! Bad requests: what each is told, by status, field and words.

use serde_json::{Value, json};

use super::{
    CHAT,
    client::{Answer, begin, finish, get, post},
    fixture::{Server, Setup},
    request,
};

fn check(answer: &Answer, status: u16, param: Option<&str>, piece: &str) {
    assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/json")), "{}", answer.body);
    let error = &answer.json()["error"];
    let mut keys: Vec<&String> = error.as_object().expect("an error").keys().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["code", "message", "param", "type"]);
    assert_eq!((error["type"].as_str(), error["param"].as_str()), (Some("invalid_request_error"), param), "{error}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains(piece)), "{piece:?} in {error}");
}

/// What is set, and the status, the field and a piece of the message that come back.
fn rows() -> Vec<(Value, u16, &'static str, &'static str)> {
    vec![
        (
            json!({"temperature": "hot"}),
            400,
            "temperature",
            "temperature: expected a number between 0 and 2, got \"hot\"",
        ),
        (json!({"temperature": 3}), 400, "temperature", "got 3"),
        (json!({"top_p": 1.5}), 400, "top_p", "between 0 and 1"),
        (json!({"top_k": -1}), 400, "top_k", "at least 0"),
        (json!({"min_p": 2}), 400, "min_p", "between 0 and 1"),
        (json!({"presence_penalty": 9}), 400, "presence_penalty", "between -2 and 2"),
        (json!({"frequency_penalty": "x"}), 400, "frequency_penalty", "got \"x\""),
        (json!({"repetition_penalty": 0}), 400, "repetition_penalty", "above 0"),
        (json!({"max_tokens": 0}), 400, "max_tokens", "at least 1"),
        (json!({"max_completion_tokens": -1}), 400, "max_completion_tokens", "at least 1"),
        (json!({"logit_bias": {"x": 1}}), 400, "logit_bias", "id of a token"),
        (json!({"logit_bias": {"257": 1}}), 400, "logit_bias", "from 0 to 256"),
        (json!({"logit_bias": {"5": 1000}}), 400, "logit_bias.5", "got 1000"),
        (json!({"seed": "x"}), 400, "seed", "whole number"),
        (json!({"stop": ""}), 400, "stop", "every answer"),
        (json!({"stop": ["a", 1]}), 400, "stop[1]", "got 1"),
        (json!({"stream": 1}), 400, "stream", "true or false"),
        (json!({"stream_options": {"include_usage": true}}), 400, "stream_options", "\"stream\": true"),
        (json!({"n": 17}), 400, "n", "from 1 to 16"),
        (json!({"store": true}), 400, "store", "nothing is stored"),
        (json!({"tools": [{}]}), 400, "tools[0].type", "missing"),
        (json!({"tool_choice": "required"}), 400, "tool_choice", "send tools as well"),
        (json!({"response_format": {"type": "yaml"}}), 400, "response_format.type", "json_schema"),
        (json!({"response_format": {"type": "regex", "regex": "("}}), 400, "response_format", "cannot be used"),
        (json!({"guided_json": {"type": "object", "not": {"required": ["a"]}}}), 400, "response_format", "\"not\""),
        (json!({"top_logprobs": 1}), 400, "top_logprobs", "\"logprobs\": true"),
        (json!({"modalities": ["audio"]}), 400, "modalities", "text only"),
        (json!({"reasoning_effort": "high"}), 400, "reasoning_effort", "does not think"),
        (json!({"enable_thinking": true}), 400, "enable_thinking", "does not think"),
        (json!({"thinking_budget": 7}), 400, "thinking_budget", "does not think"),
        (json!({"chat_template_kwargs": 1}), 400, "chat_template_kwargs", "an object"),
        (json!({"chat_template_kwargs": {"messages": []}}), 400, "chat_template_kwargs", "cannot be set"),
        (json!({"chat_template_kwargs": {"no": "not today"}}), 400, "messages", "not today"),
        (json!({"messages": []}), 400, "messages", "at least one"),
        (json!({"messages": {"role": "user"}}), 400, "messages", "a list of messages"),
        (json!({"messages": [{"role": "user"}]}), 400, "messages[0].content", "missing"),
        (json!({"messages": [{"role": "x", "content": ""}]}), 400, "messages[0].role", "got \"x\""),
        (
            json!({"messages": [{"role": "user", "content": [
                {"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "http://x"}}]}]}),
            400,
            "messages[0].content[1]",
            "text only and no pictures",
        ),
        (
            json!({"messages": [{"role": "assistant", "tool_calls": [{}]}]}),
            400,
            "messages[0].tool_calls[0].function",
            "missing",
        ),
        (json!({"model": 7}), 400, "model", "a string"),
        (json!({"model": "gpt"}), 404, "model", "no model \"gpt\" here; loaded: tiny, org/tiny-model"),
        (json!({"messages": [{"role": "user", "content": "x".repeat(5000)}]}), 400, "messages", "5007 tokens"),
    ]
}

#[test]
fn fields() {
    let server = Server::start(Setup::default());
    let rows = rows();
    for (fields, status, param, piece) in &rows {
        check(&post(server.address, &request(fields)), *status, Some(param), piece);
        // Asked for as a stream, it is told the same way.
        let mut streaming = fields.clone();
        if streaming.get("stream").is_none() && streaming.get("stream_options").is_none() {
            streaming["stream"] = json!(true);
            check(&post(server.address, &request(&streaming)), *status, Some(param), piece);
        }
    }
    let long = post(server.address, &request(&rows[rows.len() - 1].0)).json();
    assert_eq!(long["error"]["code"], "context_length_exceeded");
    let unknown = post(server.address, &request(&json!({"model": "gpt"}))).json();
    assert_eq!(unknown["error"]["code"], "model_not_found");
    assert_eq!(server.counters()["prompt_tokens"], 0, "none of them reached the model");
}

#[test]
fn bodies() {
    let server = Server::start(Setup::default());
    let deep = format!("{{\"a\": {}", "[".repeat(1_000_000));
    for (body, piece) in [
        (&b""[..], "the body is empty"),
        (b"hello", "line 1 column 1"),
        (b"{\"messages\": [}", "line 1 column 15"),
        (b"{\"messages\":\n [\"\xc3\x28\"]}", "not UTF-8 at byte 16"),
        (b"\xff\xfe{\0}\0", "not UTF-8 at byte 0"),
        (b"\"text\"", "expected an object, got \"text\""),
        (b"[{\"messages\": []}]", "expected an object, got ["),
        (deep.as_bytes(), "recursion limit"),
    ] {
        check(&post(server.address, body), 400, None, piece);
    }
    let mut broken = begin(server.address, "POST", CHAT, b"");
    std::io::Write::write_all(&mut broken, b"\x00\x01garbage\r\n\r\n").expect("sent");
    drop(broken);
    assert_eq!(post(server.address, &request(&json!({}))).status, 200, "the server lives");
}

#[test]
fn paths_and_methods() {
    let server = Server::start(Setup::default());
    for path in ["/", "/v1", "/v1/models/", "/v1/completions", "/chat/completions", "/v1/chat/completions/", "/a?b=c"] {
        let answer = get(server.address, path);
        check(&answer, 404, None, path.split('?').next().unwrap_or(path));
        check(
            &answer,
            404,
            None,
            "GET /health, GET /v1/capabilities, GET /v1/models, GET /v1/models/{id}, POST /v1/chat/completions",
        );
    }
    assert!(get(server.address, &format!("/{}", "x".repeat(9000))).body.len() < 600);
    check(&get(server.address, "/v1/models/gpt"), 404, Some("model"), "no model \"gpt\"");
    check(&get(server.address, "/v1/models/org%2Fgpt"), 404, Some("model"), "no model \"org/gpt\"");
    check(&get(server.address, "/v1/models/%ff"), 400, None, "the model's name");

    let send = |method, path| finish(begin(server.address, method, path, b""));
    for (method, path, allow) in
        [("GET", CHAT, "POST"), ("DELETE", "/v1/models/tiny", "GET,HEAD"), ("POST", "/health", "GET,HEAD")]
    {
        let answer = send(method, path);
        assert_eq!(answer.header("allow"), Some(allow), "{answer:?}");
        check(&answer, 405, None, &format!("{path} does not take {method}"));
    }
    let options = send("OPTIONS", CHAT);
    assert_eq!((options.status, options.header("allow"), options.body.as_str()), (204, Some("POST"), ""));
    let head = send("HEAD", "/health");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}
