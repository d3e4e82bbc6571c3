//! Golden files of what goes over the wire: a folder of tests/data/wire for each case, with the request, what the model
//! says (nothing: its hash), and the answers that are expected, whole and streamed. `UPDATE=1` writes those anew.

use std::{
    fs,
    path::{Path, PathBuf},
};

use mettle::server::Pool;
use serde_json::{Value, json};

use super::{
    client::{Answer, post_to},
    fixture::{Server, Setup},
    kinds::counting,
};

/// A folder of tests/data/wire.
struct Endpoint {
    folder: &'static str,
    path: &'static str,
    /// The field that asks for a stream, where answers can be streamed.
    stream: Option<&'static str>,
}

const ENDPOINTS: &[Endpoint] = &[
    Endpoint { folder: "openai/chat", path: "/v1/chat/completions", stream: Some("stream") },
    Endpoint { folder: "openai/embeddings", path: "/v1/embeddings", stream: None },
];

#[test]
fn golden_files() {
    let mut cases = 0;
    for endpoint in ENDPOINTS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/wire").join(endpoint.folder);
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("entry").path()).collect();
        entries.sort();
        for case in entries {
            check(&case, endpoint);
            cases += 1;
        }
    }
    assert!(cases >= 10, "{cases}");
}

/// Every endpoint has golden files, and all that lie there are read.
#[test]
fn every_endpoint_has_golden_files() {
    let server = Server::start(Setup::default());
    let capabilities = super::client::get(server.address, "/v1/capabilities").json();
    for endpoint in capabilities["endpoints"].as_array().expect("a list") {
        let path = endpoint["path"].as_str().expect("a path");
        let has = ENDPOINTS.iter().any(|endpoint| path == endpoint.path);
        assert!(has, "{path} has no row in ENDPOINTS with golden files in tests/data/wire");
    }
    let vendors = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/wire")).expect("a folder");
    for vendor in vendors.flatten().filter(|entry| entry.path().is_dir()) {
        for folder in fs::read_dir(vendor.path()).expect("a folder").flatten() {
            let is_read = ENDPOINTS.iter().any(|endpoint| folder.path().ends_with(endpoint.folder));
            assert!(is_read, "no row in ENDPOINTS reads {}", folder.path().display());
        }
    }
}

fn check(case: &Path, endpoint: &Endpoint) {
    let request: Value =
        serde_json::from_str(&fs::read_to_string(case.join("request.json")).expect("a request")).expect("JSON");
    let setup =
        fs::read_to_string(case.join("says.txt")).map_or_else(|_| Setup::default(), |text| Setup::saying(&text));
    let more = |models: &mut Pool| models.insert(vec!["vectors".to_owned()], counting(None));
    let server = Server::start(Setup { more, ..setup });
    let whole = post_to(server.address, endpoint.path, request.to_string().as_bytes());
    compare(&case.join("whole.txt"), &written(&whole));
    let Some(stream) = endpoint.stream else { return };
    let mut streaming = request;
    streaming[stream] = json!(true);
    let streamed = post_to(server.address, endpoint.path, streaming.to_string().as_bytes());
    compare(&case.join("stream.txt"), &written(&streamed));
}

/// An answer with its status and the headers that say something, without what changes from one to the next.
fn written(answer: &Answer) -> String {
    let headers = ["content-type", "retry-after", "x-mettle-ignored"];
    let headers = headers.iter().filter_map(|name| Some(format!("{name}: {}\n", answer.header(name)?)));
    let head: String = headers.collect();
    let body: Vec<String> = answer.body.lines().map(without_chance).collect();
    format!("{}\n{head}\n{}\n", answer.status, body.join("\n"))
}

/// A line with its ids and times taken out.
fn without_chance(line: &str) -> String {
    let (prefix, json) = line.split_at(if line.starts_with("data: ") { 6 } else { 0 });
    let Ok(mut json) = serde_json::from_str::<Value>(json) else { return line.to_owned() };
    for (name, value) in [("id", json!("ID")), ("created", json!(0)), ("system_fingerprint", json!("FINGERPRINT"))] {
        if json.get(name).is_some() {
            json[name] = value;
        }
    }
    let calls = ["message", "delta"].map(|from| format!("/choices/0/{from}/tool_calls"));
    for calls in calls {
        for call in json.pointer_mut(&calls).and_then(Value::as_array_mut).into_iter().flatten() {
            if call.get("id").is_some() {
                call["id"] = json!("CALL");
            }
        }
    }
    format!("{prefix}{json}")
}

fn compare(path: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some() {
        return fs::write(path, found).expect("it can be written");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} is not what it was; UPDATE=1 writes it anew", path.display());
}
