//! GLM's calls and those of its relatives, by their templates (GLM 4.6 and 4.7, Laguna, Ling 3.0, Spark 2.5, Hy3), K2
//! Horizon's model card and mlx-lm's parser of LongCat: the same cases in each family's tags.

use std::slice::from_ref;

use serde_json::json;

use super::*;
use crate::chat::output::tools::{GLM, GLM47, HUNYUAN, K2_HORIZON, LAGUNA, LING, LONGCAT};

const FAMILIES: [&Format; 7] = [&GLM, &GLM47, &LAGUNA, &LING, &HUNYUAN, &K2_HORIZON, &LONGCAT];

/// A case in GLM's tags in those of another format.
fn translated(format: &Format, case: &str) -> String {
    let tags = ["tool_calls>", "tool_call>", "arg_key>", "arg_value>"];
    match format.name {
        "hunyuan" => {
            tags.iter().fold(case.to_owned(), |text, tag| text.replace(tag, &tag.replace('>', ":opensource>")))
        }
        "longcat" => tags.iter().fold(case.to_owned(), |text, tag| text.replace(tag, &format!("longcat_{tag}"))),
        "k2_horizon" => tags.iter().fold(case.to_owned(), |text, tag| {
            text.replace(&format!("</{tag}"), &format!("</ifm|{tag}"))
                .replace(&format!("<{tag}"), &format!("<ifm|{tag}"))
        }),
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
    check_all(
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
        "",
        from_ref(&paris),
    );
    check_all(
        "Sure.\n<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>",
        "Sure.",
        from_ref(&paris),
    );
    check_all("<tool_call>\nnow\n\n</tool_call>\n", "", &[("now", json!({}))]);
    check_all(
        "<tool_call>now</tool_call><tool_call>now</tool_call>\nDone.",
        "Done.",
        &[("now", json!({})), ("now", json!({}))],
    );
    // By the schema: numbers that are strings, truth as Python has it, what is no number.
    check_all(
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>75001</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n<arg_key>metric</arg_key>\n<arg_value>True</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>1.50</arg_value></tool_call>",
        "",
        &[("get_weather", json!({"city": "75001", "days": 3, "metric": true, "limit": 1.5}))],
    );
    check_all(
        "<tool_call>write_file<arg_key>path</arg_key><arg_value>a \"b\".py</arg_value><arg_key>content</arg_key><arg_value>\n  if a < b:\n    print('</x>')\n\n</arg_value><arg_key>tags</arg_key><arg_value>[\"x\", 1]</arg_value><arg_key>options</arg_key><arg_value>{'mode': '7'}</arg_value></tool_call>",
        "",
        &[(
            "write_file",
            json!({"path": "a \"b\".py", "content": "\n  if a < b:\n    print('</x>')\n\n", "tags": ["x", "1"], "options": {"mode": 7}}),
        )],
    );
    check_all(
        "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call>",
        "",
        from_ref(&paris),
    );
    check_all(
        "<tool_call>rm<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>",
        "<tool_call>rm<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>",
        &[],
    );
    check_all("A <tool_call> is a tag.", "A <tool_call> is a tag.", &[]);
    check_all("<tool_call>now is the time</tool_call>", "<tool_call>now is the time</tool_call>", &[]);
    check_all("Write `<tool_call>now</tool_call>`.", "Write `<tool_call>now</tool_call>`.", &[]);
    check_all(
        "<tool_call>mcp.search-all<arg_key>q</arg_key><arg_value>null</arg_value><arg_key>any</arg_key><arg_value>{\"é\": [1]}</arg_value></tool_call>",
        "",
        &[("mcp.search-all", json!({"q": null, "any": {"é": [1]}}))],
    );
    // Broken off in the middle of a text that goes on.
    check_all(
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value><b> and so on",
        "<b> and so on",
        from_ref(&paris),
    );
    // A closing tag within a value.
    for format in FAMILIES {
        let city = translated(format, "a </arg_value> b\n");
        let case = translated(
            format,
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value>CITY</arg_value>\n</tool_call>",
        );
        check(format, &case.replace("CITY", &city), "", &[("get_weather", json!({"city": city}))]);
    }
    check_all("<tool_call>get_weather\n{\"city\": \"Paris\"}\n</tool_call>", "", from_ref(&paris));
}

#[test]
fn outer_tags() {
    let now = ("now", json!({}));
    for format in [&HUNYUAN, &K2_HORIZON] {
        let check =
            |case: &str, text: &str, calls: &[(&str, Value)]| check(format, &translated(format, case), text, calls);
        check(
            "<tool_calls>\n<tool_call>now\n</tool_call>\n<tool_call>now</tool_call>\n</tool_calls>",
            "",
            &[now.clone(), now.clone()],
        );
        check(
            "Yes.<tool_calls><tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call></tool_calls> So.",
            "Yes. So.",
            from_ref(&now),
        );
        check("<tool_call>now</tool_call>\n</tool_calls>", "", from_ref(&now));
    }
    check(&HUNYUAN, "<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>", "", from_ref(&now));
    // Without the suffix.
    check(
        &HUNYUAN,
        "Sure.<tool_calls>\n<tool_call>now<tool_sep>\n</tool_call>\n<tool_call>mcp.search-all<tool_sep>\n<arg_key>q</arg_key>\n<arg_value>null</arg_value>\n</tool_call>\n</tool_calls>",
        "Sure.",
        &[now.clone(), ("mcp.search-all", json!({"q": null}))],
    );
    check(&HUNYUAN, "<tool_call>now<tool_sep>{}</tool_call>", "", from_ref(&now));
    check(
        &K2_HORIZON,
        "<ifm|tool_call>mcp.search-all\n<ifm|arg_key>any</ifm|arg_key>\n<ifm|arg_type>string</ifm|arg_type>\n<ifm|arg_value>[1]</ifm|arg_value>\n<ifm|arg_key>q</ifm|arg_key>\n<ifm|arg_type>string</ifm|arg_type>\n<ifm|arg_value>5</ifm|arg_value>\n</ifm|tool_call>",
        "",
        &[("mcp.search-all", json!({"any": "[1]", "q": "5"}))],
    );
    check(
        &K2_HORIZON,
        "<ifm|tool_call>mcp.search-all<ifm|arg_key>any</ifm|arg_key><ifm|arg_type>number</ifm|arg_type><ifm|arg_value>5</ifm|arg_value></ifm|tool_call>",
        "",
        &[("mcp.search-all", json!({"any": 5}))],
    );
}

#[test]
fn special_tokens() {
    // The same characters as plain text are no tags.
    let case = "⟪<tool_call>⟫write_file⟪<arg_key>⟫path⟪</arg_key>⟫⟪<arg_value>⟫</arg_value>⟪</arg_value>⟫⟪<arg_key>⟫content⟪</arg_key>⟫⟪<arg_value>⟫x</tool_call>⟪</arg_value>⟫⟪</tool_call>⟫";
    check(&GLM47, case, "", &[("write_file", json!({"path": "</arg_value>", "content": "x</tool_call>"}))]);
}

#[test]
fn thoughts() {
    let now = ("now", json!({}));
    check_dialect(named("glm"), "\n<think>so</think>\nYes: <|begin_of_box|>42<|end_of_box|>", "so", "Yes: 42", &[]);
    check_dialect(named("glm"), "<think>so <tool_call>now</tool_call>", "so", "", from_ref(&now));
    check_dialect(named("glm47"), "</think>Yes.", "", "Yes.", &[]);
    check_dialect(named("hunyuan"), "<think:opensource>so</think:opensource>Yes.", "so", "Yes.", &[]);
    check_dialect(named("hunyuan"), "<think>so</think>Yes.", "so", "Yes.", &[]);
    check_dialect(named("k2_horizon"), "<ifm|think_fast>so</ifm|think_fast>\nYes.", "so", "Yes.", &[]);
    check_dialect(named("longcat"), "<longcat_think>so</longcat_think>\nYes.", "so", "Yes.", &[]);
    check_dialect(named("laguna_s"), "<think>so</think><tool_call>now</tool_call>", "so", "", &[now]);
}

#[test]
fn writes_what_it_reads() {
    FAMILIES.iter().for_each(|format| check_rendered(format));
}
