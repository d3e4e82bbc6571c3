//! Every format's grammar, as llguidance reads it: it accepts what the format writes, and nothing cut.

use std::sync::Arc;

use llguidance::{
    Matcher, ParserFactory,
    api::TopLevelGrammar,
    toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie},
};

use super::*;

/// A grammar for one call of this tool, envelope and all, over bytes.
fn matcher(format: &ToolFormat, tool: &Tool) -> Matcher {
    matcher_with(format, tool, &ApproximateTokEnv::single_byte_env(), &|_| None)
}

fn matcher_with(format: &ToolFormat, tool: &Tool, env: &TokEnv, special: &dyn Fn(&str) -> Option<u32>) -> Matcher {
    let mut rules = Rules::new(special);
    let call = super::super::grammar(format, &mut rules, tool);
    let (open, close) = (rules.literal(format.envelope.open), rules.literal(format.envelope.close));
    let grammar = format!("start: {open} {call} {close}\n{}", rules.text());
    let factory = ParserFactory::new_simple(env).expect("a factory");
    let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.clone()));
    Matcher::new(Ok(parser.unwrap_or_else(|error| panic!("{}: {error}\n{grammar}", format.name))))
}

/// How many bytes the grammar accepts, and whether it may end there.
fn accepts(matcher: &Matcher, text: &str) -> (usize, bool) {
    let mut matcher = matcher.deep_clone();
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    let count = matcher.try_consume_tokens(&tokens).expect("a grammar that goes on");
    (count, matcher.is_accepting().expect("a grammar that goes on"))
}

fn check_accepted(format: &ToolFormat, index: usize, arguments: Value) {
    let tool = &tools()[index];
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let call = ToolCall { id: "abc123def".to_owned(), name: tool.name.clone(), arguments };
    let written = render_turn(format, &[call]);
    let matcher = matcher(format, tool);
    let (count, ends) = accepts(&matcher, &written);
    let rest = written.get(count..).unwrap_or("…");
    assert!(count == written.len() && ends, "{} stops before {rest:?} of {written}", format.name);
}

#[test]
fn grammars_accept_what_formats_write() {
    for format in FORMATS.iter() {
        // llguidance lets no escapes of surrogates pass.
        for text in texts().iter().filter(|text| text.chars().all(|char| char < '\u{ffff}') || format.name != "reka") {
            check_accepted(
                format,
                1,
                json!({"path": "a/b", "content": text, "tags": [text, ""], "options": {"mode": 420}}),
            );
        }
        check_accepted(format, 0, json!({"city": "Paris"}));
        check_accepted(format, 0, json!({"city": "5", "days": -3, "metric": true, "limit": 1.5, "unit": "f"}));
        check_accepted(format, 2, json!({}));
        check_accepted(format, 3, json!({"q": null, "any": "x"}));
        check_accepted(format, 3, json!({"q": "null and void"}));
    }
}

#[test]
fn grammars_refuse_what_schemas_do() {
    for format in FORMATS.iter() {
        let refused = |index: usize, arguments: Value, schema: &str| {
            let Value::Object(arguments) = arguments else { panic!("an object") };
            let tool = &tools()[index];
            let call = ToolCall { id: "abc123def".to_owned(), name: tool.name.clone(), arguments };
            let written = render_turn(format, &[call]);
            let (count, _) = accepts(&matcher(format, tool), &written);
            assert!(count < written.len(), "{} lets {written} pass, against {schema}", format.name);
        };
        refused(0, json!({"days": 3}), "required");
        refused(0, json!({"city": "Paris", "unit": "kelvin"}), "enum");
        refused(0, json!({"city": "Paris", "days": "many"}), "integer");
    }
}

/// Marks that models have as special tokens.
const SPECIALS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<tool_calls:opensource>",
    "</tool_calls:opensource>",
    "<tool_call:opensource>",
    "</tool_call:opensource>",
    "<tool_sep:opensource>",
    "<arg_key:opensource>",
    "</arg_key:opensource>",
    "<arg_value:opensource>",
    "</arg_value:opensource>",
    "｜DSML｜",
    "<|tool_call>",
    "<tool_call|>",
    "<|\"|>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "]<]minimax[>[",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<seed:tool_call>",
    "</seed:tool_call>",
    "<|message|>",
    "<|open|>",
    "<|close|>",
    "<|sep|>",
    "<ifm|arg_value>",
    "</ifm|arg_value>",
    "<|content_invoke_tool_json|>",
    "<|end_message|>",
];

/// The same where marks are tokens of their own.
#[test]
fn grammars_take_special_tokens() {
    let special = |name: &str| SPECIALS.iter().position(|own| *own == name).map(|index| 256 + index as u32);
    let bytes = (0..=255_u8).map(|byte| vec![byte]);
    let names = SPECIALS.iter().map(|name| [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat());
    let end = [TokTrie::SPECIAL_TOKEN_MARKER, b'e'].to_vec();
    let words: Vec<Vec<u8>> = bytes.chain(names).chain([end]).collect();
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, words.len() as u32 - 1), &words);
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    for format in FORMATS.iter() {
        for (index, arguments) in [
            (1, json!({"path": "a/b", "content": " if a < b:\n\"c\"\n", "tags": ["x", ""], "options": {"mode": 420}})),
            (0, json!({"city": "5", "days": 3, "metric": false, "unit": "c"})),
            (2, json!({})),
        ] {
            let tool = &tools()[index];
            let Value::Object(arguments) = arguments else { panic!("an object") };
            let call = ToolCall { id: "abc123def".to_owned(), name: tool.name.clone(), arguments };
            let written = render_turn(format, &[call]);
            let tokens = tokens(&written, &special);
            let mut matcher = matcher_with(format, tool, &env, &special);
            let count = matcher.try_consume_tokens(&tokens).expect("a grammar that goes on");
            let ends = matcher.is_accepting().expect("a grammar that goes on");
            assert!(count == tokens.len() && ends, "{} stops at token {count} of {written}", format.name);
        }
    }
}

/// Special tokens where their names stand, bytes elsewhere.
fn tokens(text: &str, special: &dyn Fn(&str) -> Option<u32>) -> Vec<u32> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let name = SPECIALS.iter().filter(|name| text[at..].starts_with(**name)).max_by_key(|name| name.len());
        let length = name.map_or_else(|| text[at..].chars().next().map_or(1, char::len_utf8), |name| name.len());
        match name {
            Some(name) => tokens.extend(special(name)),
            None => tokens.extend(text[at..at + length].bytes().map(u32::from)),
        }
        at += length;
    }
    tokens
}

/// Formats that spell values differently from JSON, and from each other.
const NOTATIONS: &[&str] =
    &["qwen_xml", "glm", "deepseek_v4", "gemma4", "minimax_m3", "minicpm", "kimi_k3", "lfm2", "seed_oss"];

/// A grammar's answer to arguments under a schema of one parameter `x`.
fn check_schema(schema: Value, accepted: &[Value], refused: &[Value]) {
    check_schema_in(NOTATIONS, schema, accepted, refused);
}

fn check_schema_in(formats: &[&str], schema: Value, accepted: &[Value], refused: &[Value]) {
    let parameters = json!({"type": "object", "required": ["x"], "properties": {"x": schema}, "$defs": {
        "color": {"type": "string", "enum": ["red", "blue"]},
        "node": {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}}});
    let tool = Tool::new("f", parameters);
    for name in formats {
        let format = FORMATS.iter().find(|format| format.name == *name).expect("a format");
        let matcher = matcher(format, &tool);
        let passes = |value: &Value| {
            let arguments = Map::from_iter([("x".to_owned(), value.clone())]);
            let call = ToolCall { id: String::new(), name: "f".to_owned(), arguments };
            let written = render_turn(format, &[call]);
            let (count, ends) = accepts(&matcher, &written);
            (count == written.len() && ends, written)
        };
        for value in accepted {
            let (passed, written) = passes(value);
            assert!(passed, "{name} refuses {written:?} under {}", tool.parameters["properties"]["x"]);
        }
        for value in refused {
            let (passed, written) = passes(value);
            assert!(!passed, "{name} lets {written:?} pass under {}", tool.parameters["properties"]["x"]);
        }
    }
}

#[test]
fn schemas_of_strings_without_quotes() {
    check_schema(json!({"$ref": "#/$defs/color"}), &[json!("red"), json!("blue")], &[json!("green"), json!("")]);
    check_schema(json!({"const": "only"}), &[json!("only")], &[json!("other")]);
    check_schema(
        json!({"type": "string", "pattern": "^[a-z]+/[0-9]{2}$"}),
        &[json!("ab/12")],
        &[json!("ab/1"), json!("x ab/12")],
    );
    check_schema(json!({"type": "string", "pattern": "b"}), &[json!("abc"), json!("b")], &[json!("ac")]);
    check_schema(
        json!({"type": "string", "minLength": 2, "maxLength": 3}),
        &[json!("ab"), json!("日本語")],
        &[json!("a"), json!("abcd")],
    );
    check_schema(json!({"type": ["string", "null"], "enum": ["a", null]}), &[json!("a")], &[json!("b")]);
    check_schema(
        json!({"anyOf": [{"$ref": "#/$defs/color"}, {"type": "integer"}]}),
        &[json!("red"), json!(5)],
        &[json!("green"), json!(1.5)],
    );
}

#[test]
fn strings_that_would_be_read_as_other_values() {
    check_schema(
        json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]}),
        &[json!("two"), json!(3)],
        &[json!(2)],
    );
    // MiniMax M3 is to write JSON where text may stand as well.
    check_schema_in(
        &NOTATIONS.iter().copied().filter(|name| *name != "minimax_m3").collect::<Vec<_>>(),
        json!({"type": ["string", "array"], "items": {"type": "integer"}}),
        &[json!("a [b]"), json!([1, 2])],
        &[json!(["a"])],
    );
    check_schema(json!({"anyOf": [{"const": true}, {"type": "string"}]}), &[json!(true), json!("a")], &[json!(false)]);
}

#[test]
fn formats_of_strings_without_quotes() {
    let check = |format: &str, accepted: &str, refused: &str| {
        check_schema(json!({"type": "string", "format": format}), &[json!(accepted)], &[json!(refused)]);
    };
    check("date", "2024-02-29", "2023-02-29");
    check("time", "12:00:00Z", "25:00:00Z");
    check("date-time", "2024-02-29T12:00:00Z", "2024-02-29");
    check("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567");
    check("ipv4", "127.0.0.1", "256.0.0.1");
    check("hostname", "a.example", "-a");
    check("email", "a.b@c.example", "a.b");
}

/// Why the grammar of a call under this schema is refused, in each format that is not JSON.
fn check_refused(parameters: &Value, expected: &str) {
    let tool = Tool::new("f", parameters.clone());
    // LFM2 writes JSON where its own notation cannot say it.
    for name in NOTATIONS.iter().filter(|name| **name != "lfm2") {
        let format = FORMATS.iter().find(|format| format.name == *name).expect("a format");
        let mut rules = Rules::new(&|_| None);
        super::super::grammar(format, &mut rules, &tool);
        let refused = rules.refused().unwrap_or_else(|| panic!("{name} takes {parameters}"));
        assert!(refused.contains(expected), "{name}: {refused}");
    }
}

#[test]
fn schemas_that_no_notation_keeps() {
    let x = |schema: Value| json!({"type": "object", "properties": {"x": schema}});
    check_refused(&x(json!({"type": "string", "format": "uri"})), "\"format\" \"uri\"");
    check_refused(&x(json!({"type": "string", "allOf": [{"minLength": 3}]})), "\"allOf\"");
    check_refused(&x(json!({"type": "string", "enum": ["a"], "minLength": 1})), "\"minLength\"");
    check_refused(&json!({"type": "object", "required": ["y"], "properties": {}}), "\"y\"");
    check_refused(&json!({"type": "object", "properties": {"x": {}}, "minProperties": 1}), "\"minProperties\"");
    check_refused(
        &json!({"type": "object", "properties": {"x": {}}, "anyOf": [{"required": ["x"]}]}),
        "\"properties\"",
    );
    check_refused(&x(json!({"$ref": "#/properties/x"})), "\"$ref\"");
}

/// Schemas that refer to themselves are held to however deep.
#[test]
fn schemas_that_refer_to_themselves() {
    let nested = |last: Value| {
        (0..12).fold(last, |next, n| if next.is_null() { json!({"n": n}) } else { json!({"n": n, "next": next}) })
    };
    check_schema(
        json!({"$ref": "#/$defs/node"}),
        &[nested(json!(null))],
        &[nested(json!({"n": "x"})), nested(json!(["x"]))],
    );
}

#[test]
fn maps_in_notations() {
    // A tag for each member would have to be closed by the name that opened it; there, MiniMax M3 is to write JSON.
    let formats: Vec<&str> = NOTATIONS.iter().copied().filter(|name| *name != "minimax_m3").collect();
    check_schema_in(
        &formats,
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        &[json!({}), json!({"a": 1}), json!({"a": 1, "b": 2})],
        &[json!({"a": "x"}), json!({"a": 1, "b": [1]})],
    );
}

#[test]
fn schemas_of_other_values() {
    check_schema(json!({"type": "integer", "minimum": 3}), &[json!(3), json!(12)], &[json!(2)]);
    check_schema(json!({"type": "boolean"}), &[json!(true), json!(false)], &[json!(1)]);
    check_schema(json!({"type": "array", "items": {"type": "integer"}}), &[json!([]), json!([1, 2])], &[json!(["a"])]);
    check_schema(
        json!({"type": "array", "items": {"$ref": "#/$defs/color"}}),
        &[json!(["red"]), json!(["red", "blue"])],
        &[json!(["green"])],
    );
    check_schema(
        json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
        &[json!(["a"]), json!(["a", "b"])],
        &[json!(["a", "b", "c"])],
    );
    check_schema(
        json!({"$ref": "#/$defs/node"}),
        &[json!({"n": 1}), json!({"n": 1, "next": {"n": 2}})],
        &[json!({"n": "x"})],
    );
    check_schema(
        json!({"type": "object", "required": ["b"], "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}}),
        &[json!({"b": true}), json!({"a": "x y", "b": false})],
        &[json!({"a": "x"})],
    );
}
