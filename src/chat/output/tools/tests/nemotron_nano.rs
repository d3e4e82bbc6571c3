//! Nemotron Nano 2's calls, from its model card.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::nemotron_nano::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "<TOOLCALL>", |calls| objects(calls, "<TOOLCALL>[", ", ", "]</TOOLCALL>"));
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    check("<TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}]", "", &[("now", json!({}))]);
    check("<TOOLCALL>{\"name\": \"now\", \"arguments\": {}}</TOOLCALL>", "", &[("now", json!({}))]);
    check_dialect(
        named("nemotron_nano"),
        "<think>\nso\n</think>\n<TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}]</TOOLCALL>",
        "so",
        "",
        &[("now", json!({}))],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
