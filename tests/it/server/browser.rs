//! What browsers and proxies send beside a request: origins, preflights, compressed bodies. And who asks too early.

use std::{io::Write, net::SocketAddr, time::Duration};

use mettle::server::{self, Config, Models};
use serde_json::json;

use super::{
    CHAT,
    client::{Answer, connect, finish, post},
    fixture::{Server, Setup},
    request,
};

fn send(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = connect(address);
    let length = body.len();
    let head =
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).expect("the request is sent");
    finish(stream)
}

#[test]
fn pages_of_this_machine_and_of_named_origins_may_call() {
    let mut setup = Setup::default();
    setup.config.origins = vec!["https://chat.example".to_owned()];
    let server = Server::start(setup);
    let preflight =
        "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n";
    for (origin, allowed) in
        [("http://localhost:5173", true), ("https://chat.example", true), ("https://other.example", false)]
    {
        let headers = format!("Origin: {origin}\r\n{preflight}");
        let answer = send(server.address, &format!("OPTIONS {CHAT}"), &headers, b"");
        assert_eq!(answer.status, if allowed { 204 } else { 403 }, "{}", answer.body);
        assert_eq!(answer.header("access-control-allow-origin"), allowed.then_some(origin));
        assert_eq!(answer.header("access-control-allow-headers"), allowed.then_some("authorization,content-type"));
        assert!(allowed || answer.body.contains("--cors-origin"));
        for line in [format!("POST {CHAT}"), "GET /v1/models".to_owned(), "GET /nowhere".to_owned()] {
            let answer = send(server.address, &line, &format!("Origin: {origin}\r\n"), &request(&json!({})));
            assert_eq!(answer.header("access-control-allow-origin"), allowed.then_some(origin), "{line}");
            assert_eq!(answer.header("vary"), Some("origin"));
        }
    }
    assert_eq!(post(server.address, &request(&json!({}))).header("access-control-allow-origin"), None);
}

/// {"messages": [{"role": "user", "content": "hi"}]} by Python's gzip.
const GZIP: &[u8] = &[
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 202, 77, 45, 46, 78, 76, 79, 45, 86, 178, 82, 136, 174, 86, 42, 202, 207,
    73, 5, 178, 148, 74, 139, 83, 139, 148, 116, 20, 148, 146, 243, 243, 74, 82, 243, 74, 64, 66, 25, 153, 74, 181,
    177, 181, 0, 211, 35, 53, 5, 49, 0, 0, 0,
];

#[test]
fn compressed_bodies_are_unpacked_or_refused_by_name() {
    let server = Server::start(Setup::default());
    let line = format!("POST {CHAT}");
    let answer = send(server.address, &line, "Content-Encoding: gzip\r\n", GZIP);
    assert_eq!(answer.status, 200, "{}", answer.body);
    for (encoding, status, piece) in
        [("br", 415, "\\\"br\\\""), ("gzip, zstd", 415, "zstd"), ("deflate", 400, "deflate")]
    {
        let answer = send(server.address, &line, &format!("Content-Encoding: {encoding}\r\n"), GZIP);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.body.contains(piece) && answer.body.contains("Content-Encoding"), "{}", answer.body);
    }
    let mut setup = Setup::default();
    setup.config.max_body = 48;
    let answer = send(Server::start(setup).address, &line, "Content-Encoding: gzip\r\n", &GZIP[..GZIP.len()]);
    assert_eq!(answer.status, 413, "{}", answer.body);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.config.body_patience = Duration::from_millis(50);
    let server = Server::start(setup);
    let mut stream = connect(server.address);
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{{");
    stream.write_all(head.as_bytes()).expect("the beginning is sent");
    let answer = finish(stream);
    assert_eq!(answer.status, 408, "{}", answer.body);
}

#[tokio::test]
async fn who_asks_before_the_models_are_there_is_told_to_come_back() {
    let listener = server::bind("127.0.0.1", Some(0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let models = Models::default();
    let serving = tokio::spawn(server::run(listener, models.clone(), Config::default(), std::future::pending()));
    let ask = |line: &'static str| tokio::task::spawn_blocking(move || send(address, line, "", b""));
    for line in ["GET /health", "GET /v1/models", "POST /v1/chat/completions", "GET /nowhere"] {
        let answer = ask(line).await.expect("an answer");
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("2")), "{line}: {}", answer.body);
        assert_eq!(answer.json()["error"]["code"], "model_loading");
    }
    models.set(server::Pool::new());
    assert_eq!(ask("GET /health").await.expect("an answer").status, 200);
    serving.abort();
}
