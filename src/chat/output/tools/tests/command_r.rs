//! Command R and R+: Cohere's guide to prompts.

use super::{json::check_json, *};
use crate::chat::output::tools::command_r::FORMAT;

#[test]
pub fn cases() {
    let write = |calls: &[(&str, &str)]| {
        let object = |(name, arguments): &(&str, &str)| {
            format!("    {{\n        \"tool_name\": \"{name}\",\n        \"parameters\": {arguments}\n    }}")
        };
        let objects: Vec<String> = calls.iter().map(object).collect();
        format!("Action:\n```json\n[\n{}\n]```", objects.join(",\n"))
    };
    check_json(&FORMAT, "Action:", write);
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    check("Action: ```json\n[\n  {\"tool_name\": \"now\", \"parameters\": {}}\n]\n```\n", "", &[("now", json!({}))]);
    check("Plan: I look.\nAction: none", "Plan: I look.\nAction: none", &[]);
    check("Action: ```json\n[1]\n```", "Action: ```json\n[1]\n```", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
