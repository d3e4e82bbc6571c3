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

/// Folders of tests/data/wire, and the endpoint that each is for.
const ENDPOINTS: &[(&str, &str)] = &[("openai/chat", "/v1/chat/completions"), ("openai/embeddings", "/v1/embeddings")];

#[test]
fn golden_files() {
    let mut cases = 0;
    for (folder, path) in ENDPOINTS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/wire").join(folder);
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("entry").path()).collect();
        entries.sort();
        for case in entries {
            check(&case, path);
            cases += 1;
        }
    }
    assert!(cases >= 10, "{cases}");
}

fn check(case: &Path, path: &str) {
    let request: Value =
        serde_json::from_str(&fs::read_to_string(case.join("request.json")).expect("a request")).expect("JSON");
    let setup =
        fs::read_to_string(case.join("says.txt")).map_or_else(|_| Setup::default(), |text| Setup::saying(&text));
    let more = |models: &mut Pool| models.insert(vec!["vectors".to_owned()], counting(None));
    let server = Server::start(Setup { more, ..setup });
    let whole = post_to(server.address, path, request.to_string().as_bytes());
    compare(&case.join("whole.txt"), &written(&whole));
    if path.ends_with("/embeddings") {
        return;
    }
    let mut streaming = request;
    streaming["stream"] = json!(true);
    let streamed = post_to(server.address, path, streaming.to_string().as_bytes());
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
