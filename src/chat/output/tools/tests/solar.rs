//! Solar Open's calls: its chat template.

use super::{json::check_json, *};
use crate::chat::output::tools::solar::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "<|tool_calls|>", |calls| {
        let call = |(name, arguments): &(&str, &str)| {
            format!("<|tool_call:begin|>aB3<|tool_call:name|>{name}<|tool_call:args|>{arguments}<|tool_call:end|>")
        };
        format!("<|tool_calls|>{}", calls.iter().map(call).collect::<String>())
    });
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("solar"), case, reasoning, text, calls)
    };
    check("<|think|>so<|end|><|begin|>assistant<|content|>Yes.<|end|>", "so", "Yes.", &[]);
    check("⟪<|think|>⟫so⟪<|end|>⟫⟪<|begin|>⟫assistant⟪<|content|>⟫Yes.⟪<|end|>⟫", "so", "Yes.", &[]);
    check("⟪<|content|>⟫Yes.", "", "Yes.", &[]);
    check(
        "⟪<|think|>⟫so⟪<|end|>⟫⟪<|begin|>⟫assistant⟪<|tool_calls|>⟫⟪<|tool_call:begin|>⟫x⟪<|tool_call:name|>⟫now⟪<|tool_call:args|>⟫{}⟪<|tool_call:end|>⟫⟪<|calls|>⟫",
        "so",
        "",
        &[("now", json!({}))],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
