//! Calls as text that models take from a conversation's past.

use super::{json::check_json, *};
use crate::chat::output::tools::calling_tool::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "[Calling tool:", |calls| {
        let lines: Vec<String> =
            calls.iter().map(|(name, arguments)| format!("[Calling tool: {name}({arguments})]")).collect();
        lines.join("\n")
    });
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    check("[Calling tool: get_weather(city=\"Paris\")]", "", std::slice::from_ref(&paris));
    check("[Calling tool=get_weather({\"city\": \"Paris\"})]", "", std::slice::from_ref(&paris));
    check("I do.\n[Calling tool get_weather({\"city\": \"Paris\"})] Done.", "I do.\nDone.", &[paris]);
    check("[Calling tool: now()]", "", &[("now", json!({}))]);
    check("[Calling tool: a friend]", "[Calling tool: a friend]", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
