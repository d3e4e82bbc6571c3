//! Granite's calls: model cards of Granite 3.1 to 3.3 and 4.0.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::granite::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "<|tool_call|>", |calls| objects(calls, "<|tool_call|>[", ", ", "]"));
    check_json(&FORMAT, "<tool_call>", |calls| objects(calls, "<tool_call>[", ", ", "]</tool_call>"));
    check_json(&FORMAT, "<|tool_call|>", |calls| objects(calls, "<|tool_call|>\n", "\n", "\n</tool_call>"));
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let now = ("now", json!({}));
    check("⟪<|tool_call|>⟫[{\"name\": \"now\", \"arguments\": {}}]", "", std::slice::from_ref(&now));
    check("<|tool_call|>⟪<|tool_call|>⟫[{\"name\": \"now\"}]", "<|tool_call|>", std::slice::from_ref(&now));
    check("<|tool_call|>[]", "<|tool_call|>[]", &[]);
    check(
        "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"rm\", \"arguments\": {}}]",
        ", {\"name\": \"rm\", \"arguments\": {}}]",
        &[now],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}

#[test]
fn thoughts_and_responses() {
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("granite"), case, reasoning, text, calls)
    };
    check("<think>so</think><response>Yes.</response>", "so", "Yes.", &[]);
    check("<think>\nso\n</think>\n\n<response>\nYes.\n</response>\n", "so", "Yes.", &[]);
    check("<think>so</think>\n<|tool_call|>[{\"name\": \"now\"}]", "so", "", &[("now", json!({}))]);
}
