//! Mistral's calls, three generations of them: mistral-common's tests as facts, and the models' templates.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::{mistral::FORMAT, mistral_args, mistral_ids};

#[test]
pub fn cases() {
    check_json(&FORMAT, "[TOOL_CALLS]", |calls| objects(calls, "[TOOL_CALLS][", ", ", "]"));
    for (format, between) in [
        (&FORMAT, ""),
        (&mistral_args::FORMAT, "[ARGS]"),
        (&mistral_ids::FORMAT, "[CALL_ID]abc123def[ARGS]"),
        (&FORMAT, "\n"),
    ] {
        check_json(format, "[TOOL_CALLS]", |calls| {
            calls.iter().map(|(name, arguments)| format!("[TOOL_CALLS]{name}{between}{arguments}")).collect()
        });
    }
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let now = ("now", json!({}));
    check(
        "⟪[TOOL_CALLS]⟫[{\"name\": \"now\", \"arguments\": {}, \"id\": \"abc123def\"}]",
        "",
        std::slice::from_ref(&now),
    );
    check("⟪[TOOL_CALLS]⟫now⟪[ARGS]⟫{}⟪[TOOL_CALLS]⟫now⟪[ARGS]⟫{}", "", &[now.clone(), now.clone()]);
    check("I look.⟪[TOOL_CALLS]⟫ [{\"name\": \"now\", \"arguments\": {}}]", "I look.", std::slice::from_ref(&now));
    check("The text [TOOL_CALLS]⟪[TOOL_CALLS]⟫now{}", "The text [TOOL_CALLS]", std::slice::from_ref(&now));
    check("[TOOL_CALLS] {\"name\": \"now\", \"arguments\": {}}", "", &[now]);
    check("[TOOL_CALLS]now is the time", "[TOOL_CALLS]now is the time", &[]);
    check("[TOOL_CALLS]now[ARGS]", "[TOOL_CALLS]now[ARGS]", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
    check_rendered(&mistral_args::FORMAT);
    check_rendered(&mistral_ids::FORMAT);
}

#[test]
fn thoughts() {
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("mistral_args"), case, reasoning, text, calls)
    };
    check("⟪[THINK]⟫so⟪[/THINK]⟫Yes.", "so", "Yes.", &[]);
    check("[THINK]so[/THINK]\nYes.", "so", "Yes.", &[]);
    check("<think>\nso\n</think>\nYes.", "so", "Yes.", &[]);
    check("[THINK]so[/THINK][TOOL_CALLS]now[ARGS]{}", "so", "", &[("now", json!({}))]);
    check("[THINK]so[TOOL_CALLS]now[ARGS]{}", "so", "", &[("now", json!({}))]);
}

/// Its templates refuse other ids than these.
#[test]
fn ids() {
    let check = |case: &str, id: &str| {
        let whole = read(named("mistral_ids"), &[Piece::Text(case)], &[], Splitter::finish);
        let own = &whole.calls[0].id;
        assert!(own.len() == 9 && own.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{own}");
        assert!(id.is_empty() || own == id, "{own}");
    };
    check("[TOOL_CALLS]now[CALL_ID]abc123def[ARGS]{}", "abc123def");
    check("[TOOL_CALLS]now[CALL_ID]call_1[ARGS]{}", "");
    check("[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}]", "");
}
