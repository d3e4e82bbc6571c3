//! Models of several kinds in one server, some of them loaded when they are asked for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mettle::{
    chat::{EmbedPermit, EmbeddingModel, Error, Vectors},
    engine::Stats,
    server::{Config, Loaded, Pool},
};
use serde_json::{Value, json};

use super::{
    client::{Answer, begin, finish, get, post, post_to},
    fixture::{Server, Setup, tokenizer},
    request,
};

const EMBEDDINGS: &str = "/v1/embeddings";

/// Vectors of four numbers: a text's length, and three that say nothing.
struct Counting {
    failure: Option<&'static str>,
    is_full: bool,
}

impl Vectors for Counting {
    fn context(&self) -> usize {
        20
    }

    fn dimensions(&self) -> usize {
        4
    }

    fn reserve(&self) -> Result<EmbedPermit, Error> {
        if self.is_full {
            return Err(Error::Busy { waiting: 3, limit: 3, retry_after: 7 });
        }
        let vector = |row: &Vec<u32>| vec![row.len() as f32, 0.0, -1.5, 0.0];
        Ok(Box::new(move |rows| Box::pin(async move { Ok(rows.iter().map(vector).collect()) })))
    }

    fn stats(&self) -> Stats {
        Stats { finished: 7, ..Stats::default() }
    }

    fn failure(&self) -> Option<String> {
        self.failure.map(str::to_owned)
    }

    fn close(&self) {}
}

pub fn counting(failure: Option<&'static str>) -> EmbeddingModel {
    EmbeddingModel::new(Arc::new(tokenizer()), Box::new(Counting { failure, is_full: false }))
}

fn with_vectors() -> Server {
    let more = |models: &mut Pool| models.insert(vec!["vectors".to_owned()], counting(None));
    Server::start(Setup { more, ..Setup::default() })
}

fn embed(server: &Server, fields: &Value) -> Answer {
    let mut body = json!({"model": "vectors", "input": "abc"});
    for (name, value) in fields.as_object().expect("an object") {
        body[name] = value.clone();
    }
    post_to(server.address, EMBEDDINGS, body.to_string().as_bytes())
}

#[test]
fn texts_become_vectors() {
    let server = with_vectors();
    let check = |fields: Value, vectors: Value, tokens: usize| {
        let answer = embed(&server, &fields);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let body = answer.json();
        let data = body["data"].as_array().expect("data");
        let found: Vec<&Value> = data.iter().map(|entry| &entry["embedding"]).collect();
        assert_eq!(json!(found), vectors, "{fields}");
        assert!(data.iter().enumerate().all(|(index, entry)| entry["index"] == index), "{body}");
        assert_eq!(body["usage"], json!({"prompt_tokens": tokens, "total_tokens": tokens}));
        assert_eq!(body["model"], "vectors");
    };
    check(json!({}), json!([[3.0, 0.0, -1.5, 0.0]]), 3);
    check(json!({"input": ["a", "bcde"]}), json!([[1.0, 0.0, -1.5, 0.0], [4.0, 0.0, -1.5, 0.0]]), 5);
    check(json!({"input": [1, 2]}), json!([[2.0, 0.0, -1.5, 0.0]]), 2);
    check(json!({"input": [[1, 2], [3]]}), json!([[2.0, 0.0, -1.5, 0.0], [1.0, 0.0, -1.5, 0.0]]), 3);
    check(json!({"dimensions": 2}), json!([[1.0, 0.0]]), 3);
    check(json!({"encoding_format": "base64"}), json!(["AABAQAAAAAAAAMC/AAAAAA=="]), 3);
}

#[test]
fn inputs_that_are_refused() {
    let server = with_vectors();
    for (fields, param, piece) in [
        (json!({"input": ""}), "input", "empty"),
        (json!({"input": ["a", ""]}), "input[1]", "empty"),
        (json!({"input": ["a", "x".repeat(21)]}), "input[1]", "21 tokens long, but the model takes 20"),
        (json!({"input": [[1], [257]]}), "input[1]", "there is no token 257: the model's tokens go from 0 to 256"),
        (json!({"dimensions": 5}), "dimensions", "ask for 1 to 4"),
        (json!({"model": "nope"}), "model", "no model \"nope\""),
        (json!({"model": "tiny"}), "model", "does not answer embeddings; others: vectors"),
    ] {
        let answer = embed(&server, &fields);
        let error = &answer.json()["error"];
        assert!([400, 404].contains(&answer.status) && error["param"] == param, "{fields}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(piece)), "{error}");
    }
    let ignored = embed(&server, &json!({"user": "u", "truncate": true}));
    assert_eq!((ignored.status, ignored.header("x-mettle-ignored")), (200, Some("user, truncate")));
}

#[test]
fn a_full_model_of_vectors_reads_no_request() {
    let more = |models: &mut Pool| {
        let full = Counting { failure: None, is_full: true };
        models.insert(vec!["vectors".to_owned()], EmbeddingModel::new(Arc::new(tokenizer()), Box::new(full)));
    };
    let server = Server::start(Setup { more, ..Setup::default() });
    // What is wrong with a request is not looked for where there is no room.
    for fields in [json!({}), json!({"input": 5})] {
        let refused = embed(&server, &fields);
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("7")), "{}", refused.body);
    }
    let health = get(server.address, "/health").json();
    assert_eq!(health["models"][1]["finished"], 7, "the counters of its engine are shown: {health}");
}

#[test]
fn a_model_of_vectors_does_not_chat() {
    let server = with_vectors();
    let refused = post(server.address, &request(&json!({"model": "vectors"})));
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["param"]), (400, &json!("model")));
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("kind embedding") && message.contains("others: tiny"), "{message}");
    assert_eq!(post(server.address, &request(&json!({"model": "tiny"}))).status, 200);
    let unnamed = post(server.address, &request(&json!({}))).json();
    assert!(unnamed["error"]["message"].as_str().is_some_and(|text| text.contains("no model is named")), "{unnamed}");
}

#[test]
fn a_model_that_failed_says_so() {
    let more = |models: &mut Pool| models.insert(vec!["broken".to_owned()], counting(Some("it ran out of ink")));
    let server = Server::start(Setup { more, ..Setup::default() });
    let refused = embed(&server, &json!({"model": "broken"}));
    let error = refused.json()["error"].clone();
    assert_eq!((refused.status, &error["code"]), (500, &json!("model_failed")));
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("the model broken has failed: it ran out of ink"), "{message}");
    let health = get(server.address, "/health").json();
    assert_eq!((&health["status"], &health["models"][1]["state"]), (&json!("degraded"), &json!("failed")));
    assert!(health["problems"][0].as_str().is_some_and(|problem| problem.contains("out of ink")), "{health}");
    assert_eq!(post(server.address, &request(&json!({"model": "tiny"}))).status, 200, "the others answer on");
}

static LOADS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_model_is_loaded_by_the_first_who_asks() {
    let more = |models: &mut Pool| {
        let load = || {
            LOADS.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(300));
            Ok(Loaded::from(counting(None)))
        };
        models.register(vec!["late".to_owned()], Arc::new(load));
        models.register(vec!["never".to_owned()], Arc::new(|| Err("its weights are torn".to_owned())));
    };
    let server = Server::start(Setup { more, ..Setup::default() });
    let state = || get(server.address, "/health").json()["models"][1]["state"].clone();
    assert_eq!(state(), "not loaded");
    let body = json!({"model": "late", "input": "abc"}).to_string();
    let asked: Vec<_> = (0..4).map(|_| begin(server.address, "POST", EMBEDDINGS, body.as_bytes())).collect();
    while state() == "not loaded" {}
    for answer in asked.into_iter().map(finish) {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert_eq!((state(), LOADS.load(Ordering::Relaxed)), (json!("loaded"), 1));

    for _ in 0..2 {
        let refused = embed(&server, &json!({"model": "never"}));
        let message = refused.json()["error"]["message"].as_str().expect("a message").to_owned();
        assert_eq!(refused.status, 500);
        assert!(message.contains("never could not be loaded: its weights are torn"), "{message}");
    }
    assert_eq!(get(server.address, "/health").json()["status"], "degraded");
}

#[test]
fn who_will_not_wait_for_a_load_is_told_when_to_look() {
    let more = |models: &mut Pool| {
        let load = || {
            std::thread::sleep(Duration::from_millis(500));
            Ok(Loaded::from(counting(None)))
        };
        models.register(vec!["late".to_owned()], Arc::new(load));
    };
    let config = Config { load_patience: Duration::ZERO, ..Config::default() };
    let server = Server::start(Setup { more, config, ..Setup::default() });
    let refused = embed(&server, &json!({"model": "late"}));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("10")), "{}", refused.body);
    assert_eq!(refused.json()["error"]["code"], "model_loading");
}
