//! The HTTP server over real sockets, with a model without weights.

mod browser;
pub mod client;
mod errors;
pub mod fixture;
mod ignored;
mod kinds;
mod wire;

use std::{
    io::{Read, Write},
    time::Duration,
};

use client::{Answer, begin, connect, finish, get, post, read_until};
use fixture::{END, Server, Setup};
use mettle::{
    engine::{Limits, scripted::Call},
    server::Config,
};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

/// A request for 40 tokens with these fields set as well.
fn request(fields: &Value) -> Vec<u8> {
    let mut body = json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 40});
    let (Value::Object(all), Value::Object(fields)) = (&mut body, fields) else { panic!("objects") };
    all.extend(fields.clone());
    body.to_string().into_bytes()
}

/// A stream's text, its reason to end and its usage.
fn joined(answer: &Answer) -> (String, Value, Value) {
    let frames = answer.frames();
    assert_eq!(frames.last().map(String::as_str), Some("[DONE]"));
    let (mut text, mut reason, mut usage) = (String::new(), Value::Null, Value::Null);
    for frame in &frames[..frames.len() - 1] {
        let chunk: Value = serde_json::from_str(frame).expect("JSON");
        text += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("");
        for (kept, new) in [(&mut reason, &chunk["choices"][0]["finish_reason"]), (&mut usage, &chunk["usage"])] {
            if !new.is_null() {
                assert!(kept.is_null(), "it is said once");
                *kept = new.clone();
            }
        }
    }
    (text, reason, usage)
}

fn whole(answer: &Answer) -> (String, Value, Value) {
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{}", answer.body);
    let body = answer.json();
    let choice = &body["choices"][0];
    (
        choice["message"]["content"].as_str().expect("text").to_owned(),
        choice["finish_reason"].clone(),
        body["usage"].clone(),
    )
}

#[test]
fn streamed_joined_is_not_streamed() {
    let server = Server::start(Setup::default());
    let first = whole(&post(server.address, &request(&json!({}))));
    let piece = &first.0[10..13];
    for fields in [
        json!({}),
        json!({"max_tokens": 1}),
        json!({"messages": [{"role": "system", "content": "é"}, {"role": "user", "content": [{"type": "text", "text": "x"}]}]}),
        json!({"messages": [{"role": "user", "name": "Ann", "content": "hi"}]}),
        json!({"stop": piece}),
        json!({"stop": ["never said", piece]}),
        json!({"temperature": 0, "seed": -3, "max_completion_tokens": 20}),
    ] {
        // Asked twice before it is compared, so that both find the same prefix remembered.
        post(server.address, &request(&fields));
        let plain = whole(&post(server.address, &request(&fields)));
        let mut streaming = fields.clone();
        streaming["stream"] = json!(true);
        streaming["stream_options"] = json!({"include_usage": true});
        assert_eq!(joined(&post(server.address, &request(&streaming))), plain, "{fields}");
    }
    assert_eq!((first.0.len(), first.1), (40, json!("length")));
    let (text, reason, _) = whole(&post(server.address, &request(&json!({"stop": piece}))));
    assert_eq!((text.as_str(), reason), (&first.0[..first.0.find(piece).expect("it was said")], json!("stop")));
}

#[test]
fn ignore_eos_goes_on_to_the_limit() {
    let mut setup = Setup::default();
    setup.script.answer = vec![40, 41, 42, END];
    let server = Server::start(setup);
    let (text, reason, usage) = whole(&post(server.address, &request(&json!({"ignore_eos": true, "max_tokens": 7}))));
    assert_eq!((text.as_str(), reason), ("HIJHIJ", json!("length")), "the end itself is no text");
    assert_eq!(usage["completion_tokens"], 7);
}

#[test]
fn usage_counts_tokens() {
    let mut setup = Setup::default();
    setup.script.answer = vec![40, 41, 42, END];
    let server = Server::start(setup);
    // [user:]hi is nine bytes.
    let usage = |cached| json!({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens_details": {"reasoning_tokens": 0}});
    assert_eq!(whole(&post(server.address, &request(&json!({})))), ("HIJ".into(), json!("stop"), usage(0)));
    let options = json!({"stream": true, "stream_options": {"include_usage": true}});
    assert_eq!(joined(&post(server.address, &request(&options))), ("HIJ".into(), json!("stop"), usage(8)));
    let quiet = joined(&post(server.address, &request(&json!({"stream": true}))));
    assert_eq!(quiet, ("HIJ".into(), json!("stop"), Value::Null));
    // The counters follow the answer, so they may be a moment behind it.
    let counters = server.until(|counters| counters["finished"] == 3 && counters["running"] == 0);
    let counted = ["prompt_tokens", "cached_tokens", "generated_tokens", "finished", "failed", "running"];
    assert_eq!(counted.map(|name| counters[name].as_u64()), [27, 16, 12, 3, 0, 0].map(Some), "{counters}");
}

#[test]
fn models_by_their_names() {
    let server = Server::start(Setup::default());
    let list = get(server.address, "/v1/models").json();
    assert_eq!((&list["data"][0]["id"], &list["data"][0]["max_model_len"]), (&json!("tiny"), &json!(4096)));
    for (path, id) in [("tiny", "tiny"), ("org/tiny-model", "org/tiny-model"), ("org%2Ftiny-model", "org/tiny-model")] {
        let answer = get(server.address, &format!("/v1/models/{path}"));
        assert_eq!((answer.status, &answer.json()["id"]), (200, &json!(id)));
    }
    for (asked, said) in [(json!(null), "tiny"), (json!(""), "tiny"), (json!("org/tiny-model"), "org/tiny-model")] {
        for stream in [false, true] {
            let answer = post(server.address, &request(&json!({"model": asked, "stream": stream})));
            let said = format!("\"model\":\"{said}\"");
            assert!(answer.status == 200 && answer.body.contains(&said), "{}", answer.body);
        }
    }
}

#[test]
fn eight_at_once_answer_as_one_does() {
    // The same model, once slow enough that all eight meet, once quick.
    let (server, quick) = (Server::start(Setup::slow(10)), Server::start(Setup::default()));
    let fields = |n: usize| {
        let content = format!("question {n}").repeat(n + 1);
        json!({"stream": n.is_multiple_of(2), "max_tokens": 80, "messages": [{"role": "user", "content": content}]})
    };
    let text = |n: usize, answer: &Answer| if n.is_multiple_of(2) { joined(answer).0 } else { whole(answer).0 };
    let together: Vec<_> = (0..8).map(|n| begin(server.address, "POST", CHAT, &request(&fields(n)))).collect();
    server.until(|counters| counters["running"] == 8);
    let together: Vec<String> = together.into_iter().zip(0..).map(|(one, n)| text(n, &finish(one))).collect();
    let singles: Vec<String> = (0..8).map(|n| text(n, &post(quick.address, &request(&fields(n))))).collect();
    assert_eq!(together, singles);
    let different: std::collections::BTreeSet<&String> = singles.iter().collect();
    assert_eq!(different.len(), 8, "{singles:?}");
}

#[test]
fn a_client_that_goes_away_frees_the_row() {
    let server = Server::start(Setup::slow(5));
    let long = |stream| request(&json!({"stream": stream, "max_tokens": 4000}));

    let mut stream = begin(server.address, "POST", CHAT, &long(true));
    read_until(&mut stream, "\"content\":\"");
    drop(stream);
    server.until(|counters| counters["running"] == 0 && counters["cancelled"] == 1);

    let silent = begin(server.address, "POST", CHAT, &long(false));
    server.until(|counters| counters["running"] == 1);
    drop(silent);
    let counters = server.until(|counters| counters["running"] == 0 && counters["cancelled"] == 2);
    assert!(counters["generated_tokens"].as_u64().is_some_and(|count| count < 2000), "{counters}");
}

#[test]
fn a_client_that_goes_away_while_it_waits_is_forgotten() {
    let limits = Limits { rows: 1, ..Limits::default() };
    let server = Server::start(Setup { limits, ..Setup::slow(5) });
    let running = begin(server.address, "POST", CHAT, &request(&json!({"max_tokens": 4000})));
    server.until(|counters| counters["running"] == 1);
    for stream in [false, true] {
        let waiting = begin(server.address, "POST", CHAT, &request(&json!({"stream": stream})));
        server.until(|counters| counters["waiting"] == 1);
        drop(waiting);
        server.until(|counters| counters["waiting"] == 0 && counters["running"] == 1);
    }
    drop(running);
    server.until(|counters| counters["running"] == 0 && counters["cancelled"] == 3);
}

#[test]
fn a_full_queue_says_when_to_come_back() {
    let limits = Limits { rows: 1, waiting: 1, ..Limits::default() };
    let server = Server::start(Setup { limits, ..Setup::slow(5) });
    let running = begin(server.address, "POST", CHAT, &request(&json!({"max_tokens": 4000})));
    server.until(|counters| counters["running"] == 1);
    let waiting = begin(server.address, "POST", CHAT, &request(&json!({"stream": true})));
    server.until(|counters| counters["waiting"] == 1);
    for stream in [false, true] {
        let refused = post(server.address, &request(&json!({"stream": stream})));
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
        let error = &refused.json()["error"];
        assert_eq!((&error["type"], &error["code"]), (&json!("rate_limit_error"), &json!("rate_limit_exceeded")));
    }
    drop(running);
    assert_eq!(joined(&finish(waiting)).0.len(), 40, "who waited is answered");
}

#[test]
fn a_forward_pass_that_fails_fails_its_request_only() {
    for panics in [false, true] {
        let mut setup = Setup::default();
        // The prompt is one pass and each token another, so the sixth of the first answer.
        *(if panics { &mut setup.script.panics } else { &mut setup.script.fails }) = vec![(Call::Submit, 5)];
        let server = Server::start(setup);
        let frames = post(server.address, &request(&json!({"stream": true}))).frames();
        assert_eq!(frames.len(), 1 + 5 + 2, "{frames:?}");
        assert_eq!(frames[7], "[DONE]");
        let error: Value = serde_json::from_str(&frames[6]).expect("JSON");
        assert_eq!(error["error"]["type"], "server_error");
        let reason = if panics { "panicked" } else { "Submit 5 fails" };
        assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains(reason)), "{error}");
        let (text, ..) = whole(&post(server.address, &request(&json!({}))));
        assert_eq!(text.len(), 40);
        server.until(|counters| counters["failed"] == 1 && counters["finished"] == 1);
    }
    let mut setup = Setup::default();
    setup.script.fails = vec![(Call::Submit, 5)];
    let server = Server::start(setup);
    let failed = post(server.address, &request(&json!({})));
    assert_eq!((failed.status, &failed.json()["error"]["type"]), (500, &json!("server_error")));
}

#[test]
fn a_silent_stream_shows_that_it_lives() {
    let config = Config { keep_alive: Duration::from_millis(20), ..Config::default() };
    let limits = Limits { rows: 1, ..Limits::default() };
    let server = Server::start(Setup { config, limits, ..Setup::slow(100) });
    let answer = post(server.address, &request(&json!({"stream": true, "max_tokens": 3})));
    assert!(answer.body.matches(": keep-alive\n\n").count() >= 3, "{}", answer.body);
    assert_eq!(joined(&answer).0.len(), 3);
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control")), "{:?}", answer.headers);
}

#[test]
fn running_answers_end_before_the_server_does() {
    let mut server = Server::start(Setup::slow(10));
    // Neither a client that never asks nor one that keeps its connection holds the server up.
    let (_silent, mut kept) = (connect(server.address), connect(server.address));
    kept.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    read_until(&mut kept, "uptime_seconds");
    let mut stream = begin(server.address, "POST", CHAT, &request(&json!({"stream": true, "max_tokens": 80})));
    read_until(&mut stream, "\"content\":\"");
    let silent = begin(server.address, "POST", CHAT, &request(&json!({"max_tokens": 80})));
    server.until(|counters| counters["running"] == 2);
    server.stop();
    let rest = read_until(&mut stream, "data: [DONE]\n\n");
    assert!(rest.contains("\"finish_reason\":\"length\""), "{rest}");
    assert_eq!(whole(&finish(silent)).0.len(), 80);
    assert!(server.wait() < Duration::from_secs(5));
    assert!(std::net::TcpStream::connect(server.address).is_err(), "nobody listens any more");
}

#[test]
fn answers_that_outlast_the_grace_are_told() {
    let config = Config { grace: Duration::from_millis(100), ..Config::default() };
    let mut server = Server::start(Setup { config, ..Setup::slow(10) });
    let long = |stream| begin(server.address, "POST", CHAT, &request(&json!({"max_tokens": 4000, "stream": stream})));
    let (streamed, silent) = (long(true), long(false));
    // Nobody reads this one.
    let _stuck = long(true);
    server.until(|counters| counters["running"] == 3);
    server.stop();
    let frames = finish(streamed).frames();
    assert!(frames[frames.len() - 2].contains("the server is closing"), "{frames:?}");
    assert_eq!(frames.last().map(String::as_str), Some("[DONE]"));
    let silent = finish(silent);
    assert_eq!((silent.status, silent.header("retry-after")), (503, Some("1")), "{}", silent.body);
    assert!(server.wait() < Duration::from_secs(5));
}

#[test]
fn a_body_of_100_megabytes_is_refused_and_the_server_lives() {
    let server = Server::start(Setup::default());
    let block = vec![b' '; 1 << 20];
    for chunked in [true, false] {
        let mut stream = connect(server.address);
        let length =
            if chunked { "Transfer-Encoding: chunked".to_owned() } else { format!("Content-Length: {}", 100 << 20) };
        write!(stream, "POST {CHAT} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}\r\n\r\n").expect("sent");
        let (before, after) = if chunked { (&b"100000\r\n"[..], &b"\r\n"[..]) } else { (&b""[..], &b""[..]) };
        // A client that sends all before it reads is answered all the same.
        for _ in 0..100 {
            stream.write_all(&[before, &block, after].concat()).expect("the server reads on");
        }
        stream.write_all(if chunked { b"0\r\n\r\n" } else { b"" }).expect("sent");
        let answer = finish(stream);
        assert_eq!((answer.status, &answer.json()["error"]["type"]), (413, &json!("invalid_request_error")));
        assert!(answer.body.contains("32 MB"), "{}", answer.body);
        assert_eq!(get(server.address, "/health").status, 200);
    }
    let mut asks_first = connect(server.address);
    write!(
        asks_first,
        "POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        100 << 20
    )
    .expect("sent");
    let head = read_until(&mut asks_first, "\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
}

#[test]
fn health_answers_while_a_long_pass_runs() {
    let server = Server::start(Setup::slow(3000));
    let _running = begin(server.address, "POST", CHAT, &request(&json!({"stream": true})));
    server.until(|counters| counters["running"].as_u64().unwrap_or(0) + counters["waiting"].as_u64().unwrap_or(0) == 1);
    let health = get(server.address, "/health").json();
    assert_eq!(health["models"][0]["generated_tokens"], 0, "it waited for the pass: {health}");
    assert_eq!(health["status"], "ok");
    assert!(health["uptime_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
}

#[test]
fn a_connection_is_used_again() {
    let server = Server::start(Setup::default());
    let mut stream = connect(server.address);
    for _ in 0..3 {
        let body = request(&json!({"stream": true}));
        let head = format!("POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body].concat()).expect("sent");
        read_until(&mut stream, "[DONE]\n\n\r\n0\r\n\r\n");
    }
    let mut nothing = [0];
    stream.set_nonblocking(true).expect("set");
    assert_eq!(
        stream.read(&mut nothing).expect_err("open, and nothing to read").kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[tokio::test]
async fn ports() {
    let taken = mettle::server::bind("127.0.0.1", Some(0)).await.expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let message = mettle::server::bind("127.0.0.1", Some(port)).await.expect_err("taken").to_string();
    assert!(message.contains(&port.to_string()) && message.contains("in use"), "{message}");
    let message = mettle::server::bind("no host", Some(0)).await.expect_err("no host").to_string();
    assert!(message.contains("no host") && message.contains("127.0.0.1"), "{message}");
    let message = mettle::server::bind("192.0.2.1", Some(0)).await.expect_err("elsewhere").to_string();
    assert!(message.contains("192.0.2.1"), "{message}");
    let one = mettle::server::bind("127.0.0.1", None).await.expect("a free port");
    let other = mettle::server::bind("localhost", None).await.expect("the next");
    let port = |listener: &tokio::net::TcpListener| listener.local_addr().expect("an address").port();
    assert!((8000..8100).contains(&port(&one)) && (8000..8100).contains(&port(&other)));
}
