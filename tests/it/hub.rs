//! Names, downloads and caches, against a hub on loopback and a made package.

mod package;
mod server;
mod variables;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mettle::hub::{Alias, Config, Error, Event, Hub, Place, STARTER, alias};

use server::{Asked, COMMIT, Server, sha256};

const LLAMA: &[u8] = br#"{"model_type": "llama"}"#;
const INDEX: &[u8] = br#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;

/// A hub and an empty cache for it.
struct Bench {
    server: Server,
    root: tempfile::TempDir,
    weights: Vec<u8>,
}

impl Bench {
    /// Serves a small llama of two shards, with files beside it that no download should take.
    fn new() -> Bench {
        let weights: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let server = Server::new(&[
            ("config.json", LLAMA),
            ("tokenizer.json", b"{}"),
            ("model.safetensors.index.json", INDEX),
            ("model-1.safetensors", &weights),
            ("model-2.safetensors", &weights[..1000]),
            ("README.md", b"read me"),
            ("modeling.py", b"import os"),
            ("../evil.json", b"{}"),
        ]);
        Bench { server, root: tempfile::tempdir().expect("a temporary folder"), weights }
    }

    fn config(&self) -> Config {
        Config {
            hub_cache: self.root.path().join("hub"),
            cache: self.root.path().join("own"),
            endpoint: self.server.endpoint.clone(),
            python: "/nowhere/python3".into(),
            architectures: vec!["llama".into(), "qwen3_5".into()],
            ..Config::default()
        }
    }

    fn hub(&self) -> Hub {
        Hub::new(self.config())
    }

    fn repo(&self) -> PathBuf {
        self.root.path().join("hub/models--org--name")
    }

    /// Everything below the repository's folder in the cache, relative, sorted.
    fn cached(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(&self.repo(), &self.repo(), &mut found);
        found.sort();
        found
    }

    fn partial(&self) -> PathBuf {
        self.repo().join(format!("blobs/{}.incomplete", sha256(&self.weights)))
    }
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(root, &entry.path(), found);
        } else {
            let path = entry.path();
            found.push(path.strip_prefix(root).expect("below it").display().to_string());
        }
    }
}

fn quiet(_: Event) {}

async fn fetch(hub: &Hub, name: &str) -> Result<PathBuf, Error> {
    hub.fetch(&hub.resolve(name)?, &quiet).await
}

fn bytes_of(asked: &[Asked]) -> Vec<&Asked> {
    asked.iter().filter(|asked| asked.path.contains("signature=") && asked.method == "GET").collect()
}

#[tokio::test]
async fn a_fresh_download_lies_where_other_tools_look() {
    let bench = Bench::new();
    let events = Mutex::new(Vec::new());
    let hub = bench.hub();
    let source = hub.resolve("org/name").expect("a repository");
    assert_eq!(hub.locate(&source), None);
    let path = hub.fetch(&source, &|event| events.lock().expect("unpoisoned").push(event)).await.expect("downloaded");

    assert_eq!(path, bench.repo().join("snapshots").join(COMMIT));
    let names = ["config.json", "model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json"];
    for name in names.iter().chain(&["tokenizer.json"]) {
        let link = fs::read_link(path.join(name)).expect("a link");
        assert!(link.starts_with("../../blobs"), "{}: links are relative", link.display());
    }
    assert_eq!(fs::read(path.join("model-1.safetensors")).expect("readable"), bench.weights);
    assert_eq!(fs::read_to_string(bench.repo().join("refs/main")).expect("a ref"), COMMIT);
    let cached = bench.cached();
    assert_eq!(cached.len(), 5 + 5 + 1, "five blobs, five links, one ref, nothing else: {cached:?}");
    assert!(cached.contains(&format!("blobs/{}", sha256(&bench.weights))));

    let total = 3_000_000 + 1000 + LLAMA.len() as u64 + INDEX.len() as u64 + 2;
    let events = events.into_inner().expect("unpoisoned");
    assert!(events.contains(&Event::Size { files: 5, bytes: Some(total) }), "{events:?}");
    let last = events.iter().rev().find(|event| matches!(event, Event::Bytes { .. }));
    assert_eq!(last, Some(&Event::Bytes { done: total }));
}

#[tokio::test]
async fn a_warm_cache_asks_nothing() {
    let bench = Bench::new();
    let path = fetch(&bench.hub(), "org/name").await.expect("downloaded");
    bench.server.asked();
    let warm = bench.hub();
    for name in ["org/name".to_string(), format!("org/name@{COMMIT}")] {
        assert_eq!(fetch(&warm, &name).await.expect("warm"), path);
    }
    assert_eq!(bench.server.asked(), []);
    let installed = warm.installed();
    let total = 3_000_000 + 1000 + LLAMA.len() as u64 + INDEX.len() as u64 + 2;
    assert_eq!((installed[0].name.as_str(), installed[0].bytes), ("org/name", total));
}

#[tokio::test]
async fn a_cut_connection_is_resumed_within_one_fetch() {
    let bench = Bench::new();
    bench.server.set(|state| state.cuts = 3);
    let path = fetch(&bench.hub(), "org/name").await.expect("it goes on after the cuts");
    assert_eq!(fs::read(path.join("model-1.safetensors")).expect("readable"), bench.weights);
    let asked = bench.server.asked();
    assert!(bytes_of(&asked).iter().filter(|asked| asked.range.is_some()).count() >= 2, "{asked:?}");
}

#[tokio::test]
async fn the_next_fetch_resumes_what_an_earlier_one_left() {
    let bench = Bench::new();
    fs::create_dir_all(bench.repo().join("blobs")).expect("writable");
    fs::write(bench.partial(), &bench.weights[..1_234_567]).expect("writable");
    let path = fetch(&bench.hub(), "org/name").await.expect("resumed");
    assert_eq!(fs::read(path.join("model-1.safetensors")).expect("readable"), bench.weights);
    let asked = bench.server.asked();
    let ranges: Vec<_> = bytes_of(&asked).iter().filter_map(|asked| asked.range.clone()).collect();
    assert_eq!(ranges, ["bytes=1234567-"]);
}

#[tokio::test]
async fn a_connection_that_breaks_for_good_leaves_what_came_and_no_snapshot() {
    let bench = Bench::new();
    let hub = bench.hub();
    bench.server.set(|state| state.half_only = true);
    let error = fetch(&hub, "org/name").await.expect_err("it never completes");
    assert!(matches!(error, Error::Network { .. }), "{error}");
    assert!(!error.to_string().contains("signature"), "signed addresses are secrets: {error}");
    assert!(!bench.repo().join("snapshots").exists());
    assert!(fs::metadata(bench.partial()).map_or(0, |meta| meta.len()) <= 1_500_000);
    assert_eq!(hub.locate(&hub.resolve("org/name").expect("a repository")), None);
    bench.server.set(|state| state.half_only = false);
    fetch(&hub, "org/name").await.expect("the network is back");
}

#[tokio::test]
async fn a_server_without_ranges_or_a_partial_file_with_wrong_bytes_still_ends_well() {
    let bench = Bench::new();
    fs::create_dir_all(bench.repo().join("blobs")).expect("writable");
    fs::write(bench.partial(), &bench.weights[..777]).expect("writable");
    bench.server.set(|state| state.ignores_ranges = true);
    let path = fetch(&bench.hub(), "org/name").await.expect("from the start");
    assert_eq!(fs::read(path.join("model-1.safetensors")).expect("readable"), bench.weights);

    let bench = Bench::new();
    fs::create_dir_all(bench.repo().join("blobs")).expect("writable");
    fs::write(bench.partial(), vec![0; 777]).expect("writable");
    let error = fetch(&bench.hub(), "org/name").await.expect_err("the digest tells");
    assert!(matches!(error, Error::Mismatch { what: "sha256", .. }), "{error}");
    fetch(&bench.hub(), "org/name").await.expect("the wrong bytes are gone, so the next one works");
}

#[tokio::test]
async fn wrong_bytes_are_refused_and_deleted() {
    let bench = Bench::new();
    bench.server.set(|state| {
        state.wrong_bytes = true;
        state.files.remove("model-2.safetensors");
        state.files.remove("model.safetensors.index.json");
    });
    let error = fetch(&bench.hub(), "org/name").await.expect_err("the digest tells");
    assert!(matches!(&error, Error::Mismatch { what: "sha256", file, .. } if file == "org/name/model-1.safetensors"));
    let cached = bench.cached();
    let left = |name: &String| name.contains(&sha256(&bench.weights)) || name.starts_with("snapshots");
    assert!(!cached.iter().any(left), "{cached:?}");
}

#[tokio::test]
async fn the_token_goes_to_the_endpoint_only_and_renamed_repositories_are_followed() {
    let bench = Bench::new();
    let hub = Hub::new(Config { token: Some("secret".into()), ..bench.config() });
    fetch(&hub, "old/name").await.expect("redirected");
    let asked = bench.server.asked();
    assert!(asked.iter().any(|asked| asked.path.starts_with("/api/models/old/name")));
    for asked in &asked {
        let expected = (!asked.path.contains("signature=")).then_some("Bearer secret");
        assert_eq!(asked.authorization.as_deref(), expected, "{asked:?}");
    }
    assert!(!bytes_of(&asked).is_empty());
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let cases = [
        (401, "", "private", "check the spelling"),
        (401, "GatedRepo", "gated", "accept the terms"),
        (403, "GatedRepo", "gated", "HF_TOKEN"),
        (404, "RepoNotFound", "no repository org/name", "check the spelling"),
        (404, "RevisionNotFound", "no revision", "full commit id"),
        (418, "", "status 418", ""),
    ];
    for (status, code, says, advises) in cases {
        let bench = Bench::new();
        bench.server.set(|state| state.refusal = Some((status, code)));
        let error = fetch(&bench.hub(), "org/name").await.expect_err("refused");
        let hint = error.hint().unwrap_or_default();
        assert!(format!("{error} {hint}").contains(says) && hint.contains(advises), "{status} {code}: {error} {hint}");
        assert_eq!(bench.server.asked().len(), 1, "{status}: a refusal is not tried again");
        assert_eq!(bench.cached(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_busy_hub_is_asked_again_and_an_absent_one_is_named() {
    let bench = Bench::new();
    bench.server.set(|state| state.busy = 2);
    fetch(&bench.hub(), "org/name").await.expect("the third try works");

    let hub = Hub::new(Config { endpoint: "http://127.0.0.1:9".into(), ..bench.config() });
    let error = fetch(&hub, "org/other").await.expect_err("nobody listens");
    assert!(error.to_string().contains("cannot reach http://127.0.0.1:9/api/models/org/other"), "{error}");
    assert!(error.hint().expect("advice").contains("check the network"));
}

#[tokio::test]
async fn a_pinned_revision_and_a_moving_branch() {
    let bench = Bench::new();
    let hub = bench.hub();
    let pinned = format!("org/name@{COMMIT}");
    fetch(&hub, &pinned).await.expect("downloaded");
    assert!(!bench.repo().join("refs").exists(), "a commit needs no ref");
    assert!(
        matches!(fetch(&hub, "org/name@v9").await, Err(Error::NoSuchRevision { revision, .. }) if revision == "v9")
    );
    fetch(&hub, "org/name").await.expect("main is the same commit");

    let moved = "f".repeat(40);
    bench.server.set(|state| {
        state.commit = moved.clone();
        state.files.insert("tokenizer.json".into(), b"{\"new\": 1}".to_vec());
    });
    bench.server.asked();
    let source = hub.resolve("org/name").expect("a repository");
    let old = hub.fetch(&source, &quiet).await.expect("warm");
    assert!(old.ends_with(COMMIT) && bench.server.asked().is_empty());
    let new = hub.update(&source, &quiet).await.expect("moved on");
    assert!(new.ends_with(&moved));
    let asked = bench.server.asked();
    assert_eq!(bytes_of(&asked), Vec::<&Asked>::new(), "the weights are the same blobs");
    assert_eq!(fs::read(new.join("tokenizer.json")).expect("readable"), b"{\"new\": 1}");
    let source = hub.resolve(&pinned).expect("a repository");
    assert!(hub.update(&source, &quiet).await.expect("pinned").ends_with(COMMIT));
}

#[tokio::test]
async fn an_unknown_architecture_is_refused_before_its_weights() {
    let bench = Bench::new();
    bench.server.set(|state| drop(state.files.insert("config.json".into(), br#"{"model_type": "mamba9"}"#.to_vec())));
    let error = fetch(&bench.hub(), "org/name").await.expect_err("mettle cannot run it");
    assert!(matches!(&error, Error::Architecture { found, .. } if found == "mamba9"), "{error}");
    assert!(error.hint().expect("advice").contains("llama, qwen3_5"));
    let asked = bench.server.asked();
    assert!(asked.iter().all(|asked| asked.method == "HEAD" || !asked.path.contains("model-")), "{asked:?}");
    let anything = Hub::new(Config { architectures: Vec::new(), ..bench.config() });
    fetch(&anything, "org/name").await.expect("an empty list refuses nothing");
}

#[tokio::test]
async fn an_index_is_held_against_the_files_before_they_are_downloaded() {
    // Of another build: the files' own numbers count, and all are here.
    let bench = Bench::new();
    bench.server.set(|state| {
        let index = br#"{"weight_map": {"a": "model-00001-of-00009.safetensors"}}"#.to_vec();
        state.files.insert("model.safetensors.index.json".into(), index);
    });
    fetch(&bench.hub(), "org/name").await.expect("downloaded");
    bench.server.asked();
    fetch(&bench.hub(), "org/name").await.expect("it is here");
    assert_eq!(bench.server.asked(), [], "a model that is here is asked for no more");
    // One of its files is not in the repository.
    let bench = Bench::new();
    bench.server.set(|state| drop(state.files.remove("model-2.safetensors")));
    let error = fetch(&bench.hub(), "org/name").await.expect_err("a file is missing");
    assert!(error.to_string().contains("lacks model-2.safetensors"), "{error}");
    let asked = bench.server.asked();
    assert!(asked.iter().all(|asked| asked.method == "HEAD" || !asked.path.contains("model-")), "{asked:?}");
}

/// A judge that needs so many bytes to see that a file begins with "bad".
fn judge(name: &str, part: &Path, _: u64) -> Result<Option<()>, String> {
    let bytes = fs::read(part).unwrap_or_default();
    match () {
        () if name.contains("split") => Err("split".into()),
        () if bytes.len() < 2_000_000 => Ok(None),
        () if bytes.starts_with(b"bad") => Err("it is bad".into()),
        () => Ok(Some(())),
    }
}

#[tokio::test]
async fn a_gguf_is_judged_before_the_rest_of_it_is_downloaded() {
    let fill = |start: &[u8]| [start, &vec![7; 40_000_000]].concat();
    let (bad, good) = (fill(b"bad"), fill(b"good"));
    let server = Server::new(&[("bad.gguf", &bad), ("good.gguf", &good), ("split.gguf", &good)]);
    let root = tempfile::tempdir().expect("a temporary folder");
    let config = Config {
        hub_cache: root.path().join("hub"),
        endpoint: server.endpoint.clone(),
        judge: Some(judge),
        ..Config::default()
    };
    let hub = Hub::new(config);
    let error = fetch(&hub, "org/name#bad.gguf").await.expect_err("it is refused");
    assert!(error.to_string().contains("org/name/bad.gguf: it is bad"), "{error}");
    let partial = root.path().join("hub/models--org--name/blobs").join(format!("{}.incomplete", sha256(&bad)));
    let came = fs::metadata(partial).expect("its first part").len();
    assert!((2_000_000..20_000_000).contains(&came), "{came}");
    server.asked();
    let error = fetch(&hub, "org/name#split.gguf").await.expect_err("it is refused");
    assert!(error.to_string().contains("split"), "{error}");
    assert!(bytes_of(&server.asked()).is_empty(), "its name was enough");
    let path = fetch(&hub, "org/name#good.gguf").await.expect("downloaded behind its first part");
    assert_eq!(fs::read(path).expect("a file"), good);
}

#[tokio::test]
async fn of_a_gguf_repository_one_file_is_taken() {
    let files: [(&str, &[u8]); 3] = [("m-Q4_0.gguf", b"four"), ("m-Q8_0.gguf", b"eight"), ("README.md", b"")];
    let bench = Bench { server: Server::new(&files), ..Bench::new() };
    let hub = bench.hub();
    let path = fetch(&hub, "org/name").await.expect("downloaded");
    assert!(path.ends_with("m-Q4_0.gguf") && fs::read(&path).expect("readable") == b"four");
    let path = fetch(&hub, "org/name#m-Q8_0.gguf").await.expect("downloaded");
    assert_eq!(fs::read(&path).expect("readable"), b"eight");
    let error = fetch(&hub, "org/name#m.gguf").await.expect_err("no such file");
    assert_eq!(error.hint().expect("advice"), "its model files are: m-Q4_0.gguf, m-Q8_0.gguf");

    let bench = Bench { server: Server::new(&[("pytorch_model.bin", b"x")]), ..Bench::new() };
    assert!(matches!(fetch(&bench.hub(), "org/name").await, Err(Error::NoModel { .. })));
}

#[tokio::test]
async fn two_fetches_of_one_model_download_it_once() {
    let bench = Bench::new();
    let tasks = [bench.hub(), bench.hub()].map(|hub| tokio::spawn(async move { fetch(&hub, "org/name").await }));
    for task in tasks {
        assert!(task.await.expect("no panic").expect("downloaded").ends_with(COMMIT));
    }
    let asked = bench.server.asked();
    assert_eq!(bytes_of(&asked).len(), 2, "one for each shard: {asked:?}");
}

#[tokio::test]
async fn offline_means_no_request() {
    let bench = Bench::new();
    let hub = Hub::new(Config { offline: true, ..bench.config() });
    for name in ["org/name", STARTER] {
        let error = fetch(&hub, name).await.expect_err("not here");
        assert!(matches!(error, Error::Offline { .. }), "{error}");
    }
    assert_eq!(bench.server.asked(), []);
    fetch(&bench.hub(), "org/name").await.expect("online");
    fetch(&hub, "org/name").await.expect("offline, but here");
}

#[test]
fn the_alias_table_holds_every_file_of_its_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("aliases");
    let mut files: Vec<String> = fs::read_dir(folder)
        .expect("aliases/ is there")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_string))
        .collect();
    files.sort();
    let mut known: Vec<&str> = alias::FAMILIES.iter().map(|(name, _)| *name).collect();
    known.sort();
    assert_eq!(files, known);
}

#[test]
fn what_fits_a_machine_runs_here_and_is_sorted_by_size() {
    let hub = Hub::new(Config { architectures: vec!["llama".into(), "qwen3_5".into()], ..Config::default() });
    let names = |memory| hub.fits(memory).iter().map(|alias| alias.alias.as_str()).collect::<Vec<_>>();
    assert_eq!(names(0), Vec::<&str>::new());
    assert_eq!(names(1_000_000_000), [STARTER]);
    let laptop = names(16_000_000_000);
    assert!(laptop.contains(&"qwen3.5-4b-4bit") && !laptop.contains(&"qwen3.5-27b-4bit"), "{laptop:?}");
    let sizes: Vec<u64> = hub.fits(u64::MAX).iter().map(|alias| alias.size).collect();
    assert!(sizes.is_sorted() && sizes.len() > laptop.len());
    let nothing = Hub::new(Config::default());
    assert_eq!(nothing.fits(u64::MAX).len(), 0, "what is not known to run is not offered");
    let starter: &Alias = alias::find(STARTER).expect("the starter is an alias");
    assert!(matches!(starter.source[0], Place::Package(_)) && matches!(starter.source[1], Place::Repo(_)));
}
