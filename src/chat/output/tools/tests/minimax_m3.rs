//! MiniMax M3's calls, by its template.

use std::slice::from_ref;

use serde_json::json;

use super::*;
use crate::chat::output::tools::MINIMAX_M3;

/// Cases without the token before each tag.
fn check(case: &str, text: &str, calls: &[(&str, Value)]) {
    super::check(&MINIMAX_M3, &case.replace('‹', "]<]minimax[>[<"), &text.replace('‹', "]<]minimax[>[<"), calls);
}

#[test]
pub fn cases() {
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    check("‹tool_call>\n‹invoke name=\"get_weather\">‹city>Paris‹/city>‹/invoke>\n‹/tool_call>", "", from_ref(&paris));
    check(
        "Sure.‹tool_call>‹invoke name=\"get_weather\">\n‹city>Paris‹/city>\n‹/invoke>‹/tool_call>\n",
        "Sure.",
        from_ref(&paris),
    );
    check(
        "‹tool_call>\n‹invoke name=\"now\">‹/invoke>\n‹invoke name=\"now\">‹/invoke>\n‹/tool_call>",
        "",
        &[now.clone(), now.clone()],
    );
    check("‹invoke name=\"now\">‹/invoke>\n‹/tool_call>So.", "So.", from_ref(&now));
    check(
        "‹tool_call>‹invoke name=\"get_weather\">‹city>5‹/city>‹days>5‹/days>‹metric>true‹/metric>‹limit>0.5‹/limit>‹/invoke>‹/tool_call>",
        "",
        &[("get_weather", json!({"city": "5", "days": 5, "metric": true, "limit": 0.5}))],
    );
    check(
        "‹tool_call>‹invoke name=\"write_file\">‹path> a \"b\"‹/path>‹content>\n<item>é</content>\n</invoke> {\"x\": 1}\n‹/content>‹tags>‹item>x‹/item>‹item>1‹/item>‹item>‹/item>‹/tags>‹options>‹mode>7‹/mode>‹/options>‹/invoke>‹/tool_call>",
        "",
        &[(
            "write_file",
            json!({"path": " a \"b\"", "content": "\n<item>é</content>\n</invoke> {\"x\": 1}\n", "tags": ["x", "1", ""], "options": {"mode": 7}}),
        )],
    );
    check(
        "‹invoke name=\"write_file\">‹path>‹/path>‹content>‹/content>‹tags>‹/tags>‹options>‹/options>‹/invoke>",
        "",
        &[("write_file", json!({"path": "", "content": "", "tags": [], "options": {}}))],
    );
    check(
        "‹invoke name=\"write_file\">‹tags>[\"a\"]‹/tags>‹options>{\"mode\": 1}‹/options>‹/invoke>",
        "",
        &[("write_file", json!({"tags": ["a"], "options": {"mode": 1}}))],
    );
    check(
        "‹invoke name=\"mcp.search-all\">‹any>‹item>‹a>1‹/a>‹/item>‹item>x‹/item>‹/any>‹/invoke>",
        "",
        &[("mcp.search-all", json!({"any": [{"a": "1"}, "x"]}))],
    );
    // Empty containers that are left open.
    check(
        "‹invoke name=\"write_file\">‹path>a‹/path>‹tags>\n‹/invoke>So.",
        "So.",
        &[("write_file", json!({"path": "a", "tags": []}))],
    );
    check(
        "‹tool_call>‹invoke name=\"mcp.search-all\">‹any>‹item>‹a>‹/item>‹item>‹a>1‹/a>‹/item>‹/any>‹/invoke>‹/tool_call>",
        "",
        &[("mcp.search-all", json!({"any": [{"a": ""}, {"a": "1"}]}))],
    );
    check("‹invoke name=\"rm\">‹/invoke>", "‹invoke name=\"rm\">‹/invoke>", &[]);
    check("A <tool_call> and ‹tool_call> are tags.", "A <tool_call> and ‹tool_call> are tags.", &[]);
    check("‹invoke name=\"get_weather\">‹city>Paris‹/city> and so on", "and so on", from_ref(&paris));
}

#[test]
fn thoughts() {
    check_dialect(named("minimax_m3"), "<mm:think>so</mm:think>Yes.", "so", "Yes.", &[]);
    check_dialect(named("minimax_m3"), "</mm:think>Yes.", "", "Yes.", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&MINIMAX_M3);
}
