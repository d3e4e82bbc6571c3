//! The rules of the layout, read off the sources as text: who may name whom, which words stay where, how long a
//! file and a function may be, and that nothing lies about forgotten.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// What each layer of `src/` may name. A folder without a row fails, so a new layer is a decision.
const LAYERS: &[(&str, &[&str])] = &[
    ("checkpoint", &[]),
    ("engine", &[]),
    ("hub", &[]),
    ("mlx", &["checkpoint", "engine"]),
    ("chat", &["checkpoint", "engine"]),
    ("protocol", &["chat"]),
    ("server", &["chat", "engine", "protocol"]),
];

/// A word and the only places it may stand in; places are prefixes of paths.
const WORDS: &[(&str, &[&str])] = &[
    ("mlx_rs", &["src/mlx/", "crates/"]),
    ("mlx_sys", &["crates/"]),
    ("mlx_cpu", &["src/mlx/", "crates/"]),
    ("axum", &["src/server/"]),
    ("derive(Serialize", &["src/protocol/", "src/hub/"]),
    ("Deserialize)", &["src/protocol/", "src/hub/", "src/checkpoint/"]),
    ("Deserialize,", &["src/protocol/", "src/hub/", "src/checkpoint/"]),
    ("println!", &["commands/", "tests/", "crates/", "build.rs"]),
    ("unsafe", &["src/mlx/array.rs", "crates/", "tests/it/layers.rs"]),
    ("std::env", &["commands/", "crates/", "tests/", "build.rs"]),
    ("tokenizers::", &["src/chat/"]),
    ("minijinja", &["src/chat/"]),
    ("llguidance", &["src/chat/"]),
    ("todo!", &[]),
    ("unimplemented!", &[]),
];

const FILE_LINES: usize = 500;
const MODEL_LINES: usize = 200;
const FUNCTION_LINES: usize = 100;

struct Source {
    /// Relative to the repository, with forward slashes.
    path: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for folder in ["src", "commands", "crates", "tests/it", "build.rs"] {
        collect(&root().join(folder), &mut found);
    }
    found
}

fn collect(path: &Path, found: &mut Vec<Source>) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).expect("a folder").map(|entry| entry.expect("entry").path()).collect();
        entries.sort();
        return entries.iter().for_each(|entry| collect(entry, found));
    }
    if path.extension().is_some_and(|extension| extension == "rs") {
        let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
        found.push(Source { path: relative, text: fs::read_to_string(path).expect("UTF-8") });
    }
}

/// The text without comments and without the contents of its test modules' files.
fn code(source: &Source) -> String {
    source.text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.ends_with("tests.rs") || path.contains("/tests/")
}

/// Every breach of the rules in these sources, a line each.
fn breaches(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        found.extend(layer_breaches(source));
        found.extend(word_breaches(source));
        found.extend(length_breaches(source));
        if !source.text.starts_with("//!") {
            found.push(format!("{}: opens without a //! line that says what it is", source.path));
        }
    }
    found
}

fn layer_breaches(source: &Source) -> Vec<String> {
    let Some(layer) = source.path.strip_prefix("src/").and_then(|path| path.split_once('/')).map(|(layer, _)| layer)
    else {
        return Vec::new();
    };
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
        return vec![format!("{}: the folder {layer} has no row in LAYERS", source.path)];
    };
    // Tests may build what they need from lower layers' test aids.
    if is_test(&source.path) {
        return Vec::new();
    }
    let text = code(source);
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let named: BTreeSet<&str> = text.split("crate::").skip(1).flat_map(named_modules).collect();
    named
        .into_iter()
        .filter(|name| *name != layer && !allowed.contains(name) && LAYERS.iter().any(|(layer, _)| layer == name))
        .map(|name| format!("{}: {layer} may not name {name}", source.path))
        .collect()
}

/// The first names of what follows `crate::`, through one pair of braces.
fn named_modules(rest: &str) -> Vec<&str> {
    let first = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').count();
    match rest.strip_prefix('{') {
        None => vec![&rest[..first(rest)]],
        Some(list) => {
            let (mut depth, mut names, mut at) = (0, Vec::new(), true);
            for (index, character) in list.char_indices() {
                match character {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => at = true,
                    _ if at && depth == 0 && !character.is_whitespace() => {
                        names.push(&list[index..index + first(&list[index..])]);
                        at = false;
                    }
                    _ => {}
                }
            }
            names
        }
    }
}

fn word_breaches(source: &Source) -> Vec<String> {
    if source.path == "tests/it/layers.rs" {
        return Vec::new();
    }
    let text = code(source);
    WORDS
        .iter()
        .filter(|(word, places)| text.contains(word) && !places.iter().any(|place| source.path.starts_with(place)))
        .filter(|(word, _)| !(is_test(&source.path) && *word != "todo!" && *word != "unsafe"))
        .map(|(word, places)| format!("{}: `{word}` belongs to {}", source.path, places.join(", ")))
        .collect()
}

fn length_breaches(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let limit = if source.path.starts_with("src/mlx/models/") { MODEL_LINES } else { FILE_LINES };
    let mut found = Vec::new();
    if lines.len() > limit && !is_test(&source.path) {
        found.push(format!("{}: {} lines, the limit is {limit}", source.path, lines.len()));
    }
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let head = line.trim_start();
        let is_function = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "async fn ",
            "pub async fn ",
            "unsafe fn ",
            "pub unsafe fn ",
        ]
        .iter()
        .any(|opening| head.starts_with(opening));
        if !is_function || head.ends_with(';') || head.ends_with('}') {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        let length = lines[start..].iter().position(|line| *line == close).unwrap_or(0);
        if length > FUNCTION_LINES {
            found.push(format!(
                "{}:{}: a function of {length} lines, the limit is {FUNCTION_LINES}",
                source.path,
                start + 1
            ));
        }
    }
    found
}

#[test]
fn the_sources_keep_the_rules() {
    let found = breaches(&sources());
    assert!(found.is_empty(), "{} breaches:\n{}", found.len(), found.join("\n"));
}

#[test]
fn planted_breaches_are_found() {
    let check = |path: &str, text: &str, expected: &str| {
        let source = Source { path: path.into(), text: format!("//! x\n{text}") };
        let found = breaches(&[source]);
        assert!(found.iter().any(|line| line.contains(expected)), "{path}: {text:?} gave {found:?}");
    };
    check("src/engine/a.rs", "use crate::mlx::load;", "engine may not name mlx");
    check("src/chat/a.rs", "use crate::{engine::Job, server::{run, pool}};", "chat may not name server");
    check("src/chat/a.rs", "fn f() { crate::protocol::f() }", "chat may not name protocol");
    check("src/novel/a.rs", "", "no row in LAYERS");
    check("src/engine/a.rs", "use mlx_rs::Array;", "`mlx_rs` belongs to");
    check("src/protocol/a.rs", "use axum::Json;", "`axum` belongs to");
    check("src/chat/a.rs", "#[derive(Serialize)]", "`derive(Serialize` belongs to");
    check("src/chat/a.rs", "fn f() { println!(); }", "`println!` belongs to");
    check("src/mlx/nn/a.rs", "unsafe { }", "`unsafe` belongs to");
    check("src/hub/a.rs", "std::env::var(\"X\")", "`std::env` belongs to");
    check("src/hub/a.rs", &"\n".repeat(600), "the limit is 500");
    check("src/hub/a.rs", &format!("fn f() {{\n{}}}\n", "    a();\n".repeat(120)), "a function of");
    let bare = breaches(&[Source { path: "src/hub/a.rs".into(), text: "use x;".into() }]);
    assert!(bare[0].contains("opens without"), "{bare:?}");
    let clean = Source {
        path: "src/mlx/a.rs".into(),
        text: "//! x\nuse crate::{checkpoint::Dtype, engine::Row};\n// println! in a comment".into(),
    };
    assert_eq!(breaches(&[clean]), Vec::<String>::new());
}

#[test]
fn every_architecture_has_test_data() {
    for name in mettle::mlx::models::names() {
        let folder = root().join("tests/data/models");
        let has = fs::read_dir(&folder).expect("tests/data/models").flatten().any(|entry| {
            fs::read_to_string(entry.path().join("config.json"))
                .is_ok_and(|config| config.contains(&format!("\"{name}\"")))
        });
        assert!(has, "no checkpoint in {} has the model_type {name}", folder.display());
    }
}
