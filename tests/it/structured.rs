//! Required calls and schemas with the official Python client, the real server and the real starter model. A part of
//! what `tests/it/structured_client.py` does by hand with 200 calls and 100 schemas; skips as `openai.rs` does.

use std::{path::Path, process::Command};

use crate::{process, support};

#[test]
fn calls_and_schemas_hold() {
    let (Some(python), Some(model)) = (std::env::var_os("METTLE_TEST_PYTHON"), support::starter()) else {
        return eprintln!("skipped: METTLE_TEST_PYTHON or the starter model is missing");
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = root.join("../shared/data/maskbench-500");
    let count = if schemas.is_dir() { "10" } else { "0" };
    if count == "0" {
        eprintln!("without schemas: ../shared/data/maskbench-500 is missing");
    }
    let server = process::Server::start(&[&model.to_string_lossy()]);
    let script = root.join("tests/it/structured_client.py");
    let arguments = [server.url().to_owned(), "20".to_owned(), count.to_owned(), schemas.display().to_string()];
    let answer = Command::new(python).arg(script).args(arguments).output().expect("python runs");
    let (said, complained) = (String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
    assert!(answer.status.success(), "{said}\n{complained}");
    assert!(said.trim_end().ends_with("all held"), "{said}\n{complained}");
}
