//! The variables and files of the hub's other tools, by the real binary: each as huggingface_hub 2.4 reads it.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::server::{COMMIT, Server};
use crate::process::mettle;

/// `mettle pull` with these variables, in which `@` is the folder, and no others of the hub's.
fn pull(name: &str, root: &Path, variables: &[(&str, &str)], offline: bool) -> Output {
    let arguments = ["pull", name, "--offline"];
    let mut command = mettle(&arguments[..if offline { 3 } else { 2 }], None);
    for name in ["HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HF_TOKEN", "HF_TOKEN_PATH"] {
        command.env_remove(name);
    }
    command.env("HOME", root.join("home"));
    for (name, value) in variables {
        command.env(name, value.replace('@', &root.to_string_lossy()));
    }
    command.output().expect("the binary runs")
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("created");
    fs::write(path, text).expect("written");
}

/// A complete `acme/tiny` in a hub cache; its main is at `main`.
fn snapshot(cache: &Path, commit: &str, main: Option<&str>) {
    let repo = cache.join("models--acme--tiny");
    put(&repo.join("snapshots").join(commit).join("config.json"), "{}");
    put(&repo.join("snapshots").join(commit).join("model.safetensors"), "");
    if let Some(main) = main {
        put(&repo.join("refs/main"), main);
    }
}

#[test]
fn where_the_cache_is() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("home/.cache/huggingface/hub", &[]),
        ("home/.cache/huggingface/hub", &[("HF_HOME", ""), ("XDG_CACHE_HOME", ""), ("HF_HUB_CACHE", "")]),
        ("xdg/huggingface/hub", &[("XDG_CACHE_HOME", "@/xdg")]),
        ("home/models/hub", &[("HF_HOME", "~/models"), ("XDG_CACHE_HOME", "@/xdg")]),
        ("disk/models/hub", &[("DISK", "@/disk"), ("HF_HOME", "$DISK/models")]),
        ("disk/models/hub", &[("DISK", "@/disk"), ("HF_HOME", "${DISK}/models")]),
        ("old", &[("HUGGINGFACE_HUB_CACHE", "@/old"), ("HF_HOME", "@/x")]),
        ("new", &[("HF_HUB_CACHE", "@/new"), ("HUGGINGFACE_HUB_CACHE", "@/old")]),
        ("home/new", &[("HF_HUB_CACHE", "~/new")]),
    ];
    for (cache, variables) in cases {
        let root = tempfile::tempdir().expect("a folder");
        snapshot(&root.path().join(cache), COMMIT, Some(COMMIT));
        let output = pull("acme/tiny", root.path(), variables, true);
        assert!(output.status.success(), "{cache} {variables:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn whether_it_is_offline() {
    let cases: &[(&[(&str, &str)], bool)] = &[
        (&[("HF_HUB_OFFLINE", "1")], true),
        (&[("HF_HUB_OFFLINE", "Yes")], true),
        (&[("TRANSFORMERS_OFFLINE", "on")], true),
        (&[("HF_HUB_OFFLINE", "0"), ("TRANSFORMERS_OFFLINE", "1")], false),
        (&[("HF_HUB_OFFLINE", "banana")], false),
        (&[("HF_HUB_OFFLINE", "")], false),
    ];
    for (variables, expected) in cases {
        let root = tempfile::tempdir().expect("a folder");
        let variables = [&[("HF_ENDPOINT", "http://127.0.0.1:9")], *variables].concat();
        let output = pull("acme/tiny", root.path(), &variables, false);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("(offline)"), *expected, "{variables:?}: {said}");
        assert_eq!(said.contains("cannot reach"), !*expected, "{variables:?}: {said}");
    }
}

/// Variables, and the token that is sent.
type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);

#[test]
fn who_asks() {
    let cases: &[Case] = &[
        (&[("HF_TOKEN", "one\r\n")], Some("one")),
        (&[("HF_TOKEN", " "), ("HUGGING_FACE_HUB_TOKEN", "old")], Some("old")),
        (&[("HF_TOKEN", "one"), ("HF_HOME", "@/login")], Some("one")),
        (&[("HF_HOME", "@/login")], Some("file")),
        (&[("HF_TOKEN_PATH", "@/login/token")], Some("file")),
        (&[("HF_HOME", "@/login"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")], None),
        (&[], None),
    ];
    for (variables, expected) in cases {
        let root = tempfile::tempdir().expect("a folder");
        put(&root.path().join("login/token"), "file\n");
        let server = Server::new(&[("config.json", b"{}"), ("model.safetensors", b"")]);
        let variables = [&[("HF_ENDPOINT", server.endpoint.as_str())], *variables].concat();
        pull("org/name", root.path(), &variables, false);
        let sent = server.asked().first().expect("it asks").authorization.clone();
        assert_eq!(sent, expected.map(|token| format!("Bearer {token}")), "{variables:?}");
    }
    let root = tempfile::tempdir().expect("a folder");
    let output = pull("org/name", root.path(), &[("HF_TOKEN", "t\u{f6}ken")], false);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("HF_TOKEN holds no token") && said.contains("hf auth login"), "{said}");
}

/// What other tools leave behind: the branch is noted, its weights are not here; or nothing is noted at all.
#[test]
fn offline_an_older_commit_is_taken_and_told() {
    let newer = "f".repeat(40);
    for main in [Some(newer.as_str()), None] {
        let root = tempfile::tempdir().expect("a folder");
        let cache = root.path().join("home/.cache/huggingface/hub");
        snapshot(&cache, COMMIT, main);
        put(&cache.join("models--acme--tiny/snapshots").join(&newer).join("config.json"), "{}");
        let output = pull("acme/tiny", root.path(), &[], true);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("warning") && said.contains(COMMIT), "{main:?}: {said}");
        let other = pull("acme/tiny@v2", root.path(), &[], true);
        assert!(!other.status.success(), "a tag means one commit");
    }
}
