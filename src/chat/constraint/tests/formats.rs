//! What each format lets an answer be.

use super::*;

/// Texts that the format takes, and texts that it does not.
fn check(format: Format, accepted: &[&str], rejected: &[&str]) {
    for bench in [Some(Bench::bytes()), Bench::starter()].into_iter().flatten() {
        let grammar = bench.compile(&format);
        for text in accepted {
            let followed = bench.follow(&grammar, text, |_| ());
            assert!(followed.is_ok(), "{format:?}: {text:?}: {followed:?}");
        }
        for text in rejected {
            assert!(!bench.accepts(&grammar, text), "{format:?} accepts {text:?}");
        }
    }
}

#[test]
fn json_objects() {
    check(
        Format::JsonObject,
        &["{}", "{\"a\":1}", "{ \"a\" : [1, null, true] }", "{\n  \"a\": {\n    \"b\": \"é\\n\"\n  }\n}"],
        &["[]", "1", "", "{", "{\"a\":}", "{a:1}", "{} {}", "{\"a\":  1}", " {}", "\n\n{}", "{}\n"],
    );
}

#[test]
fn schemas() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
        "additionalProperties": false
    });
    check(
        Format::JsonSchema(schema),
        &["{\"name\":\"Al\",\"age\":3}", "{\"name\": \"\", \"age\": 0}"],
        &[
            "{\"name\":\"Alan\",\"age\":3}",
            "{\"name\":\"Al\",\"age\":-3}",
            "{\"name\":\"Al\"}",
            "{\"age\":3,\"name\":\"Al\"}",
        ],
    );
    check(Format::JsonSchema(json!(true)), &["1", "{}", "[null]"], &["", "x"]);
    let list =
        json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "array", "items": {"$ref": "#/$defs/a%20b"}}}});
    check(Format::JsonSchema(list), &["[]", "[[],[[]]]"], &["[1]"]);
    // Draft 4 knows no const, and has its exclusiveMinimum beside minimum.
    let old = json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {
        "a": {"const": "<|e|>"}, "b": {"minimum": 1, "exclusiveMinimum": true, "type": "integer"}}});
    check(Format::JsonSchema(old), &["{\"a\":\"<|e|>\",\"b\":2}"], &["{\"a\":\"x\"}", "{\"b\":1}"]);
    let sized = json!({"type": "array", "items": {"type": "integer", "format": "int32"}});
    check(Format::JsonSchema(json!({"type": "number", "format": "int64"})), &["9007199254740993"], &["0.5"]);
    check(Format::JsonSchema(sized), &["[2147483647,-2147483648]"], &["[2147483648]", "[1.5]"]);
}

/// Keywords that say nothing, or say what has another spelling, are judged by their values.
#[test]
fn keywords_are_judged_by_what_they_say() {
    let property = |schema: Value| {
        Format::JsonSchema(json!({"properties": {"a": schema}, "required": ["a"], "additionalProperties": false}))
    };
    let record =
        json!({"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "integer"}});
    check(property(record), &[r#"{"a":{"x":1,"y":2}}"#], &[r#"{"a":{"x":"1"}}"#]);
    let names =
        json!({"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "integer"}});
    check(property(names), &[r#"{"a":{}}"#, r#"{"a":{"y":1,"x":2}}"#], &[r#"{"a":{"z":1}}"#, r#"{"a":{"x":null}}"#]);
    let optional = json!({"anyOf": [{"not": {}}, {"type": "string"}]});
    check(property(optional), &[r#"{"a":""}"#], &[r#"{"a":1}"#, "{}"]);
    check(property(json!({"not": {"type": "null"}})), &[r#"{"a":1}"#, r#"{"a":[null]}"#], &[r#"{"a":null}"#]);
    for format in ["password", "binary", "path", "url", "int64"] {
        check(property(json!({"type": "string", "format": format})), &[r#"{"a":"x y"}"#], &[r#"{"a":1}"#]);
    }
    check(property(json!({"type": "integer", "format": "date"})), &[r#"{"a":7}"#], &[r#"{"a":"7"}"#]);
    check(property(json!({"type": "string", "nullable": true})), &[r#"{"a":"x"}"#, r#"{"a":null}"#], &[r#"{"a":1}"#]);
    let pointer = property(json!({"type": "string", "format": "json-pointer"}));
    check(pointer, &[r#"{"a":""}"#, r#"{"a":"/x~1y/0"}"#], &[r#"{"a":"x"}"#, r#"{"a":"/~2"}"#]);
    let reference = property(json!({"type": "string", "format": "uri-reference"}));
    check(
        reference,
        &[r#"{"a":""}"#, r#"{"a":"../b?c#d"}"#, r#"{"a":"//h:1/p"}"#, r#"{"a":"urn:x:y"}"#, r##"{"a":"#f"}"##],
        &[r#"{"a":"a b"}"#, r#"{"a":"1a:b"}"#, r#"{"a":"%zz"}"#, r#"{"a":"\\\\x"}"#],
    );
}

/// A declared name is declared however it is spelled, and so is one that a pattern matches.
#[test]
fn names_are_told_apart_by_their_value() {
    let declared = json!({"properties": {"a": {"const": "foo"}, "é\n": {"const": 1}, "b": true}, "required": ["b"]});
    let bad =
        [r#"{"b":1,"\u0061":"BAD"}"#, r#"{"b":1,"\u00e9\n":2}"#, "{\"b\":1,\"é\\u000a\":2}", r#"{"b":1,"a":"foo"}"#];
    let good = [r#"{"a":"foo","b":1,"aa":2}"#, r#"{"b":1,"":2,"\n":3,"é":4,"\"":5}"#, r#"{"b":"\u001b"}"#];
    check(Format::JsonSchema(declared.clone()), &good, &bad);
    let nested = json!({"type": "object", "properties": {"x": {"type": "array", "items": declared}}});
    check(Format::JsonSchema(nested), &[r#"{"x":[{"b":1,"c":2}],"y":0}"#], &[r#"{"x":[{"b":1,"\u0061":"BAD"}]}"#]);
    let merged = json!({"allOf": [declared, {"properties": {"c": {"type": "null"}}}]});
    check(Format::JsonSchema(merged), &[r#"{"b":1,"c":null,"d":"\n"}"#], &bad);
    let pattern = json!({"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": {"type": "integer"}});
    check(Format::JsonSchema(pattern), &[r#"{"x":null,"y":1}"#], &[r#"{"\u0078":1}"#, r#"{"x":1}"#]);
}

#[test]
fn days_are_those_of_the_calendar() {
    let format = |name: &str| Format::JsonSchema(json!({"type": "string", "format": name}));
    check(
        format("date"),
        &["\"2024-02-29\"", "\"2000-02-29\"", "\"2023-02-28\"", "\"1999-12-31\""],
        &["\"2023-02-29\"", "\"1900-02-29\"", "\"2024-02-30\"", "\"2024-04-31\"", "\"24-01-01\""],
    );
    check(
        format("date-time"),
        &["\"2024-02-29T23:59:59.5Z\""],
        &["\"2023-02-29T00:00:00Z\"", "\"2024-01-01T23:59:60Z\""],
    );
    check(format("time"), &["\"23:59:59+01:00\""], &["\"23:59:60Z\"", "\"24:00:00Z\""]);
}

#[test]
fn regular_expressions() {
    check(Format::Regex("[a-c]+/x|é".into()), &["a/x", "abc/x", "é"], &["", "a", "a/xx", "d/x"]);
    check(Format::Regex("(?i)yes".into()), &["YES", "yes"], &["no"]);
}

#[test]
fn choices() {
    let choices = |list: &[&str]| Format::Choice(list.iter().map(|choice| (*choice).to_owned()).collect());
    let all = ["a", "ab", "\"q\"", "é\n\u{7f}", "<|e|>", ""];
    check(choices(&all), &all, &["b", "abc", "a "]);
    check(choices(&["yes"]), &["yes"], &["", "y"]);
}

#[test]
fn lark() {
    let grammar = "start: \"<\" %json {\"type\": \"integer\"} \">\" | /%json x/ // %json {\"not\": 1}\n# %json {";
    check(Format::Lark(grammar.into()), &["<12>", "%json x"], &["<a>", "<>"]);
}

/// llama.cpp's own grammar of JSON, in our words.
const JSON: &str = r##"
# What an answer may be.
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
    string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"##;

#[test]
fn ebnf() {
    let ebnf = |text: &str| Format::Ebnf(text.into());
    check(
        ebnf(JSON),
        &["{}", "{\"a\": [1, -2.5e3, {\"b\": null}]}", "{\n  \"é\\u00e9\": \"\"\n}", "{ }\n"],
        &["", "[]", "{\"a\"}", "{\"a\": 01}", "{\"a\": \"\t\"}"],
    );
    check(ebnf("root ::= \"ab\" \"x\" | [a] \"b\" \"y\""), &["abx", "aby"], &["ab", "abz"]);
    check(ebnf("root ::= . .?"), &["a", "\n", "éa"], &["", "abc"]);
    check(ebnf("root ::= [^a-c\\]]{2} | \"\\u00e9\\U0001F600\\x41\""), &["dé", "é\u{1f600}A"], &["da", "d]", "d"]);
    check(ebnf("root ::= \"a\"{2,} | \"b\"{2,3}"), &["aa", "aaaaa", "bb", "bbb"], &["a", "b", "bbbb"]);
    check(ebnf("root ::= (\"a\" | )\n  (\"b\"\n| \"c\" # or\n)+"), &["ab", "b", "cbc"], &["a", ""]);
    check(ebnf("root ::= \"(\" root \")\" | \"x\"*"), &["x", "", "((xx))"], &["(", "(x", "x)"]);
    check(ebnf("root ::= one\none::=\"1\" two\ntwo ::= \"2\" one?"), &["12", "1212"], &["1", "121"]);
}
