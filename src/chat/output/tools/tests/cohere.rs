//! Command R7B, Command A and North: Cohere's guide to prompts and the models' templates.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::cohere::FORMAT;

#[test]
pub fn cases() {
    let write = |calls: &[(&str, &str)]| {
        let object = |(index, (name, arguments)): (usize, &(&str, &str))| {
            format!("    {{\"tool_call_id\": \"{index}\", \"tool_name\": \"{name}\", \"parameters\": {arguments}}}")
        };
        let objects: Vec<String> = calls.iter().enumerate().map(object).collect();
        format!("<|START_ACTION|>[\n{}\n]<|END_ACTION|>", objects.join(",\n"))
    };
    check_json(&FORMAT, "<|START_ACTION|>", write);
    check_json(&FORMAT, "<|START_ACTION|>", |calls| objects(calls, "<|START_ACTION|>", "\n", "<|END_ACTION|>"));
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("cohere"), case, reasoning, text, calls)
    };
    let now = ("now", json!({}));
    let action = "⟪<|START_ACTION|>⟫[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"now\", \"parameters\": {}}\n]⟪<|END_ACTION|>⟫";
    check(&format!("⟪<|START_THINKING|>⟫I call.⟪<|END_THINKING|>⟫{action}"), "I call.", "", std::slice::from_ref(&now));
    check("⟪<|START_RESPONSE|>⟫Yes.⟪<|END_RESPONSE|>⟫", "", "Yes.", &[]);
    check("<|START_THINKING|>so<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>", "so", "Yes.", &[]);
    check(
        "⟪<|START_THINKING|>⟫so⟪<|END_THINKING|>⟫⟪<|START_TEXT|>⟫Yes <co>1</co>.⟪<|END_TEXT|>⟫",
        "so",
        "Yes <co>1</co>.",
        &[],
    );
    check(&format!("⟪<|START_THINKING|>⟫I call.{action}"), "I call.", "", &[now]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
