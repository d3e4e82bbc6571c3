//! Llama 3's calls: Meta's prompt formats of 3.1, 3.2 and 3.3.

use super::{json::check_json, *};
use crate::chat::output::tools::llama::FORMAT;

/// Objects with a name and parameters.
fn objects(calls: &[(&str, &str)], open: &str, between: &str) -> String {
    let object = |(name, arguments): &(&str, &str)| format!("{{\"name\": \"{name}\", \"parameters\": {arguments}}}");
    format!("{open}{}", calls.iter().map(object).collect::<Vec<_>>().join(between))
}

#[test]
pub fn cases() {
    check_json(&FORMAT, "", |calls| objects(calls, "", "; "));
    check_json(&FORMAT, "", |calls| objects(calls, "\n\n", "\n"));
    check_json(&FORMAT, "", |calls| format!("{}]", objects(calls, "[", ", ")));
    check_json(&FORMAT, "<|python_tag|>", |calls| objects(calls, "<|python_tag|>", ";"));
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    check(
        "{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}",
        "",
        std::slice::from_ref(&paris),
    );
    check(
        "{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}}",
        "",
        std::slice::from_ref(&paris),
    );
    check("<|python_tag|>get_weather.call(city=\"Paris\")⟪<|eom_id|>⟫", "", std::slice::from_ref(&paris));
    check("{\"name\": \"Bob\", \"age\": 5}", "{\"name\": \"Bob\", \"age\": 5}", &[]);
    check("{\"city\": \"Paris\"}", "{\"city\": \"Paris\"}", &[]);
    check("{x} is a set", "{x} is a set", &[]);
    check("So: {\"name\": \"now\", \"parameters\": {}}", "So: {\"name\": \"now\", \"parameters\": {}}", &[]);
    // No interpreter is declared.
    check("⟪<|python_tag|>⟫print(1)⟪<|eom_id|>⟫", "<|python_tag|>print(1)", &[]);
    check_dialect(named("llama3"), "[get_weather(city='Paris')]", "", "", std::slice::from_ref(&paris));
    check_dialect(
        named("llama4"),
        "[{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}]",
        "",
        "",
        &[paris],
    );
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}

/// Code goes to the interpreter, whole once the message's end is there.
#[test]
fn code() {
    let mut tools = tools();
    let parameters = json!({"type": "object", "properties": {"code": {"type": "string"}}});
    tools.push(Tool::new("code_interpreter", parameters));
    let check = |pieces: &[Piece<'_>], arguments: &str, ended: bool| {
        let mut splitter = Splitter::new(named("llama3"), &tools, Phase::Text, ["<|eom_id|>".to_owned()], 7);
        let mut whole = Whole::default();
        pieces.iter().for_each(|piece| splitter.push(*piece).into_iter().for_each(|event| whole.add(event)));
        splitter.finish().into_iter().for_each(|event| whole.add(event));
        let call = &whole.calls[0];
        assert_eq!((call.name.as_str(), call.arguments.as_str(), call.ended), ("code_interpreter", arguments, ended));
    };
    let code = Piece::Text("<|python_tag|>x = \"a\"\nprint(x.call(1))");
    check(&[code, Piece::Special("<|eom_id|>")], "{\"code\":\"x = \\\"a\\\"\\nprint(x.call(1))\"}", true);
    check(&[code], "{\"code\":\"x = \\\"a\\\"\\nprint(x.call(1))", false);
}

/// Cut in its name, a built-in tool's call is no code of an interpreter.
#[test]
fn a_name_that_was_cut() {
    let tools = [tools(), vec![interpreter()]].concat();
    let called = |text: &str| {
        let whole = read_with(named("llama3"), &tools, &[Piece::Text(text)], &[], Splitter::finish);
        (whole.calls.first().map(|call| call.name.clone()), whole.text)
    };
    let call = "<|python_tag|>get_weather.call(city=\"Paris\")";
    let name = call.find('(').expect("a name");
    for end in name + 1..=call.len() {
        assert_eq!(called(&call[..end]).0.as_deref(), Some("get_weather"));
    }
    for end in "<|python_tag|>".len()..=name {
        assert_eq!(called(&call[..end]), (None, call[..end].to_owned()));
    }
    assert_eq!(called("<|python_tag|>print(").0.as_deref(), Some("python"));
}
