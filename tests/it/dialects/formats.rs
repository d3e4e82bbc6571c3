//! What formats write: as the families' own chat templates do, and so that it is read again.

use std::path::Path;

use mettle::chat::{Dialect, FORMATS, Piece, Tool, ToolCall, render_turn};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    cases::File,
    reading::{Reader, alone, format},
};

/// A file beside the cases.
fn data<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dialects").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file of data")).expect("JSON")
}

/// The tools that cases declare: the first four, where a file does not say others.
pub fn tools() -> Vec<Tool> {
    data::<Map<String, Value>>("tools.json").into_iter().map(|(name, schema)| Tool::new(name, schema)).collect()
}

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

/// The first `count` of two calls, as the format of a file writes them.
pub fn two_calls(file: &File, count: usize) -> String {
    let weather = json!({"city": "Île \"x\"\n<a>", "days": 3, "metric": true, "limit": 1.5});
    let calls = [call("abc123def", "get_weather", weather), call("abc123deg", "now", json!({}))];
    render_turn(format(file.setting("format").expect("a format")), &calls[..count])
}

/// What a format writes, it reads: hostile values of every type, alone and in parallel.
#[test]
fn formats_read_what_they_write() {
    // Texts that are hard to write as they are.
    let texts: Vec<String> = data("texts.json");
    for format in FORMATS.iter() {
        let reader = Reader { tools: tools()[..4].to_vec(), ..Reader::new(alone(format)) };
        for (index, text) in texts.iter().enumerate() {
            let path = format!("/tmp/{index}");
            let options = json!({"mode": 420});
            let file = json!({"path": path, "content": text, "tags": [text, ""], "options": options});
            let file = call("call_1", "write_file", file);
            let weather = json!({"city": text, "days": 3, "metric": index % 2 == 0, "limit": 1.5});
            let weather = call("call_1", "get_weather", weather);
            let none = call("call_1", "now", json!({}));
            for calls in [
                vec![file.clone()],
                vec![weather.clone(), none.clone()],
                vec![none.clone()],
                vec![none.clone(), file.clone(), weather.clone()],
            ] {
                let written = render_turn(format, &calls);
                let [_, whole] = reader.any_pieces(&[Piece::Text(&written)], &[]);
                let made: Vec<(String, Value)> = whole
                    .calls
                    .iter()
                    .map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).expect("JSON")))
                    .collect();
                let expected: Vec<(String, Value)> =
                    calls.iter().map(|call| (call.name.clone(), Value::Object(call.arguments.clone()))).collect();
                assert_eq!((made, whole.text.as_str()), (expected, ""), "{}: {written}", format.name);
            }
        }
    }
}

fn turns() -> [Vec<ToolCall>; 3] {
    let content = "if a < b && c:\n    x = 'é'\n";
    let file =
        json!({"path": "a/b \"c\".txt", "content": content, "tags": ["it's", "</x>", ""], "options": {"mode": 420}});
    let weather = json!({"city": "Paris", "days": 3, "metric": true, "limit": 1.5, "unit": "c"});
    [
        vec![call("call_0", "write_file", file)],
        vec![call("call_0", "get_weather", weather), call("call_1", "now", json!({}))],
        vec![call("call_0", "now", json!({}))],
    ]
}

/// What jinja2 3.1 makes of templates for a user's "Hi" and an assistant's calls, from behind the "Hi", by template:
/// with transformers' settings and its `tojson`.
#[test]
fn formats_write_as_templates_do() {
    let rendered: Map<String, Value> = data("rendered.json");
    for (template, golden) in &rendered {
        let name = golden["format"].as_str().expect("a format's name");
        for (calls, turn) in turns().iter().zip(golden["turns"].as_array().expect("turns")) {
            let Some(turn) = turn.as_str() else { continue };
            let written = render_turn(format(name), calls);
            assert!(turn.contains(&written), "{template} writes {turn:?}, {name} {written:?}");
        }
    }
}

/// Cut in its name, a built-in tool's call is no code of an interpreter.
#[test]
fn a_name_that_was_cut() {
    let reader = Reader::new(Dialect::named("llama3").expect("a dialect"));
    let called = |text: &str| {
        let whole = reader.read(&[Piece::Text(text)], &[], mettle::chat::Splitter::finish);
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
    assert_eq!(called("<|python_tag|>print(").0.as_deref(), Some("code_interpreter"));
}
