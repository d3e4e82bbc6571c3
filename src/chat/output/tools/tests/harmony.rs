//! gpt-oss: OpenAI's description of the harmony format, and its chat template.

use super::{json::check_json, *};
use crate::chat::output::tools::harmony::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "<|start|>assistant to=", |calls| {
        let call = |(name, arguments): &(&str, &str)| {
            let name = name.trim_start_matches("functions.");
            format!("<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>{arguments}<|call|>")
        };
        calls.iter().map(call).collect()
    });
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}

#[test]
fn channels() {
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("harmony"), case, reasoning, text, calls);
        // The same where the tokenizer has no such special tokens.
        check_dialect(named("harmony"), &case.replace(['⟪', '⟫'], ""), reasoning, text, calls);
    };
    let (now, paris) = (("now", json!({})), ("get_weather", json!({"city": "Paris"})));
    check(
        "⟪<|channel|>⟫analysis⟪<|message|>⟫I add.⟪<|end|>⟫⟪<|start|>⟫assistant⟪<|channel|>⟫final⟪<|message|>⟫5 < 6.⟪<|return|>⟫",
        "I add.",
        "5 < 6.",
        &[],
    );
    check(
        "⟪<|channel|>⟫analysis⟪<|message|>⟫I look.⟪<|end|>⟫⟪<|start|>⟫assistant⟪<|channel|>⟫commentary to=functions.get_weather ⟪<|constrain|>⟫json⟪<|message|>⟫{\"city\": \"Paris\"}⟪<|call|>⟫",
        "I look.",
        "",
        std::slice::from_ref(&paris),
    );
    check(
        " to=functions.get_weather⟪<|channel|>⟫commentary json⟪<|message|>⟫{\"city\":\"Paris\"}⟪<|call|>⟫",
        "",
        "",
        std::slice::from_ref(&paris),
    );
    check(
        "⟪<|channel|>⟫commentary⟪<|message|>⟫I look.⟪<|end|>⟫⟪<|start|>⟫assistant to=functions.now⟪<|channel|>⟫commentary⟪<|message|>⟫{}⟪<|call|>⟫⟪<|start|>⟫assistant⟪<|channel|>⟫commentary to=functions.get_weather⟪<|message|>⟫{\"city\": \"Paris\"}",
        "",
        "I look.",
        &[now.clone(), paris.clone()],
    );
    check("Hello.", "", "Hello.", &[]);
    check("⟪<|channel|>⟫final⟪<|message|>⟫Yes.", "", "Yes.", &[]);
    check("⟪<|channel|>⟫final ⟪<|constrain|>⟫json⟪<|message|>⟫{\"a\": 1}⟪<|return|>⟫", "", "{\"a\": 1}", &[]);
    check("⟪<|message|>⟫Yes.⟪<|end|>⟫", "", "Yes.", &[]);
    check(
        "⟪<|channel|>⟫analysis⟪<|message|>⟫One.⟪<|channel|>⟫analysis⟪<|message|>⟫ Two.⟪<|end|>⟫⟪<|channel|>⟫final⟪<|message|>⟫ Three.",
        "One.Two.",
        "Three.",
        &[],
    );
    check("⟪<|channel|>⟫commentary to=functions.rm⟪<|message|>⟫{\"path\": 1}⟪<|call|>⟫", "", "{\"path\": 1}", &[]);
    check("⟪<|channel|>⟫analysis to=python⟪<|message|>⟫print(1)⟪<|call|>⟫", "print(1)", "", &[]);
    check("⟪<|channel|>⟫commentary to=functions.now⟪<|message|>⟫{} so⟪<|call|>⟫", "", "so", std::slice::from_ref(&now));
    check("⟪<|channel|>⟫analysis⟪<|message|>⟫cut", "cut", "", &[]);
    check("⟪<|channel|>⟫analysis", "", "", &[]);
    check("⟪<|start|>⟫assistant⟪<|end|>⟫", "", "", &[]);
    check("⟪<|start|>⟫\nNo message begins.\n⟪<|end|>⟫", "", "No message begins.", &[]);
    check(
        "⟪<|channel|>⟫commentary to=functions.write_file json⟪<|message|>⟫{\"path\": \"a\", \"content\": \"x <|end> \\\"y\\\"\n\"}⟪<|call|>⟫",
        "",
        "",
        &[("write_file", json!({"path": "a", "content": "x <|end> \"y\"\n"}))],
    );
}

/// The prompt may have begun a message.
#[test]
fn starts() {
    let harmony = named("harmony");
    assert_eq!(harmony.starts_in("…<|start|>assistant"), Phase::Text);
    assert_eq!(harmony.starts_in("…<|start|>assistant<|channel|>analysis<|message|>"), Phase::Reasoning);
    assert_eq!(harmony.starts_in("…<|start|>assistant<|channel|>final<|message|>"), Phase::Text);
    let mut splitter = Splitter::new(harmony, &[], Phase::Reasoning, [], 7);
    let mut events = splitter.push(Piece::Text("so<|end|><|start|>assistant<|channel|>final<|message|>Yes."));
    events.extend(splitter.finish());
    assert_eq!(events, [Event::Reasoning("so".to_owned()), Event::Text("Yes.".to_owned())]);
}

/// What the model ends with one of its own tokens is complete, though the token itself is no text.
#[test]
fn code_ends_with_the_answer() {
    let text = [Piece::Text("<|python_tag|>print(1)\nprint(2)")];
    let read = |end: End| read_with(named("llama3"), &[interpreter()], &text, &[], end).calls;
    let (complete, cut) = (read(Splitter::complete), read(Splitter::finish));
    assert_eq!((complete[0].arguments.as_str(), complete[0].ended), ("{\"code\":\"print(1)\\nprint(2)\"}", true));
    assert!(!cut[0].ended && !cut[0].arguments.ends_with('}'), "{cut:?}");
}
