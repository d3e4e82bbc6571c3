//! JSON and Python as models write them.

use serde_json::{Value, json};

use super::*;

#[test]
fn mends() {
    let check = |text: &str, expected: &str| {
        let mut json = String::new();
        let input = Input::whole(text);
        now(copy(&input, &Shape::unknown(), &mut json)).unwrap_or_else(|_| panic!("{text}"));
        assert_eq!(json, expected, "{text}");
        serde_json::from_str::<Value>(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
    };
    check(r#"{"a": [1, -2.50, 1e3], "b": {}, "c": []}"#, r#"{"a":[1,-2.50,1e3],"b":{},"c":[]}"#);
    check("{'a': True, 'b': None, 'c': 'it\\'s'}", r#"{"a":true,"b":null,"c":"it's"}"#);
    check("{\"a\": \"x\ny\t\"}", r#"{"a":"x\ny\t"}"#);
    check(r#"{"a": "say "hi" now", "b": 1,}"#, r#"{"a":"say \"hi\" now","b":1}"#);
    check(r#"{"a": "\d+\.", "b": "\u00e9\ud83d\ude00\ud800\uZ"}"#, r#"{"a":"\\d+\\.","b":"é😀�\\uZ"}"#);
    check(r#"["\x41", '\x41\x1b\xe9', '\x4']"#, r#"["\\x41","A\u001bé","\\x4"]"#);
    check(r#"["a", "b" , ]"#, r#"["a","b"]"#);
    check("[.5, 5., 07.5, +1, 1_000, 0x1F]", "[0.5,5.0,7.5,1,1000,31]");
    check("[1.50, -0, 1e5, 12345678901234567890123]", "[1.50,-0,1e5,12345678901234567890123]");
    check(r#"{"a": "</tool_call>", "b": "a, \"b\": c"}"#, r#"{"a":"</tool_call>","b":"a, \"b\": c"}"#);
    check(r#""a""#, r#""a""#);
    check(r#"{"a": 1, "b": 2, "a": {"c": 3}}"#, r#"{"a":1,"b":2}"#);
    check(r#"{"day": 2024-01-05, "at": 12:30, "code": 007}"#, r#"{"day":"2024-01-05","at":"12:30","code":"007"}"#);
}

/// A value that is mended keeps its digits and its letters.
#[test]
fn values_do_not_change() {
    let check = |kind: &str, written: &str, expected: &str| {
        let schema = json!({"properties": {"v": {"type": kind}, "list": {"items": {"type": kind}}}});
        for (text, expected) in [
            (format!(r#"{{"v": {written}}}"#), format!(r#"{{"v":{expected}}}"#)),
            (format!(r#"{{"list": [{written}]}}"#), format!(r#"{{"list":[{expected}]}}"#)),
        ] {
            let mut json = String::new();
            let done = now(copy(&Input::whole(&text), &Shape::of(schema.clone()), &mut json));
            assert_eq!((done, json), (Ok(()), expected), "{text} as {kind}");
        }
    };
    for word in ["1.10", "00491701234567", "12345678901234567890123", "1e5", "5.00", "+1", "0x1F", "1e400", "True"] {
        check("string", word, &format!("{word:?}"));
    }
    check(
        "string",
        r#"{"v": 1.10, "n": [5.00, 12345678901234567890]}"#,
        r#""{\"v\":1.10,\"n\":[5.00,12345678901234567890]}""#,
    );
    for digits in ["12345678901234567890123", "1234567890123456789", "-9007199254740993", "7"] {
        check("integer", &format!("{digits:?}"), digits);
        check("integer", digits, digits);
        check("number", &format!("\"{digits}.10\""), &format!("{digits}.10"));
    }
    check("integer", "12345678901234567890.0", "12345678901234567890");
    check("integer", "1e3", "1000");
    check("integer", "0x1F", "31");
    check("integer", "2024-01-05", r#""2024-01-05""#);
    check("string", "2024-01-05", r#""2024-01-05""#);
}

#[test]
fn refuses() {
    for text in ["", "{", "{\"a\"", "{\"a\": }", "[1 2]", "hello", "{\"a\": 1 oops}", "\"open", "{a: 1}", "1-2"] {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(read(&"[".repeat(100_000)), None);
}
