//! Kimi K2's calls: Moonshot's guide to calling tools.

use super::{json::check_json, *};
use crate::chat::output::tools::kimi::FORMAT;

#[test]
pub fn cases() {
    let write = |calls: &[(&str, &str)]| {
        let call = |(index, (name, arguments)): (usize, &(&str, &str))| {
            let name = name.strip_prefix("functions.").unwrap_or(name);
            format!(
                "<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
            )
        };
        let calls: String = calls.iter().enumerate().map(call).collect();
        format!("<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>")
    };
    check_json(&FORMAT, "<|tool_calls_section_begin|>", write);
    check_json(&FORMAT, "<|tool_call_begin|>", |calls| {
        let call = |(name, arguments): &(&str, &str)| {
            format!("<|tool_call_begin|>{name}:7\n<|tool_call_argument_begin|>\n{arguments}\n<|tool_call_end|>\n")
        };
        calls.iter().map(call).collect::<String>().trim_end().to_owned()
    });
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    check(
        "I look.⟪<|tool_calls_section_begin|>⟫⟪<|tool_call_begin|>⟫functions.now:0⟪<|tool_call_argument_begin|>⟫{}⟪<|tool_call_end|>⟫⟪<|tool_calls_section_end|>⟫",
        "I look.",
        &[("now", json!({}))],
    );
    check(
        "<|tool_call_section_begin|><|tool_call_begin|>now<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_section_end|>",
        "",
        &[("now", json!({}))],
    );
    check("<|tool_calls_section_begin|><|tool_calls_section_end|>Yes.", "Yes.", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}

/// The model's own ids stay, for its template counts them.
#[test]
fn ids() {
    let case =
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.mcp.search-all:3<|tool_call_argument_begin|>{}";
    let whole = read(named("kimi"), &[Piece::Text(case)], &[], Splitter::finish);
    assert_eq!(
        (whole.calls[0].id.as_str(), whole.calls[0].name.as_str()),
        ("functions.mcp.search-all:3", "mcp.search-all")
    );
}
