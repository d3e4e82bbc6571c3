//! MiniMax M1: its guide to calls of functions.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::minimax_m1::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "<tool_calls>", |calls| objects(calls, "<tool_calls>\n", "\n", "\n</tool_calls>"));
    check_dialect(
        named("minimax_m1"),
        "<think>so</think>\n<tool_calls>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_calls>\n",
        "so",
        "",
        &[("now", json!({}))],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
