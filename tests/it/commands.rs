//! The commands as a user types them, bad input first: every mistake gets a sentence that names it and the fix.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use crate::{
    process::{Server, complaint, mettle, run},
    support,
};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/models").join(name)
}

/// A copy of a tiny checkpoint to spoil.
fn spoiled(name: &str, spoil: impl FnOnce(&Path)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(data(name)).expect("test data").flatten() {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("a copy");
    }
    spoil(folder.path());
    folder
}

/// `mettle run` on a spoiled model says all of `expected`.
fn check(folder: &Path, expected: &[&str]) {
    let said = complaint(&run(&["run", &folder.to_string_lossy(), "hello", "--offline"], None));
    for part in expected {
        assert!(said.contains(part), "expected {part:?} in:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn truncated_safetensors() {
    let folder = spoiled("llama-f32", |folder| {
        let path = folder.join("model.safetensors");
        let bytes = fs::read(&path).expect("weights");
        fs::write(&path, &bytes[..bytes.len() / 2]).expect("half of them");
    });
    check(folder.path(), &["model.safetensors", "incomplete"]);
}

#[test]
fn half_a_gguf() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read(data("llama.gguf")).expect("test data");
    let path = folder.path().join("half.gguf");
    fs::write(&path, &whole[..whole.len() / 2]).expect("half of it");
    check(&path, &["half.gguf", "incomplete"]);
}

#[test]
fn missing_tokenizer() {
    let folder = spoiled("llama-f32", |folder| {
        let _ = fs::remove_file(folder.join("tokenizer.json"));
    });
    check(folder.path(), &["tokenizer.json"]);
}

#[test]
fn unknown_architecture() {
    let folder = spoiled("llama-f32", |folder| {
        let path = folder.join("config.json");
        let config = fs::read_to_string(&path).expect("config").replace("\"llama\"", "\"perceptron\"");
        fs::write(&path, config).expect("config");
    });
    check(folder.path(), &["perceptron", "llama", "qwen3_5"]);
}

#[test]
fn unknown_alias_with_suggestions() {
    let cache = tempfile::tempdir().expect("a folder");
    let said = complaint(&run(&["run", "smollm2-136m", "hello"], Some(cache.path())));
    assert!(said.contains("smollm2-136m") && said.contains("smollm2-135m"), "{said}");
    let said = complaint(&run(&["pull", "qwen3.5-4b-4bitt"], Some(cache.path())));
    assert!(said.contains("qwen3.5-4b-4bit"), "{said}");
}

#[test]
fn offline_and_not_here() {
    let cache = tempfile::tempdir().expect("a folder");
    let said = complaint(&run(&["run", "smollm2-135m", "hello", "--offline"], Some(cache.path())));
    assert!(said.contains("offline"), "{said}");
}

#[test]
fn bad_flags_are_refused_with_the_range() {
    for (arguments, expected) in [
        (&["run", "x", "y", "--temperature", "hot"][..], "expected a number between 0 and 2"),
        (&["run", "x", "y", "--top-p", "1.1"], "between 0 and 1"),
        (&["run", "x", "y", "--max-tokens", "0"], "0 is not in 1.."),
        (&["serve", "x", "--port", "70000"], "70000 is not in 0..=65535"),
        (&["serve", "x", "--verbos"], "unexpected argument"),
    ] {
        let output = run(arguments, None);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "expected {expected:?} in:\n{said}");
    }
}

#[test]
fn one_prompt_by_argument_and_by_pipe() {
    let Some(model) = support::starter() else { return };
    let model = model.to_string_lossy();
    let settings = ["--temperature", "0", "--max-tokens", "24", "--offline"];
    let arguments: Vec<&str> = ["run", &model, "What is water?"].into_iter().chain(settings).collect();
    let output = run(&arguments, None);
    let said = String::from_utf8_lossy(&output.stderr);
    // It is cut off at the limit, and that is no whole answer.
    assert_eq!((output.status.code(), said.contains("cut off")), (Some(3), true), "{said}");
    let answer = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(answer.trim().len() > 10, "{answer:?}");

    let question = tempfile::NamedTempFile::new().expect("a file");
    fs::write(question.path(), "What is water?\n").expect("a question");
    let arguments: Vec<&str> = ["run", &model].into_iter().chain(settings).collect();
    let piped = mettle(&arguments, None).stdin(fs::File::open(question.path()).expect("it")).output().expect("runs");
    assert_eq!(String::from_utf8(piped.stdout).expect("UTF-8"), answer, "{}", String::from_utf8_lossy(&piped.stderr));

    let empty = complaint(&run(&["run", &model, "--offline"], None));
    assert!(empty.contains("there is no prompt"), "{empty}");

    // Both: what is piped in stands before what is asked about it.
    fs::write(question.path(), "Water is wet.\n\nWhat is water?").expect("a question");
    let arguments: Vec<&str> = ["run", &model].into_iter().chain(settings).collect();
    let joined = mettle(&arguments, None).stdin(fs::File::open(question.path()).expect("it")).output().expect("runs");
    fs::write(question.path(), "Water is wet.\n").expect("a text");
    let arguments: Vec<&str> = ["run", &model, "What is water?"].into_iter().chain(settings).collect();
    let both = mettle(&arguments, None).stdin(fs::File::open(question.path()).expect("it")).output().expect("runs");
    assert_eq!(both.stdout, joined.stdout);
    assert_ne!(String::from_utf8(both.stdout).expect("UTF-8"), answer);

    // Who reads goes away before anything is said.
    let arguments: Vec<&str> = ["run", &model, "What is water?"].into_iter().chain(settings).collect();
    let mut command = mettle(&arguments, None);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked") && !said.contains("error"), "{said}");
    assert_eq!(output.status.code(), Some(141));
}

#[test]
fn a_port_in_use_is_an_error_only_if_it_was_named() {
    let Some(model) = support::starter() else { return };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let said = complaint(&run(&["serve", &model.to_string_lossy(), "--port", &port, "--offline"], None));
    assert!(said.contains(&port) && said.contains("--port"), "{said}");
}

#[test]
fn sigterm_lets_the_server_leave_cleanly() {
    let Some(model) = support::starter() else { return };
    let mut server = Server::start(&[&model.to_string_lossy(), "--offline"]);
    let kill = std::process::Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    assert_eq!(server.wait(Duration::from_secs(20)), Some(0));
}
