//! Calls in Qwen's tags by others: the templates of Nemotron 3, Step 3.5 and Seed-OSS.

use std::slice::from_ref;

use serde_json::json;

use super::*;
use crate::chat::output::tools::{NEMOTRON, SEED_OSS, STEP3P5};

#[test]
pub fn cases() {
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    for format in [&NEMOTRON, &STEP3P5, &SEED_OSS] {
        let tags = |text: &str| {
            if format.name == "seed_oss" { text.replace("tool_call>", "seed:tool_call>") } else { text.to_owned() }
        };
        let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(format, &tags(case), &tags(text), calls);
        check(
            "<tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</tool_call>",
            "",
            from_ref(&paris),
        );
        check("Sure.\n<tool_call><function=now></function></tool_call>\nSo.", "Sure.\nSo.", from_ref(&now));
        check(
            "<tool_call>\n<function=now>\n</function>\n</tool_call><tool_call>\n<function=now>\n</function>\n</tool_call>\n",
            "",
            &[now.clone(), now.clone()],
        );
        check("<function=now>\n</function>\n</tool_call>", "", from_ref(&now));
        check(
            "<function=get_weather><parameter=city>75001</parameter><parameter=days>3</parameter><parameter=metric>True</parameter><parameter=limit>2.5</parameter></function>",
            "",
            &[("get_weather", json!({"city": "75001", "days": 3, "metric": true, "limit": 2.5}))],
        );
        check(
            "<function=write_file><parameter=path>a \"b\"</parameter><parameter=content>if a < b:\n  <parameter=x> é </function></parameter><parameter=tags>['x', \"it's\"]</parameter><parameter=options>{'mode': 7}</parameter></function>",
            "",
            &[(
                "write_file",
                json!({"path": "a \"b\"", "content": "if a < b:\n  <parameter=x> é </function>", "tags": ["x", "it's"], "options": {"mode": 7}}),
            )],
        );
        check("<function=rm></function>", "<function=rm></function>", &[]);
        check("A <tool_call> is a tag.", "A <tool_call> is a tag.", &[]);
        check("```\n<function=now></function>\n```", "```\n<function=now></function>\n```", &[]);
        check(
            "<function=mcp.search-all><parameter=q>None</parameter></function>",
            "",
            &[("mcp.search-all", json!({"q": null}))],
        );
        check(
            "<function=get_weather><parameter=city>Paris</parameter><b> and so on",
            "<b> and so on",
            from_ref(&paris),
        );
        check(
            "<function=get_weather><parameter=city>a </parameter> b</parameter></function>",
            "",
            &[("get_weather", json!({"city": "a </parameter> b"}))],
        );
        check("<function=get_weather>{\"city\": \"Paris\"}</function>", "", from_ref(&paris));
    }
    // White space around a value belongs to it, or to the tags.
    let case =
        "<function=write_file><parameter=path>\na\n</parameter><parameter=content>\n\n b\n</parameter></function>";
    check(&SEED_OSS, case, "", &[("write_file", json!({"path": "\na\n", "content": "\n\n b\n"}))]);
    check(&NEMOTRON, case, "", &[("write_file", json!({"path": "a", "content": "\n b"}))]);
}

#[test]
fn thoughts() {
    let now = ("now", json!({}));
    let case = "<seed:think>so\n<seed:cot_budget_reflect>I have used 128 tokens.</seed:cot_budget_reflect>\nand so</seed:think>Yes.";
    let thought = "so\n<seed:cot_budget_reflect>I have used 128 tokens.</seed:cot_budget_reflect>\nand so";
    check_dialect(named("seed_oss"), case, thought, "Yes.", &[]);
    check_dialect(
        named("seed_oss"),
        "<seed:think>so<seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>",
        "so",
        "",
        from_ref(&now),
    );
    check_dialect(
        named("nemotron"),
        "<think></think><tool_call>\n{\"name\": \"now\"}\n</tool_call>",
        "",
        "",
        from_ref(&now),
    );
    check_dialect(
        named("step3p5"),
        "<think>\nso\n</think>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        "so",
        "",
        &[now],
    );
}

#[test]
fn writes_what_it_reads() {
    [&NEMOTRON, &STEP3P5, &SEED_OSS].iter().for_each(|format| check_rendered(format));
}
