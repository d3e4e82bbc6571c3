//! The official Python client against the real server with the real starter model. Skips where the client is not
//! installed; `.ci/run` installs it and says where by METTLE_TEST_PYTHON.

use std::process::Command;

use crate::{process, support};

#[test]
fn the_official_client_streams_and_not() {
    let (Some(python), Some(model)) = (std::env::var_os("METTLE_TEST_PYTHON"), support::starter()) else {
        return eprintln!("skipped: METTLE_TEST_PYTHON or the starter model is missing");
    };
    let server = process::Server::start(&[&model.to_string_lossy()]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/openai_client.py");
    let answer = Command::new(python).arg(script).arg(server.url()).output().expect("python runs");
    let (said, complained) = (String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
    assert!(answer.status.success(), "{said}\n{complained}");
    assert!(said.trim_end().ends_with("all held"), "{said}\n{complained}");
}
