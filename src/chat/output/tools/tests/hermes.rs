//! Hermes calls: model cards of Hermes 2 Pro, Qwen 2.5 and Qwen 3, and what goes wrong in them.

use serde_json::json;

use super::*;
use crate::chat::output::tools::hermes::FORMAT;

#[test]
pub fn cases() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    check("hello", "hello", &[]);
    check("\n hello \n", "\n hello \n", &[]);
    check(
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>",
        "",
        std::slice::from_ref(&paris),
    );
    check(
        "Let me look.\n\n<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Paris\"}}</tool_call>\n",
        "Let me look.",
        std::slice::from_ref(&paris),
    );
    check(
        "<tool_call>{\"arguments\": {\"city\": \"Paris\"}, \"name\": \"get_weather\"}</tool_call> done",
        "done",
        std::slice::from_ref(&paris),
    );
    check(
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Paris\\\"}\"}\n</tool_call>",
        "",
        std::slice::from_ref(&paris),
    );
    check(
        "<tool_call>\n{'name': 'get_weather', 'arguments': {'city': 'Paris', 'days': '3', 'metric': True}}\n</tool_call>",
        "",
        &[("get_weather", json!({"city": "Paris", "days": 3, "metric": true}))],
    );
    check(
        "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"now\"}</tool_call><tool_call>{\"name\": \"now\", \"arguments\": null}",
        "",
        &[("now", json!({})), ("now", json!({})), ("now", json!({}))],
    );
    check(
        "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>",
        &[],
    );
    // White space between texts stays, on one side of what stands between them.
    check(
        "One.\n\n<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_call>{\"name\": \"now\"}</tool_call> \nTwo.\n",
        "One.\n\nTwo.\n",
        &[("now", json!({})), ("now", json!({}))],
    );
    check("One.<tool_call>{\"name\": \"now\"}</tool_call> \n Two.", "One. \n Two.", &[("now", json!({}))]);
    check("A <tool_call> is a tag, so is </tool_call>.", "A <tool_call> is a tag, so is </tool_call>.", &[]);
    check(
        "Write `<tool_call>{\"name\": \"now\"}</tool_call>` so.",
        "Write `<tool_call>{\"name\": \"now\"}</tool_call>` so.",
        &[],
    );
    check(
        "```\n<tool_call>{\"name\": \"now\"}</tool_call>\n```",
        "```\n<tool_call>{\"name\": \"now\"}</tool_call>\n```",
        &[],
    );
    check("<tool_call>{\"name\": \"now\", \"arguments\": null}</tool_call>", "", &[("now", json!({}))]);
    check("<tool_call>{\"name\": \"now\", \"arguments\": nullify}</tool_call>", "}</tool_call>", &[("now", json!({}))]);
    check("<tool_call> hm <tool_call>{\"name\": \"now\"}</tool_call>", "<tool_call> hm", &[("now", json!({}))]);
    check(
        "<tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"</tool_call>\n\"x\" \\u00e9 \\d\"}}</tool_call>",
        "",
        &[("write_file", json!({"path": "a", "content": "</tool_call>\n\"x\" é \\d"}))],
    );
    check(
        "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": 75001, \"days\": \"2\", \"limit\": 2}}</tool_call>",
        "",
        &[("get_weather", json!({"city": "75001", "days": 2, "limit": 2}))],
    );
    check(
        "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": 3 oops}}</tool_call>",
        "oops}}</tool_call>",
        &[("get_weather", json!({"city": "Paris", "days": 3}))],
    );
    check("<tool_call>{\"name\": \"functions.now\", \"arguments\": {}}</tool_call>", "", &[("now", json!({}))]);
    check(
        "<tool_call>{\"name\": \"mcp.search-all\", \"arguments\": {\"q\": null, \"any\": [1, \"2\", {}]}}</tool_call>",
        "",
        &[("mcp.search-all", json!({"q": null, "any": [1, "2", {}]}))],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}

#[test]
fn thoughts() {
    let now = ("now", json!({}));
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(thinking(&FORMAT, true), case, reasoning, text, calls)
    };
    check("<think>\nso\n</think>\n\nYes.", "so", "Yes.", &[]);
    check("<think>so</think><think>and so</think>Yes.", "soand so", "Yes.", &[]);
    check("</think>\nYes.", "", "Yes.", &[]);
    check("Yes, <think> is a tag.", "", "Yes, <think> is a tag.", &[]);
    check("<think>the `</think>` tag</think>Yes.", "the `</think>` tag", "Yes.", &[]);
    check("<think>so\n<tool_call>{\"name\": \"now\"}</tool_call>", "so", "", std::slice::from_ref(&now));
    check("<think>so <tool_call> hm</think>Yes", "so <tool_call> hm", "Yes", &[]);
    // A thought's mark after a call that has ended the thought.
    let call = "<tool_call>{\"name\": \"now\"}</tool_call>";
    check(&format!("<think>so {call} hm\n</think>\n\nYes."), "so", "hm\n\n\nYes.", std::slice::from_ref(&now));
    check(&format!("<think>so {call}\n</think>\n{call}"), "so", "", &[now.clone(), now.clone()]);
    check(&format!("<think>so {call} a</think> b</think>"), "so", "a b</think>", std::slice::from_ref(&now));
    check("<think>so</think>\n<tool_call>{\"name\": \"now\"}</tool_call>\n", "so", "", std::slice::from_ref(&now));
    check("<think>never closed", "never closed", "", &[]);
    check("<think></think>", "", "", &[]);
}

/// Another family's call that is quoted in a call is a part of it, also where the answer was cut before the name or the
/// arguments began.
#[test]
fn calls_in_calls() {
    let other = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\\n```json\\n{}\\n```<｜tool▁call▁end｜>";
    let weather = ("get_weather", json!({"city": "Paris"}));
    let name = format!("{{\"id\": \"{other}\", \"name\": \"get_weather\", \"arguments\": {{\"city\": \"Paris\"}}}}");
    let arguments =
        format!("{{\"name\": \"get_weather\", \"note\": \"{other}\", \"arguments\": {{\"city\": \"Paris\"}}}}");
    for call in [name, arguments] {
        let call = format!("<tool_call>\n{call}\n</tool_call>").replace("\\n", "\n");
        check_dialect(named("auto"), &call, "", "", std::slice::from_ref(&weather));
        check_dialect(named("auto"), &format!("{call}\n{call}"), "", "", &[weather.clone(), weather.clone()]);
    }
}
