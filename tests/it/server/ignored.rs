//! Fields that do nothing: they are reported, and refused where the server is strict.

use std::sync::{Arc, Mutex};

use mettle::server::Config;
use serde_json::{Value, json};

use super::{
    client::{get, post},
    fixture::{Server, Setup},
    request,
};

const HEADER: &str = "x-mettle-ignored";

#[test]
fn unknown_fields_are_reported() {
    let server = Server::start(Setup::default());
    for stream in [false, true] {
        let check = |fields: Value, expected: Option<&str>| {
            let mut fields = fields;
            fields["stream"] = json!(stream);
            let answer = post(server.address, &request(&fields));
            assert_eq!((answer.status, answer.header(HEADER)), (200, expected), "{fields}: {}", answer.body);
        };
        check(json!({}), None);
        check(json!({"temprature": 1}), Some("temprature"));
        check(json!({"user": "u", "x": [], "y, z": {}}), Some("user, x, y%2C%20z"));
        let said = json!({"role": "user", "content": [{"type": "text", "text": "x", "q": 1}], "weight": 1});
        check(json!({"messages": [said]}), Some("messages[0].content[0].q, messages[0].weight"));
        let tool = json!({"type": "function", "function": {"name": "f", "returns": {"type": "x"}}});
        check(json!({"tools": [tool]}), Some("tools[0].function.returns"));
    }
}

/// What a model's template leaves out did nothing either.
#[test]
fn what_is_not_rendered_is_reported() {
    let server = Server::start(Setup::default());
    let messages = json!([
        {"role": "user", "name": "Ann", "content": "x"},
        {"role": "assistant", "reasoning_content": "so it is", "content": "y"},
        {"role": "user", "content": "z"},
    ]);
    let answer = post(server.address, &request(&json!({"messages": messages})));
    assert_eq!((answer.status, answer.header(HEADER)), (200, Some("messages[1].reasoning_content")));
}

#[test]
fn each_name_is_warned_of_once_and_listed() {
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&warnings);
    let warn: mettle::server::Warn =
        Arc::new(move |warning: &str| heard.lock().expect("no panic").push(warning.into()));
    let config = Config { warn, ..Config::default() };
    let server = Server::start(Setup { config, ..Setup::default() });
    for _ in 0..3 {
        post(server.address, &request(&json!({"temprature": 1, "keep_alive": -1})));
    }
    let warnings = warnings.lock().expect("no panic").clone();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.iter().any(|warning| warning.contains("temprature")), "{warnings:?}");

    let capabilities = get(server.address, "/v1/capabilities").json();
    let ignored = json!([
        {"field": "keep_alive", "why": "models stay loaded", "count": 3},
        {"field": "temprature", "why": "no field of this name is known here", "count": 3},
    ]);
    assert_eq!((&capabilities["ignored"], &capabilities["strict"]), (&ignored, &json!(false)));
    let chat = capabilities["endpoints"].as_array().expect("endpoints").iter();
    let chat = chat.filter(|endpoint| endpoint["path"] == "/v1/chat/completions").collect::<Vec<_>>();
    let fields = chat[0]["fields"].as_array().expect("fields");
    let is = |name: &str| fields.iter().find(|field| field["field"] == name).map(|field| field["is"].clone());
    assert_eq!(is("temperature"), Some(json!("honoured")));
    assert_eq!(is("messages[].content[].text"), Some(json!("honoured")));
    assert_eq!(is("metadata"), Some(json!("ignored")));
    assert_eq!(is("audio"), Some(json!("refused")));
    assert_eq!(is("temprature"), None);
}

#[test]
fn a_strict_server_refuses_what_it_does_not_know() {
    let config = Config { strict: true, ..Config::default() };
    let server = Server::start(Setup { config, ..Setup::default() });
    for stream in [false, true] {
        let refused = post(server.address, &request(&json!({"temprature": 1, "stream": stream})));
        let error = &refused.json()["error"];
        assert_eq!((refused.status, &error["param"]), (400, &json!("temprature")), "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("known are model, messages") && message.contains("temperature"), "{message}");
        assert_eq!(post(server.address, &request(&json!({"user": "u", "stream": stream}))).status, 200);
    }
}
