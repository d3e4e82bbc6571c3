//! A hub on loopback for the tests: the two addresses that a download uses, on two ports (the second stands for the
//! host that large files lie on), with faults on demand and a record of what was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

/// The commit that `main` of the served repository points to at first.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What the server does, changed by a test while it runs.
#[derive(Default)]
pub struct State {
    /// Name → bytes. Names with `safetensors` or `gguf` in them are large files: they have a SHA-256 and lie elsewhere.
    pub files: BTreeMap<String, Vec<u8>>,
    /// So many answers with a large file's bytes end after half of what they promised.
    pub cuts: usize,
    /// Of large files, the second half never arrives.
    pub half_only: bool,
    /// Large files arrive with their last byte changed.
    pub wrong_bytes: bool,
    /// Ranges are ignored: every answer is the whole file.
    pub ignores_ranges: bool,
    /// Answer of this status and `X-Error-Code` to everything.
    pub refusal: Option<(u16, &'static str)>,
    /// So many answers are 503 first.
    pub busy: usize,
    /// The commit that `main` points to.
    pub commit: String,
    pub asked: Vec<Asked>,
}

/// A request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub range: Option<String>,
    pub authorization: Option<String>,
}

/// Runs until the test process ends.
pub struct Server {
    pub endpoint: String,
    pub state: Arc<Mutex<State>>,
}

impl Server {
    /// Serves the repository `org/name` with these files.
    pub fn new(files: &[(&str, &[u8])]) -> Server {
        let files = files.iter().map(|(name, bytes)| (name.to_string(), bytes.to_vec())).collect();
        let state = Arc::new(Mutex::new(State { files, commit: COMMIT.into(), ..State::default() }));
        let storage = listen(state.clone(), None);
        let endpoint = listen(state.clone(), Some(storage));
        Server { endpoint, state }
    }

    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("the server thread lives"));
    }

    /// The requests so far, forgotten with this call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().expect("the server thread lives").asked)
    }
}

/// Serves on a free port: the hub if it knows where the storage is, else the storage. Returns its address.
fn listen(state: Arc<Mutex<State>>, storage: Option<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (state, storage) = (state.clone(), storage.clone());
            std::thread::spawn(move || answer(stream, &state, storage.as_deref()));
        }
    });
    address
}

fn answer(mut stream: TcpStream, state: &Mutex<State>, storage: Option<&str>) -> Option<()> {
    let asked = read_request(&stream)?;
    let mut state = state.lock().ok()?;
    state.asked.push(asked.clone());
    let reply = match storage {
        Some(storage) => hub(&mut state, storage, &asked),
        None => stored(&mut state, &asked),
    };
    drop(state);
    let (head, body) = reply;
    stream.write_all(format!("HTTP/1.1 {head}Connection: close\r\n\r\n").as_bytes()).ok()?;
    if asked.method != "HEAD" {
        stream.write_all(&body).ok()?;
    }
    stream.shutdown(std::net::Shutdown::Write).ok()
}

fn read_request(stream: &TcpStream) -> Option<Asked> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let mut asked =
        Asked { method: words.next()?.into(), path: words.next()?.into(), range: None, authorization: None };
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(": ") else {
            return Some(asked);
        };
        match name.to_ascii_lowercase().as_str() {
            "range" => asked.range = Some(value.into()),
            "authorization" => asked.authorization = Some(value.into()),
            _ => {}
        }
    }
    None
}

type Reply = (String, Vec<u8>);

fn text(status: &str, headers: &str, body: &str) -> Reply {
    (format!("{status}\r\n{headers}Content-Length: {}\r\n", body.len()), body.into())
}

fn hub(state: &mut State, storage: &str, asked: &Asked) -> Reply {
    if let Some((status, code)) = state.refusal {
        return text(&format!("{status} No"), &format!("X-Error-Code: {code}\r\n"), "no");
    }
    if state.busy > 0 {
        state.busy -= 1;
        return text("503 Busy", "", "later");
    }
    if let Some(revision) = asked.path.strip_prefix("/api/models/org/name/revision/") {
        if revision != "main" && revision != state.commit {
            return text("404 No", "X-Error-Code: RevisionNotFound\r\n", "no");
        }
        let siblings: Vec<_> = state.files.keys().map(|name| serde_json::json!({ "rfilename": name })).collect();
        let listing = serde_json::json!({ "sha": state.commit, "siblings": siblings, "private": false });
        return text("200 OK", "", &listing.to_string());
    }
    // A renamed repository: relative redirects that stay on the endpoint.
    if let Some(rest) = asked.path.strip_prefix("/api/models/old/name/") {
        return text("307 Moved", &format!("Location: /api/models/org/name/{rest}\r\n"), "");
    }
    if let Some(rest) = asked.path.strip_prefix("/old/name/") {
        return text("307 Moved", &format!("Location: /org/name/{rest}\r\n"), "");
    }
    let name = asked.path.strip_prefix(&format!("/org/name/resolve/{}/", state.commit)).unwrap_or_default();
    let Some(bytes) = state.files.get(name) else {
        return text("404 No", "X-Error-Code: RepoNotFound\r\n", "no");
    };
    if name.contains("safetensors") && !name.ends_with(".json") || name.contains("gguf") {
        let headers = format!(
            "Location: {storage}/{name}?signature=secret\r\nETag: \"of-the-redirect\"\r\nX-Linked-Etag: \"{}\"\r\n\
             X-Linked-Size: {}\r\nX-Repo-Commit: {}\r\n",
            sha256(bytes),
            bytes.len(),
            state.commit
        );
        return text("302 Found", &headers, "elsewhere");
    }
    // Any name will do for a small file's ETag as long as other bytes have another one.
    let etag = &sha256(bytes)[..40];
    let head = format!("200 OK\r\nETag: W/\"{etag}\"\r\nContent-Length: {}\r\n", bytes.len());
    (head, bytes.clone())
}

fn stored(state: &mut State, asked: &Asked) -> Reply {
    let name = asked.path.trim_start_matches('/').split('?').next().unwrap_or_default();
    let Some(mut bytes) = state.files.get(name).cloned() else {
        return text("404 No", "", "no");
    };
    if state.wrong_bytes {
        *bytes.last_mut().expect("files have bytes") ^= 1;
    }
    let from = asked.range.as_deref().and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let from: usize = from.filter(|_| !state.ignores_ranges).unwrap_or(0);
    let whole = bytes.len();
    let mut body = bytes.split_off(from);
    let status = if from > 0 { "206 Partial" } else { "200 OK" };
    let head = format!("{status}\r\nContent-Length: {}\r\n", body.len());
    if state.half_only {
        body.truncate((whole / 2).saturating_sub(from));
    }
    if state.cuts > 0 {
        state.cuts -= 1;
        body.truncate(body.len() / 2);
    }
    (head, body)
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
