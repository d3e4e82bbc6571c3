//! Functionary 3.1, and Llama 3.1's other form: model cards.

use super::{json::check_json, *};
use crate::chat::output::tools::function_tag::FORMAT;

#[test]
pub fn cases() {
    let tag = |calls: &[(&str, &str)]| {
        calls.iter().map(|(name, arguments)| format!("<function={name}>{arguments}</function>")).collect::<String>()
    };
    check_json(&FORMAT, "<function=", tag);
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let now = ("now", json!({}));
    check("<function=now>{}", "", std::slice::from_ref(&now));
    check("<function=now>\n{}\n</function>\n<function=now>{}</function>", "", &[now.clone(), now.clone()]);
    check("<function=now></function>", "<function=now></function>", &[]);
    check("<function=now> runs", "<function=now> runs", &[]);
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("functionary_v31"), case, "", text, calls);
        check_dialect(named("llama3"), case, "", text, calls);
    };
    check("I look. <function=now>{}</function>⟪<|eom_id|>⟫", "I look.", &[now]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
