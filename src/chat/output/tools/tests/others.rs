//! LFM 2, UI-TARS, Inkling, Kimi K3, Reka Edge and OLMo 3: templates, model cards, and UI-TARS's published prompts.

use std::slice::from_ref;

use serde_json::json;

use super::*;
use crate::chat::output::tools::{INKLING, KIMI_K3, LFM2, OLMO3, REKA, UI_TARS};

#[test]
pub fn lfm2() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&LFM2, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    check("<|tool_call_start|>[get_weather(city=\"Paris\")]<|tool_call_end|>", "", from_ref(&paris));
    check("<|tool_call_start|>[get_weather(city='Paris')]<|tool_call_end|>Checking.", "Checking.", from_ref(&paris));
    check(
        "Sure.\n<|tool_call_start|>[now(), get_weather(city='Paris')]<|tool_call_end|>",
        "Sure.",
        &[now.clone(), paris.clone()],
    );
    check("<|tool_call_start|>[now()]", "", from_ref(&now));
    check(
        "<|tool_call_start|>[get_weather(city='5', days=3, metric=False, limit=1.5)]<|tool_call_end|>",
        "",
        &[("get_weather", json!({"city": "5", "days": 3, "metric": false, "limit": 1.5}))],
    );
    check(
        "<|tool_call_start|>[write_file(path=\"a\", content='say \"x\", it\\'s\\n', tags=['x', \"y\"], options={\"mode\": 7})]<|tool_call_end|>",
        "",
        &[(
            "write_file",
            json!({"path": "a", "content": "say \"x\", it's\n", "tags": ["x", "y"], "options": {"mode": 7}}),
        )],
    );
    check("<|tool_call_start|>[rm()]<|tool_call_end|>", "<|tool_call_start|>[rm()]<|tool_call_end|>", &[]);
    check("A <|tool_call_start|> is a mark.", "A <|tool_call_start|> is a mark.", &[]);
    check("[now()]", "[now()]", &[]);
    check(
        "<|tool_call_start|>[mcp.search-all(q=None, any=['é', {}])]<|tool_call_end|>",
        "",
        &[("mcp.search-all", json!({"q": null, "any": ["é", {}]}))],
    );
    check_dialect(named("lfm2"), "<think>so</think>Yes.", "so", "Yes.", &[]);
    check_rendered(&LFM2);
}

#[test]
pub fn ui_tars() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&UI_TARS, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    check("Action: get_weather(city='Paris')", "", from_ref(&paris));
    check("Action: get_weather(city='Paris')\n\nnow()", "", &[paris.clone(), ("now", json!({}))]);
    check("Action:\nget_weather(\"Paris\")\nAction: now()", "", &[paris.clone(), ("now", json!({}))]);
    check(
        "Action: write_file(path='(100,200)', content='it\\'s \"x\"\\n')",
        "",
        &[("write_file", json!({"path": "(100,200)", "content": "it's \"x\"\n"}))],
    );
    check(
        "Action: write_file(path='a, b=c', content='f(x)\\')')",
        "",
        &[("write_file", json!({"path": "a, b=c", "content": "f(x)')"}))],
    );
    check(
        "Action: get_weather(city='5', days='3', metric=True)",
        "",
        &[("get_weather", json!({"city": "5", "days": 3, "metric": true}))],
    );
    check("Action: now() Action: now()", "", &[("now", json!({})), ("now", json!({}))]);
    check("Action: click(start_box='(1,2)')", "Action: click(start_box='(1,2)')", &[]);
    check("Action: think about it.", "Action: think about it.", &[]);
    // Where an answer is cut behind ')', a string may go on.
    check(
        "Action: write_file(content='f('x') + g('y')')",
        "",
        &[("write_file", json!({"content": "f('x') + g('y')"}))],
    );
    check("Action: get_weather(city='日本')\nDone.", "Done.", &[("get_weather", json!({"city": "日本"}))]);
    check_rendered(&UI_TARS);
}

#[test]
fn actions() {
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("ui_tars"), case, reasoning, text, calls)
    };
    let now = ("now", json!({}));
    check("Thought: The clock is there.\nAction: now()", "The clock is there.", "", from_ref(&now));
    check(
        "Reflection: It failed.\nThought: Again.\nAction: now()\n\nnow()",
        "It failed.\nThought: Again.",
        "",
        &[now.clone(), now.clone()],
    );
    check("Thought: Done.\nAction: finished(content='x')", "Done.", "Action: finished(content='x')", &[]);
    check("Thought: Done.\nAct", "Done.\nAct", "", &[]);
    check("Thought: The next Action: none.", "The next Action: none.", "", &[]);
    check("Action: now()", "", "", from_ref(&now));
    check("There is no Thought: here.", "", "There is no Thought: here.", &[]);
}

/// An action that is no tool is one of the computer's.
#[test]
fn computer() {
    let tool = Tool::new("computer", json!({}));
    let mut splitter = Splitter::new(named("ui_tars"), &[tool], Phase::Text, [], 7);
    let mut events = splitter.push(Piece::Text("Thought: so\nAction: drag(start_box='(1,2)', end_box='(3,4)')"));
    events.extend(splitter.complete());
    let mut whole = Whole::default();
    events.into_iter().for_each(|event| whole.add(event));
    let arguments: Value = serde_json::from_str(&whole.calls[0].arguments).unwrap();
    assert_eq!((whole.calls[0].name.as_str(), whole.reasoning.as_str()), ("computer", "so"));
    assert_eq!(arguments, json!({"action": "drag", "start_box": "(1,2)", "end_box": "(3,4)"}));
}

#[test]
pub fn inkling() {
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("inkling"), case, reasoning, text, calls)
    };
    let paris = ("get_weather", json!({"city": "Paris"}));
    let call = "get_weather<|content_invoke_tool_json|>{\"name\":\"get_weather\",\"args\":{\"city\":\"Paris\"}}<|end_message|>";
    check("<|content_text|>Yes.<|end_message|><|content_model_end_sampling|>", "", "Yes.", &[]);
    check(
        "<|content_thinking|>so<|end_message|><|message_model|><|content_text|>Yes.<|end_message|>",
        "so",
        "Yes.",
        &[],
    );
    check(call, "", "", from_ref(&paris));
    check(&format!("<|content_thinking|>so<|end_message|><|message_model|>{call}"), "so", "", from_ref(&paris));
    check(
        &format!("{call}<|message_model|>{call}<|content_model_end_sampling|>"),
        "",
        "",
        &[paris.clone(), paris.clone()],
    );
    check("<|content_invoke_tool_json|>{\"name\": \"now\", \"args\": {}}", "", "", &[("now", json!({}))]);
    check(
        "<|content_text|>Sure.<|end_message|><|message_model|>now<|content_invoke_tool_json|>{\"name\": \"now\", \"args\": {}}<|end_message|>",
        "",
        "Sure.",
        &[("now", json!({}))],
    );
    check(
        "<|content_thinking|>so<|end_message|><|message_model|><|content_thinking|>and so<|end_message|><|message_model|><|content_text|>Yes.",
        "soand so",
        "Yes.",
        &[],
    );
    check("<|content_text|>it's \"é\"\n<b><|end_message|>", "", "it's \"é\"\n<b>", &[]);
    check("Yes.<|end_message|>", "", "Yes.", &[]);
    check(
        "<|content_invoke_tool_json|>{\"name\": \"write_file\", \"args\": {\"path\": \"<|x|>\", \"content\": \"a \\\"b\\\"\\n{}\", \"options\": {\"mode\": \"7\"}}}<|end_message|>",
        "",
        "",
        &[("write_file", json!({"path": "<|x|>", "content": "a \"b\"\n{}", "options": {"mode": 7}}))],
    );
    check_rendered(&INKLING);
}

/// Cases without the tokens of Kimi's XML: ‹tag› and ‹/tag›.
#[test]
pub fn kimi_k3() {
    let tags = |text: &str| text.replace("‹/", "<|close|>").replace('‹', "<|open|>").replace('›', "<|sep|>");
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("kimi_k3"), &tags(case), reasoning, &tags(text), calls)
    };
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    check("‹think›so‹/think›‹response›Yes.‹/response›‹/message›<|end_of_msg|>", "so", "Yes.", &[]);
    check(
        "‹tools›‹call tool=\"get_weather\" index=\"1\"›‹argument key=\"city\" type=\"string\"›Paris‹/argument›‹/call›‹/tools›",
        "",
        "",
        from_ref(&paris),
    );
    check(
        "‹think›so‹/think›‹response›‹/response›‹tools›‹call tool=\"now\" index=\"1\"›‹/call›‹call tool=\"now\" index=\"2\"›‹/call›‹/tools›‹/message›",
        "so",
        "",
        &[now.clone(), now.clone()],
    );
    check(
        "‹tools›‹call tool=\"mcp.search-all\" index=\"1\"›‹argument key=\"any\" type=\"string\"›[1]‹/argument›‹argument key=\"q\" type=\"null\"›null‹/argument›‹/call›‹/tools›",
        "",
        "",
        &[("mcp.search-all", json!({"any": "[1]", "q": null}))],
    );
    check(
        "‹tools›‹call tool=\"mcp.search-all\" index=\"1\"›‹argument key=\"any\" type=\"array\"›[1, \"é\"]‹/argument›‹/call›‹/tools›",
        "",
        "",
        &[("mcp.search-all", json!({"any": [1, "é"]}))],
    );
    check(
        "‹tools›‹call tool=\"get_weather\" index=\"1\"›‹argument key=\"city\" type=\"number\"›75001‹/argument›‹argument key=\"days\" type=\"string\"›3‹/argument›‹/call›‹/tools›",
        "",
        "",
        &[("get_weather", json!({"city": "75001", "days": 3}))],
    );
    check(
        "‹tools›‹call tool=\"get_weather\" index=\"1\"›‹json type=\"object\"›{\"city\": \"Paris\"}‹/json›‹/call›‹/tools›",
        "",
        "",
        from_ref(&paris),
    );
    check(
        "‹tools›‹call tool=\"write_file\" index=\"1\"›‹argument key=\"path\" type=\"string\"› \"a\" ‹/argument›‹argument key=\"content\" type=\"string\"›\nif a < b:\n  <|sep|>\n‹/argument›‹/call›‹/tools›",
        "",
        "",
        &[("write_file", json!({"path": " \"a\" ", "content": "\nif a < b:\n  <|sep|>\n"}))],
    );
    check(
        "‹tools›‹call tool=\"rm\" index=\"1\"›‹/call›‹/tools›",
        "",
        "‹tools›‹call tool=\"rm\" index=\"1\"›‹/call›‹/tools›",
        &[],
    );
    check("‹response›A tool call is XML.‹/response›", "", "A tool call is XML.", &[]);
    check("‹think›so‹response›Yes.‹/response›", "so", "Yes.", &[]);
    check("‹think›so‹tools›‹call tool=\"now\" index=\"1\"›‹/call›‹/tools›", "so", "", from_ref(&now));
    check_rendered(&KIMI_K3);
}

#[test]
pub fn reka() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&REKA, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    let call = |name: &str, arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    check(&call("get_weather", "{\"city\": \"Paris\"}"), "", from_ref(&paris));
    check(&format!("{}{}", call("now", "{}"), call("now", "{}")), "", &[now.clone(), now.clone()]);
    check(&format!("I look.\n\n{}\nSo.", call("now", "{}")), "I look.\n\nSo.", from_ref(&now));
    check(
        &call("get_weather", "{\"city\": \"\\u00cele \\ud83d\\ude00 é\", \"days\": \"3\", \"metric\": true}"),
        "",
        &[("get_weather", json!({"city": "Île 😀 é", "days": 3, "metric": true}))],
    );
    check(
        &call("write_file", "{\"path\": \"a \\\"b\\\"\", \"content\": \"</tool_call>\\nif a < b:\\n\\treturn 'x'\"}"),
        "",
        &[("write_file", json!({"path": "a \"b\"", "content": "</tool_call>\nif a < b:\n\treturn 'x'"}))],
    );
    check(
        &call(
            "write_file",
            "{\"path\": \"\", \"content\": \"5\", \"tags\": [\"x\", 1], \"options\": {\"mode\": \"7\"}}",
        ),
        "",
        &[("write_file", json!({"path": "", "content": "5", "tags": ["x", "1"], "options": {"mode": 7}}))],
    );
    check(
        &call("mcp.search-all", "{\"q\": null, \"any\": [1, \"2\", {\"a\": {}}]}"),
        "",
        &[("mcp.search-all", json!({"q": null, "any": [1, "2", {"a": {}}]}))],
    );
    check("<tool_call>{\"name\": \"now\", \"arguments\": null}", "", from_ref(&now));
    check(&call("rm", "{}"), &call("rm", "{}"), &[]);
    check("A <tool_call> is a tag.", "A <tool_call> is a tag.", &[]);
    check("`<tool_call>{\"name\": \"now\"}</tool_call>`", "`<tool_call>{\"name\": \"now\"}</tool_call>`", &[]);
    check_dialect(named("reka"), &format!("<think>so</think>\n\n{}", call("now", "{}")), "so", "", from_ref(&now));
    check_rendered(&REKA);
}

#[test]
pub fn olmo3() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&OLMO3, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    check("<function_calls>get_weather(city=\"Paris\")</function_calls>", "", from_ref(&paris));
    check(
        "Sure.\n<function_calls>\nnow()\nget_weather(city='Paris')\n\nnow( )\n</function_calls>\n",
        "Sure.",
        &[now.clone(), paris.clone(), now.clone()],
    );
    check(
        "<function_calls>get_weather(city='5', days=\"3\", metric=true, limit=1.5)</function_calls>",
        "",
        &[("get_weather", json!({"city": "5", "days": 3, "metric": true, "limit": 1.5}))],
    );
    check(
        "<function_calls>write_file(path='it\\'s \"a\"', content=\"f(x)\\n</b> é\", tags=[\"x\", 'y'], options={\"mode\": 7})</function_calls>",
        "",
        &[(
            "write_file",
            json!({"path": "it's \"a\"", "content": "f(x)\n</b> é", "tags": ["x", "y"], "options": {"mode": 7}}),
        )],
    );
    check(
        "<function_calls>mcp.search-all(q=None, any=(1, {'a': []}))</function_calls>",
        "",
        &[("mcp.search-all", json!({"q": null, "any": [1, {"a": []}]}))],
    );
    check("<function_calls>get_weather(city=\"Paris\")\nnow()", "", &[paris.clone(), now.clone()]);
    check("<function_calls>rm(path='/')</function_calls>", "<function_calls>rm(path='/')</function_calls>", &[]);
    check("<function_calls> is a tag.", "<function_calls> is a tag.", &[]);
    check("`<function_calls>now()</function_calls>`", "`<function_calls>now()</function_calls>`", &[]);
    check("now()", "now()", &[]);
    check_dialect(named("olmo3"), "<think>so</think><function_calls>now()</function_calls>", "so", "", from_ref(&now));
    check_rendered(&OLMO3);
}
