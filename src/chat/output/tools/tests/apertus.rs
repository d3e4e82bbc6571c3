//! Apertus' calls: its chat template.

use super::{json::check_json, *};
use crate::chat::output::tools::apertus::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "<|tools_prefix|>", |calls| {
        let objects: Vec<String> =
            calls.iter().map(|(name, arguments)| format!("{{\"{name}\": {arguments}}}")).collect();
        format!("<|tools_prefix|>[{}]<|tools_suffix|>", objects.join(", "))
    });
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("apertus"), case, reasoning, text, calls)
    };
    let now = ("now", json!({}));
    check("⟪<|inner_prefix|>⟫so⟪<|inner_suffix|>⟫Yes.", "so", "Yes.", &[]);
    check(
        "⟪<|inner_prefix|>⟫so⟪<|tools_prefix|>⟫[{\"now\": {}}]⟪<|tools_suffix|>⟫",
        "so",
        "",
        std::slice::from_ref(&now),
    );
    check("I look.<|tools_prefix|>[ { \"now\" : {} } ]", "", "I look.", &[now]);
    check("<|tools_prefix|>[now]", "", "<|tools_prefix|>[now]", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
