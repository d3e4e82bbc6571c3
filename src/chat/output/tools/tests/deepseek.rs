//! DeepSeek's calls, V2.5 to V3.1 and R1: model cards, and what models distilled from R1 make of the marks.

use super::{json::check_json, *};
use crate::chat::output::tools::{deepseek::FORMAT, deepseek_v31};

#[test]
pub fn cases() {
    check_json(&FORMAT, "<｜tool▁calls▁begin｜>", |calls| {
        let call = |(name, arguments): &(&str, &str)| {
            format!("<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>")
        };
        let calls: Vec<String> = calls.iter().map(call).collect();
        format!("<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>", calls.join("\n"))
    });
    check_json(&deepseek_v31::FORMAT, "<｜tool▁calls▁begin｜>", |calls| {
        let call = |(name, arguments): &(&str, &str)| {
            format!("<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>")
        };
        format!("<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>", calls.iter().map(call).collect::<String>())
    });
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let now = ("now", json!({}));
    check(
        "⟪<｜tool▁calls▁begin｜>⟫⟪<｜tool▁call▁begin｜>⟫function⟪<｜tool▁sep｜>⟫now\n```json\n{}\n```⟪<｜tool▁call▁end｜>⟫⟪<｜tool▁calls▁end｜>⟫",
        "",
        std::slice::from_ref(&now),
    );
    check("<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "", std::slice::from_ref(&now));
    check(
        "<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n{}\n",
        "",
        std::slice::from_ref(&now),
    );
    check(
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>now\n```json\n{}\n```<｜tool_call_end｜><｜tool_calls_end｜>",
        "",
        std::slice::from_ref(&now),
    );
    check(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁call▁begin｜>rm<｜tool▁sep｜>{}",
        "<｜tool▁call▁begin｜>rm<｜tool▁sep｜>{}",
        &[now],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
    check_rendered(&deepseek_v31::FORMAT);
}

#[test]
fn thoughts() {
    let check = |name: &str, case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named(name), case, reasoning, text, calls)
    };
    let call = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
    check("deepseek_r1", "I think.\n</think>\n\nYes.", "I think.", "Yes.", &[]);
    check("deepseek_r1", "<think>\nI think.\n</think>\nYes.", "I think.", "Yes.", &[]);
    check("deepseek_r1", "I never stop", "I never stop", "", &[]);
    check("deepseek_r1", &format!("I call.\n{call}"), "I call.", "", &[("now", json!({}))]);
    check("deepseek_v31", &format!("<think>so</think>{call}"), "so", "", &[("now", json!({}))]);
    check("deepseek_v31", &format!("Yes.\n\n{call}"), "", "Yes.", &[("now", json!({}))]);
}
