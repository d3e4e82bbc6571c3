//! xLAM 2's calls: its model card, and the ways that its answers vary.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::xlam::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "", |calls| objects(calls, "[", ", ", "]"));
    check_json(&FORMAT, "", |calls| objects(calls, "```json\n[", ",\n", "]\n```"));
    check_json(&FORMAT, "", |calls| objects(calls, "\n[\n", ",\n", "\n]\n"));
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let now = ("now", json!({}));
    check("I look.\n```json\n[{\"name\": \"now\", \"arguments\": {}}]\n```\n", "I look.", std::slice::from_ref(&now));
    check("[1, 2]", "[1, 2]", &[]);
    check("{\"name\": \"Bob\", \"arguments\": []}", "{\"name\": \"Bob\", \"arguments\": []}", &[]);
    check("```json\n{\"a\": [1]}\n```\nis JSON.", "```json\n{\"a\": [1]}\n```\nis JSON.", &[]);
    check("```json\n[\n{\"b\": 1}]\n```", "```json\n[\n{\"b\": 1}]\n```", &[]);
    check("So [{\"name\": \"now\"}] is a list.", "So [{\"name\": \"now\"}] is a list.", &[]);
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("xlam"), case, reasoning, text, calls)
    };
    check("<think>so</think>[{\"name\": \"now\", \"arguments\": {}}]", "so", "", std::slice::from_ref(&now));
    check("<think>so</think>\n\n```json\n[{\"name\": \"now\"}]\n```", "so", "", std::slice::from_ref(&now));
    check("[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}]", "", "", std::slice::from_ref(&now));
    check("<think>so</think>[1]", "so", "[1]", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
