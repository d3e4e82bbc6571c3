//! JSON and Python as models write them.

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
    check("[.5, 5., 007, +1, 1_000]", "[0.5,5.0,7,1,1000]");
    check("[1.50, -0, 1e5, 12345678901234567890123]", "[1.50,-0,1e5,12345678901234567890123]");
    check(r#"{"a": "</tool_call>", "b": "a, \"b\": c"}"#, r#"{"a":"</tool_call>","b":"a, \"b\": c"}"#);
    check(r#""a""#, r#""a""#);
}

#[test]
fn refuses() {
    for text in ["", "{", "{\"a\"", "{\"a\": }", "[1 2]", "hello", "{\"a\": 1 oops}", "\"open", "{a: 1}", "1-2"] {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(read(&"[".repeat(100_000)), None);
}
