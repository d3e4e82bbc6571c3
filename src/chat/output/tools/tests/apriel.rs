//! Apriel 1.5 and 1.6: model cards.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::apriel::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "<tool_calls>", |calls| objects(calls, "<tool_calls>[", ", ", "]</tool_calls>"));
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    check(
        "\n<tool_calls>[{\"name\": \"now\", \"arguments\": {}, \"id\": \"x\"}]</tool_calls>",
        "",
        &[("now", json!({}))],
    );
    check("<tool_calls>[{\"id\": \"x\", \"name\": \"now\", \"arguments\": {}}]", "", &[("now", json!({}))]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}

#[test]
fn thoughts() {
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("apriel"), case, reasoning, text, calls)
    };
    check("I add.\n[BEGIN FINAL RESPONSE]\n5\n[END FINAL RESPONSE]\n<|end|>", "I add.", "5", &[]);
    check(
        "I call.\n[BEGIN FINAL RESPONSE]\n<tool_calls>[{\"name\": \"now\"}]</tool_calls>\n[END FINAL RESPONSE]",
        "I call.",
        "",
        &[("now", json!({}))],
    );
    check("I call.\n<tool_calls>[{\"name\": \"now\"}]</tool_calls>", "I call.", "", &[("now", json!({}))]);
    check("never done", "never done", "", &[]);
}
