//! The grammars of formats, and how much of an answer is held back. The cases of formats stand in
//! `tests/data/dialects`.

use serde_json::{Map, Value, json};

use super::*;
use crate::chat::{
    Beginning, Event, FORMATS, Phase, Piece, Splitter, ToolEvent,
    dialect::{DIALECTS, Dialect, ToolFormat},
};

mod grammar;

/// A file of the cases of dialects.
fn data<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dialects").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The tools that all cases declare.
fn tools() -> Vec<Tool> {
    data::<Map<String, Value>>("tools.json").into_iter().map(|(name, schema)| Tool::new(name, schema)).collect()
}

/// Texts that are hard to write as they are.
fn texts() -> Vec<String> {
    data("texts.json")
}

#[test]
fn a_big_argument_takes_no_room() {
    for format in FORMATS.iter() {
        let thorough = ["hermes", "qwen_xml"].contains(&format.name);
        let content = "0123456789 \n".repeat(if thorough { 200_000 } else { 5_000 });
        let call = ToolCall {
            id: String::new(),
            name: "write_file".to_owned(),
            arguments: Map::from_iter([("path".to_owned(), json!("p")), ("content".to_owned(), json!(content))]),
        };
        let written = render_turn(format, &[call]);
        let beginning = Beginning { tools: &tools(), phase: Phase::Text, special_tokens: Default::default(), ids: 7 };
        let mut splitter = Splitter::new(alone(format), beginning);
        let mut json = String::new();
        let mut add = |events: Vec<Event>| {
            for event in events {
                if let Event::ToolCall(ToolEvent::Arguments { fragment, .. }) = event {
                    json += &fragment;
                }
            }
        };
        let mut rest = written.as_str();
        let mut most = 0;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.char_indices().nth(13).map_or(rest.len(), |(at, _)| at));
            add(splitter.push(Piece::Text(piece)));
            most = most.max(splitter.held());
            rest = after;
        }
        add(splitter.complete());
        let arguments: Value = serde_json::from_str(&json).unwrap();
        assert!(arguments["content"] == content && most < 1000, "{} holds {most} bytes", format.name);
    }
}

/// A dialect of this format alone, without thoughts.
fn alone(format: &'static ToolFormat) -> &'static Dialect {
    let by_marks = ["harmony", "functionary", "functionary_v2"].contains(&format.name);
    let row = DIALECTS.iter().find(|row| row.tools[0].name == format.name && !by_marks);
    let Dialect { program, drops, .. } = *row.copied().unwrap_or(&Dialect::PLAIN);
    let tools: &'static [&'static ToolFormat] = Box::leak(Box::new([format]));
    Box::leak(Box::new(Dialect { program, drops, reasoning: None, tools, ..Dialect::PLAIN }))
}
