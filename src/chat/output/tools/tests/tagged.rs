//! Calls in a tag with the name, by their templates (DeepSeek V3.2 and V4, MiniMax M2, MiniCPM 5, Muse): the same cases
//! in each family's tags.

use std::slice::from_ref;

use serde_json::json;

use super::*;
use crate::chat::output::tools::{DEEPSEEK_V4, DEEPSEEK_V32, MINICPM, MINIMAX, MUSE};

const FAMILIES: [&Format; 5] = [&DEEPSEEK_V32, &DEEPSEEK_V4, &MINIMAX, &MINICPM, &MUSE];

/// A case in MiniMax's tags in those of another format.
fn translated(format: &Format, case: &str) -> String {
    let replaced = |all: &str, prefix: &str| {
        let case = case.replace("minimax:tool_call", &format!("{prefix}{all}"));
        ["invoke", "parameter"].iter().fold(case, |text, tag| {
            text.replace(&format!("<{tag} "), &format!("<{prefix}{tag} "))
                .replace(&format!("</{tag}>"), &format!("</{prefix}{tag}>"))
        })
    };
    match format.name {
        "deepseek_v32" => replaced("function_calls", "｜DSML｜"),
        "deepseek_v4" => replaced("tool_calls", "｜DSML｜"),
        "muse" => replaced("function_calls", "atem:"),
        "minicpm" => {
            let case = case.replace("<minimax:tool_call>", "").replace("</minimax:tool_call>", "");
            case.replace("invoke", "function").replace("parameter", "param")
        }
        _ => case.to_owned(),
    }
}

fn check_all(case: &str, text: &str, calls: &[(&str, Value)]) {
    for format in FAMILIES {
        check(format, &translated(format, case), &translated(format, text), calls);
    }
}

#[test]
pub fn cases() {
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    check_all(
        "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>\n</minimax:tool_call>",
        "",
        from_ref(&paris),
    );
    check_all(
        "Sure.\n\n<minimax:tool_call><invoke name=\"get_weather\"><parameter name=\"city\">Paris</parameter></invoke></minimax:tool_call>",
        "Sure.",
        from_ref(&paris),
    );
    check_all(
        "<minimax:tool_call>\n<invoke name=\"now\">\n</invoke>\n<invoke name=\"now\">\n\n</invoke>\n</minimax:tool_call>",
        "",
        &[now.clone(), now.clone()],
    );
    check_all("<invoke name='now'></invoke>\nDone.", "Done.", from_ref(&now));
    check_all("<invoke name=\"now\"></invoke></minimax:tool_call>", "", from_ref(&now));
    check_all(
        "<invoke name=\"get_weather\"><parameter name=\"city\">75001</parameter><parameter name=\"days\">3</parameter><parameter name=\"metric\">False</parameter><parameter name=\"limit\">2</parameter></invoke>",
        "",
        &[("get_weather", json!({"city": "75001", "days": 3, "metric": false, "limit": 2}))],
    );
    check_all(
        "<invoke name=\"write_file\"><parameter name=\"path\"> a&b \"c\" </parameter><parameter name=\"content\">\n<a href='x'>\n  if a < b && c > d: \n</parameter><parameter name=\"tags\">[\"x\", 1]</parameter><parameter name=\"options\">{\"mode\": \"7\"}</parameter></invoke>",
        "",
        &[(
            "write_file",
            json!({"path": " a&b \"c\" ", "content": "\n<a href='x'>\n  if a < b && c > d: \n", "tags": ["x", "1"], "options": {"mode": 7}}),
        )],
    );
    check_all("<invoke name=\"rm\"></invoke>", "<invoke name=\"rm\"></invoke>", &[]);
    check_all("An <invoke name=\"now\" is cut", "An <invoke name=\"now\" is cut", &[]);
    check_all("```\n<invoke name=\"now\"></invoke>\n```", "```\n<invoke name=\"now\"></invoke>\n```", &[]);
    check_all(
        "<invoke name=\"write_file\"><parameter name=\"path\">é😀</parameter><parameter name=\"content\"></parameter></invoke>",
        "",
        &[("write_file", json!({"path": "é😀", "content": ""}))],
    );
    check_all(
        "<invoke name=\"get_weather\"><parameter name=\"city\">Paris</parameter><b> and so on",
        "<b> and so on",
        from_ref(&paris),
    );
    // A closing tag within a value.
    for format in FAMILIES {
        let content = translated(format, "is </parameter>, or\n</parameter>: a tag");
        let case = "<invoke name=\"write_file\"><parameter name=\"path\">a</parameter>\n<parameter name=\"content\">CONTENT</parameter>\n</invoke>";
        let case = translated(format, case).replace("CONTENT", &content);
        check(format, &case, "", &[("write_file", json!({"path": "a", "content": content}))]);
    }
    check_all("<invoke name=\" get_weather\">\n{\"city\": \"Paris\"}\n</invoke>", "", from_ref(&paris));
}

#[test]
fn prose() {
    check(&MINIMAX, "A <minimax:tool_call> is a tag.", "A <minimax:tool_call> is a tag.", &[]);
    check(&MUSE, "Use <atem:function_calls>.", "Use <atem:function_calls>.", &[]);
    check(&MINIMAX, "<parameter name=\"x\">", "<parameter name=\"x\">", &[]);
}

#[test]
fn stated_types() {
    let any = |value: Value| ("mcp.search-all", json!({"any": value}));
    let check = |kind: &str, text: &str, calls: &[(&str, Value)]| {
        let case = format!(
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"mcp.search-all\">\n<｜DSML｜parameter name=\"any\" string=\"{kind}\">{text}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
        );
        check(&DEEPSEEK_V32, &case, "", calls);
        check(&DEEPSEEK_V4, &case, "", calls);
    };
    check("true", "[1]", &[any(json!("[1]"))]);
    check("true", "5", &[any(json!("5"))]);
    check("false", "5", &[any(json!(5))]);
    check("false", "{\"a\": \"5\"}", &[any(json!({"a": "5"}))]);
    check("false", "\"5\"", &[any(json!("5"))]);
    check("false", "five", &[any(json!("five"))]);
}

#[test]
fn verbatim() {
    let check = |value: &str, content: &str| {
        let case = format!(
            "<function name=\"write_file\"><param name=\"path\">a</param><param name=\"content\">{value}</param></function>"
        );
        super::check(&MINICPM, &case, "", &[("write_file", json!({"path": "a", "content": content}))]);
    };
    check("<![CDATA[<b>\n&amp;</param>]]>", "<b>\n&amp;</param>");
    check("<![CDATA[]]>", "");
    check("<![CDATA[a]]b]>c]]>", "a]]b]>c");
    check(" plain ", " plain ");
}

#[test]
fn thoughts() {
    let now = ("now", json!({}));
    let call = "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
    // The mark of calls ends a thought.
    check_dialect(named("deepseek_v4"), &format!("<think>so\n\n{call}"), "so", "", from_ref(&now));
    check_dialect(named("deepseek_v4"), &format!("so</think>Yes.\n\n{call}"), "", "so</think>Yes.", from_ref(&now));
    check_dialect(named("deepseek_v32"), "<think>so</think>Yes.", "so", "Yes.", &[]);
    check_dialect(named("minimax"), "<think>\nso\n</think>\n\nYes.", "so", "Yes.", &[]);
    check_dialect(named("minicpm"), "<think>\nso\n</think>\n\n<function name=\"now\"></function>", "so", "", &[now]);
}

#[test]
fn messages() {
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("muse"), case, reasoning, text, calls)
    };
    let now = ("now", json!({}));
    let call = "<atem:function_calls>\n<atem:invoke name=\"now\">\n</atem:invoke>\n</atem:function_calls>";
    check(" to=user<|message|>Yes.<|eot|>", "", "Yes.", &[]);
    check(" to=self<|message|>so<|eom|><|start|>assistant to=user<|message|>Yes.", "so", "Yes.", &[]);
    check(&format!(" to=now<|message|>{call}<|eot|>"), "", "", from_ref(&now));
    check(
        &format!(
            " to=self<|message|>so<|eom|><|start|>assistant to=now<|message|>{call}<|eom|><|start|>assistant to=now<|message|>{call}<|eot|>"
        ),
        "so",
        "",
        &[now.clone(), now.clone()],
    );
    // A thought is one to its end, and what is said to the user is no call.
    check(&format!(" to=self<|message|>so {call}<|eom|>"), "so", "", from_ref(&now));
    check(
        &format!(" to=self<|message|>so {call} or so<|eom|><|start|>assistant to=user<|message|>Yes."),
        "soor so",
        "Yes.",
        from_ref(&now),
    );
    check(&format!(" to=user<|message|>Write {call} so.<|eot|>"), "", &format!("Write {call} so."), &[]);
    check("<|message|>Yes.", "", "Yes.", &[]);
    check("Yes.<|eot|>", "", "Yes.", &[]);
}

#[test]
fn writes_what_it_reads() {
    FAMILIES.iter().for_each(|format| check_rendered(format));
}
