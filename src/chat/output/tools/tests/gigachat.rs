//! GigaChat 3 and 3.1: their chat templates.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::{gigachat::FORMAT, gigachat_v3};

#[test]
pub fn cases() {
    // One call a turn; more are read all the same.
    check_json(&FORMAT, "<|function_call|>", |calls| objects(calls, "<|function_call|>", "\n<|function_call|>", ""));
    check_json(&gigachat_v3::FORMAT, "function call<|role_sep|>", |calls| {
        objects(calls, "function call<|role_sep|>\n", "\n", "")
    });
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("gigachat"), case, "", text, calls);
        check_dialect(named("gigachat_v3"), case, "", text, calls);
    };
    let now = ("now", json!({}));
    let call = "{\"name\": \"now\", \"arguments\": {}}";
    check(&format!("I look.⟪<|function_call|>⟫{call}⟪<|message_sep|>⟫\n\n"), "I look.", std::slice::from_ref(&now));
    check(
        &format!("I look.⟪<|message_sep|>⟫\n\nfunction call⟪<|role_sep|>⟫\n{call}"),
        "I look.",
        std::slice::from_ref(&now),
    );
    check(
        &format!("I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{call}<|message_sep|>\n\n"),
        "I look.",
        &[now],
    );
    check("A function call is made.", "A function call is made.", &[]);
    check("Yes.⟪<|message_sep|>⟫", "Yes.", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}

#[test]
fn version_3_writes_what_it_reads() {
    check_rendered(&gigachat_v3::FORMAT);
}
