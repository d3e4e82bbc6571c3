//! Cases for every format whose arguments are JSON, whatever stands around them.

use super::*;

/// `write` makes the markup of calls from their names and the JSON of their arguments; `mark` is what opens it.
pub fn check_json(format: &'static Format, mark: &str, write: impl Fn(&[(&str, &str)]) -> String) {
    let one = |name: &str, arguments: &str, expected: Value| {
        check(format, &write(&[(name, arguments)]), "", &[(name, expected)]);
    };
    one("get_weather", "{\"city\": \"Paris\"}", json!({"city": "Paris"}));
    one("now", "{}", json!({}));
    one("now", "{ \n }", json!({}));
    one(
        "get_weather",
        "{\"city\": 75001, \"days\": \"3\", \"metric\": \"true\", \"limit\": \"1.5\", \"unit\": \"c\"}",
        json!({"city": "75001", "days": 3, "metric": true, "limit": 1.5, "unit": "c"}),
    );
    one("get_weather", "{'city': 'it\\'s', 'metric': False}", json!({"city": "it's", "metric": false}));
    one("get_weather", "{\"city\": \"\\u00cele \\ud83d\\ude00 \u{1f600} é\"}", json!({"city": "Île 😀 😀 é"}));
    one(
        "write_file",
        "{\"path\": \"a.py\", \"content\": \"def f(a):\n    return \\\"x\\\" if a < 1 && b else [1, {}]\\n\"}",
        json!({"path": "a.py", "content": "def f(a):\n    return \"x\" if a < 1 && b else [1, {}]\n"}),
    );
    one(
        "write_file",
        "{\"path\": \"\", \"content\": \"</tool_call> <|end|> ]}; ```\\n[TOOL_CALLS] say \"hi\" \\d\"}",
        json!({"path": "", "content": "</tool_call> <|end|> ]}; ```\n[TOOL_CALLS] say \"hi\" \\d"}),
    );
    one(
        "write_file",
        "{\"path\":\"p\",\"content\":\"c\",\"tags\":[\"a\",2,],\"options\":{\"mode\":\"7\"},}",
        json!({"path": "p", "content": "c", "tags": ["a", "2"], "options": {"mode": 7}}),
    );
    one(
        "mcp.search-all",
        "{\"q\": null, \"any\": [1, \"2\", {\"a\": [true]}]}",
        json!({"q": null, "any": [1, "2", {"a": [true]}]}),
    );
    check(
        format,
        &write(&[("now", "{}"), ("get_weather", "{\"city\": \"Rome\"}"), ("now", "{}")]),
        "",
        &[("now", json!({})), ("get_weather", json!({"city": "Rome"})), ("now", json!({}))],
    );
    check(format, &write(&[("functions.now", "{}")]), "", &[("now", json!({}))]);
    let undeclared = write(&[("rm", "{\"path\": \"/\"}")]);
    check(format, &undeclared, &undeclared, &[]);
    if mark.is_empty() {
        return;
    }
    let weather = write(&[("get_weather", "{\"city\": \"Paris\"}")]);
    let paris = ("get_weather", json!({"city": "Paris"}));
    check(format, &format!("Let me look.\n\n{weather}\n"), "Let me look.", std::slice::from_ref(&paris));
    check(format, &format!("{weather}\n\nThat is all."), "That is all.", &[paris]);
    for prose in ["The mark MARK begins a call.", "`MARK` begins a call.", "```\nMARK\n```", "MARK", "a\nMARK\n\nb "] {
        let prose = prose.replace("MARK", mark);
        check(format, &prose, &prose, &[]);
    }
    for quoted in ["`CALL`", "```\nCALL\n```\nis how."] {
        let quoted = quoted.replace("CALL", weather.trim_start());
        check(format, &quoted, &quoted, &[]);
    }
}

/// Objects with a name and arguments, between these texts.
pub fn objects(calls: &[(&str, &str)], open: &str, between: &str, close: &str) -> String {
    let object = |(name, arguments): &(&str, &str)| format!("{{\"name\": \"{name}\", \"arguments\": {arguments}}}");
    format!("{open}{}{close}", calls.iter().map(object).collect::<Vec<_>>().join(between))
}
