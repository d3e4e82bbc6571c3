//! Calls of Qwen3-Coder and Qwen 3.5.

use std::slice::from_ref;

use serde_json::json;

use super::*;
use crate::chat::output::tools::qwen_xml::FORMAT;

#[test]
pub fn cases() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    check(
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
        "",
        from_ref(&paris),
    );
    check("Sure.\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>", "Sure.", from_ref(&paris));
    check("<tool_call><function=now></function></tool_call>", "", &[("now", json!({}))]);
    check(
        "<tool_call>\n<function=get_weather>\n<parameter=days>\n3\n</parameter>\n<parameter=metric>\nFalse\n</parameter>\n<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>",
        "",
        &[("get_weather", json!({"days": 3, "metric": false, "city": "12"}))],
    );
    check(
        "<tool_call>\n<function=write_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=content>\n\ndef f(a):\n    return a < 1 and \"x\"\n\n</parameter>\n<parameter=tags>\n[\"a\", 1]\n</parameter>\n<parameter=options>\n{\"mode\": \"7\"}\n</parameter>\n</function>\n</tool_call>",
        "",
        &[(
            "write_file",
            json!({"path": "a.py", "content": "\ndef f(a):\n    return a < 1 and \"x\"\n", "tags": ["a", "1"], "options": {"mode": 7}}),
        )],
    );
    check(
        "<tool_call>\n<function=now>\n</function>\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        "",
        &[("now", json!({})), ("now", json!({})), ("now", json!({}))],
    );
    check("<function=rm>\n</function>", "<function=rm>\n</function>", &[]);
    check("<tool_call> is a tag", "<tool_call> is a tag", &[]);
    check(
        "<function=write_file><parameter=content>\n<parameter=x>\n</parameter></function>",
        "",
        &[("write_file", json!({"content": "<parameter=x>"}))],
    );
    check(
        "<function=mcp.search-all><parameter=q>null</parameter><parameter=any>5</parameter></function>",
        "",
        &[("mcp.search-all", json!({"q": null, "any": "5"}))],
    );
    check("<function=now> so what</function>", "so what</function>", &[("now", json!({}))]);
    check("<tool_call><function=get_weather>{\"city\": \"Paris\"}</function></tool_call>", "", from_ref(&paris));
    // A tag left out, and one that is part of a value.
    check(
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</tool_call>",
        "",
        from_ref(&paris),
    );
    check(
        "<function=write_file><parameter=path>\na\n</parameter><parameter=content>\nend it with </parameter>\nand go on</parameter>.\n</parameter>\n</function>",
        "",
        &[("write_file", json!({"path": "a", "content": "end it with </parameter>\nand go on</parameter>."}))],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
