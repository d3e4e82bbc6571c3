//! Nothing lies about forgotten: every Rust file is a module of something, every table's files are in the table, and
//! every folder of test data has a test that reads it.

use std::{fs, path::Path};

use super::{
    source::{self, Source},
    words,
};

/// Files that only a syntax of tool calls may have; a family of models is a row in `chat/dialect`.
const SYNTAXES: &str = "src/chat/output/tools/";
const MOST_SYNTAXES: usize = 22;

/// Files that no module declares.
pub fn orphans(sources: &[Source]) -> Vec<String> {
    let is_declared = |source: &Source| {
        let stem = source.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        let name = stem.rsplit('/').next().unwrap_or_default();
        let file = source.path.rsplit('/').next().unwrap_or_default();
        let folder = &stem[..stem.len() - name.len()];
        sources.iter().any(|parent| {
            let by_name = parent.folder().trim_end_matches('/') == folder.trim_end_matches('/')
                && words::has(&parent.code, &format!("mod {name}"));
            let by_path = parent.path.starts_with(folder) && words::has(&parent.strings, file);
            (by_name || by_path) && parent.path != source.path
        })
    };
    let undeclared = sources.iter().filter(|source| !is_root(&source.path) && !is_declared(source));
    undeclared.map(|source| format!("{}: no module declares this file", source.path)).collect()
}

/// Whether cargo finds a file by itself or by a manifest.
fn is_root(path: &str) -> bool {
    let is_crate = path.starts_with("crates/");
    path.ends_with("build.rs")
        || ["src/lib.rs", "commands/main.rs", "tests/it/main.rs"].contains(&path)
        || is_crate && path.ends_with("src/lib.rs")
        || is_crate && matches!(path.split('/').nth(2), Some("tests" | "benches")) && path.split('/').count() == 4
}

/// More files of tool syntaxes than there are syntaxes.
pub fn syntaxes(sources: &[Source]) -> Vec<String> {
    let count = sources.iter().filter(|source| is_syntax(source)).count();
    let message = format!("{SYNTAXES}: {count} files, the limit is {MOST_SYNTAXES}; a family of models is a row");
    if count > MOST_SYNTAXES { vec![message] } else { Vec::new() }
}

/// Whether a file holds a syntax of tool calls.
pub fn is_syntax(source: &Source) -> bool {
    !source.is_test && source.path.starts_with(SYNTAXES) && !source.path.ends_with("/mod.rs")
}

#[test]
fn every_architecture_has_a_file_and_test_data() {
    let folder = source::root().join("tests/data/models");
    let configs: Vec<String> = fs::read_dir(&folder)
        .expect("tests/data/models")
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("config.json")).ok())
        .collect();
    for model in mettle::mlx::models::MODELS {
        // Its other names are read in tests/it/models/same.rs.
        let name = model.names[0];
        let has = configs.iter().any(|config| config.contains(&format!("\"model_type\": \"{name}\"")));
        assert!(has, "no checkpoint in {} has the model_type {name}", folder.display());
    }
    let table = fs::read_to_string(source::root().join("src/mlx/models/mod.rs")).expect("the table");
    for path in source::files(&source::root().join("src/mlx/models")) {
        let name = path.trim_start_matches("src/mlx/models/").trim_end_matches(".rs");
        let is_architecture = fs::read_to_string(source::root().join(&path)).expect("UTF-8").contains("ARCHITECTURE");
        let is_in_table = table.contains(&format!("{name}::ARCHITECTURE"));
        assert!(name == "mod" || !is_architecture || is_in_table, "{path} is not in MODELS");
    }
}

#[test]
fn every_folder_of_test_data_is_read() {
    let texts: Vec<String> = source::sources().into_iter().map(|source| source.strings).collect();
    for entry in fs::read_dir(source::root().join("tests/data")).expect("tests/data").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_read = texts.iter().any(|strings| strings.contains(&format!("tests/data/{name}")));
        assert!(is_read, "nothing reads tests/data/{name}");
    }
}

/// Every dialect has a folder of cases, and every folder a dialect.
#[test]
fn every_dialect_has_cases() {
    let folder = source::root().join("tests/data/dialects");
    if !Path::new(&folder).exists() {
        return;
    }
    let folders: Vec<String> = fs::read_dir(&folder)
        .expect("a folder")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    for dialect in mettle::chat::DIALECTS.iter() {
        assert!(folders.iter().any(|name| name == dialect.name), "no cases in tests/data/dialects/{}", dialect.name);
    }
}
