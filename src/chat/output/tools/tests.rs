//! Every format's cases, read in any pieces and cut at every character. A file of cases for each format.

use serde_json::{Map, Value, json};

use super::{FORMATS, Format};
use crate::chat::{
    Dialect, Event, Phase, Piece, Splitter, Tool, ToolCall, ToolEvent,
    dialect::{CallIds, DIALECTS, Tags},
    output::splitter::Answer,
};

mod apertus;
mod apriel;
mod calling_tool;
mod cohere;
mod command_r;
mod counts;
mod deepseek;
mod firefunction;
mod function_tag;
mod functionary;
mod fuzz;
mod gemma4;
mod gigachat;
mod grammar;
mod granite;
mod harmony;
mod hermes;
mod json;
mod kimi;
mod llama;
mod minimax_m1;
mod minimax_m3;
mod mistral;
mod nemotron_nano;
mod others;
mod pairs;
mod pythonic;
mod qwen_xml;
mod seed_oss;
mod solar;
mod tagged;
mod templates;
mod written;
mod xlam;

/// What an answer consists of, put together again.
#[derive(Debug, Clone, Default, PartialEq)]
struct Whole {
    reasoning: String,
    text: String,
    calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq)]
struct Call {
    name: String,
    id: String,
    arguments: String,
    ended: bool,
}

/// The tools that all cases declare.
fn tools() -> Vec<Tool> {
    let tool = |name: &str, parameters: Value| Tool::new(name, parameters);
    vec![
        tool(
            "get_weather",
            json!({"type": "object", "required": ["city"], "properties": {
                "city": {"type": "string"}, "days": {"type": "integer"}, "metric": {"type": "boolean"},
                "limit": {"type": "number"}, "unit": {"type": "string", "enum": ["c", "f"]}}}),
        ),
        tool(
            "write_file",
            json!({"type": "object", "required": ["path", "content"], "properties": {
                "path": {"type": "string"}, "content": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "options": {"type": "object", "properties": {"mode": {"type": "integer"}}}}}),
        ),
        // Both a description and parameters may be missing.
        Tool { given: Vec::new(), ..Tool::new("now", json!({})) },
        tool("mcp.search-all", json!({"type": "object", "properties": {"q": {"type": ["string", "null"]}, "any": {}}})),
    ]
}

/// A tool that takes code.
fn interpreter() -> Tool {
    let parameters = json!({"type": "object", "properties": {"code": {"type": "string"}}});
    Tool::new("python", parameters)
}

/// How an answer ends: [`Splitter::finish`] or [`Splitter::complete`].
type End = fn(&mut Splitter) -> Vec<Event>;

/// Reads pieces. Text between `⟪` and `⟫` in a case is a special token of that name.
fn read(dialect: &'static Dialect, pieces: &[Piece<'_>], specials: &[String], end: End) -> Whole {
    read_with(dialect, &tools(), pieces, specials, end)
}

/// [`read`], with other tools.
fn read_with(dialect: &'static Dialect, tools: &[Tool], pieces: &[Piece<'_>], specials: &[String], end: End) -> Whole {
    let starts =
        if dialect.reasoning.as_ref().is_some_and(|tags| tags.always) { Phase::Reasoning } else { Phase::Text };
    let mut splitter = Splitter::new(dialect, tools, starts, specials.iter().cloned(), 7);
    let mut whole = Whole::default();
    for piece in pieces {
        splitter.push(*piece).into_iter().for_each(|event| whole.add(event));
    }
    end(&mut splitter).into_iter().for_each(|event| whole.add(event));
    whole
}

impl Whole {
    fn add(&mut self, event: Event) {
        match event {
            Event::Reasoning(text) => self.reasoning += &text,
            Event::Text(text) => self.text += &text,
            Event::ToolCall(ToolEvent::Begun { index, id, name }) => {
                assert_eq!(index, self.calls.len(), "calls come one after the other");
                assert!(self.calls.last().is_none_or(|call| call.ended), "one call at a time");
                self.calls.push(Call { name, id, arguments: String::new(), ended: false });
            }
            Event::ToolCall(ToolEvent::Arguments { index, fragment }) => {
                assert!(!fragment.is_empty() && index + 1 == self.calls.len());
                self.calls[index].arguments += &fragment;
            }
            Event::ToolCall(ToolEvent::Ended { index }) => {
                let call = &mut self.calls[index];
                call.ended = true;
                let arguments: Result<Value, _> = serde_json::from_str(&call.arguments);
                assert!(arguments.is_ok_and(|arguments| arguments.is_object()), "{:?}", call.arguments);
            }
            other => panic!("a splitter does not say {other:?}"),
        }
    }
}

/// The pieces of a case, special tokens told apart.
fn pieces(case: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for (index, part) in case.split('⟪').enumerate() {
        let (special, text) = if index == 0 { ("", part) } else { part.split_once('⟫').expect("a closing ⟫") };
        pieces.extend((!special.is_empty()).then_some(Piece::Special(special)));
        pieces.extend((!text.is_empty()).then_some(Piece::Text(text)));
    }
    pieces
}

fn specials(pieces: &[Piece<'_>]) -> Vec<String> {
    let name = |piece: &Piece<'_>| match piece {
        Piece::Special(name) => Some((*name).to_owned()),
        Piece::Text(_) => None,
    };
    pieces.iter().filter_map(name).collect()
}

/// Cuts the text of pieces further, at places that `random` chooses.
fn cut<'a>(pieces: &[Piece<'a>], mut random: impl FnMut(usize) -> usize) -> Vec<Piece<'a>> {
    let mut cut = Vec::new();
    for piece in pieces {
        let Piece::Text(mut text) = *piece else {
            cut.push(*piece);
            continue;
        };
        while !text.is_empty() {
            let count = 1 + random(6);
            let at = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
            cut.push(Piece::Text(&text[..at]));
            text = &text[at..];
        }
    }
    cut
}

/// The first characters of pieces; a special token counts as one.
fn first<'a>(pieces: &[Piece<'a>], mut count: usize) -> Vec<Piece<'a>> {
    let mut taken = Vec::new();
    for piece in pieces {
        match *piece {
            _ if count == 0 => break,
            Piece::Text(text) => {
                let at = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
                count -= text[..at].chars().count();
                taken.push(Piece::Text(&text[..at]));
            }
            special => {
                count -= 1;
                taken.push(special);
            }
        }
    }
    taken
}

fn generator(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

/// Reads in any pieces the same: what it is where it was cut, and where the model ended it.
fn any_pieces(dialect: &'static Dialect, case: &[Piece<'_>], specials: &[String]) -> [Whole; 2] {
    [Splitter::finish as End, Splitter::complete].map(|end| {
        let whole = read(dialect, case, specials, end);
        for seed in 0..6 {
            let mut random = generator(seed);
            let pieces = cut(case, |below| if seed == 0 { 0 } else { random(below) });
            assert_eq!(read(dialect, &pieces, specials, end), whole, "in other pieces: {case:?}");
        }
        for call in whole.calls.iter().filter(|call| !call.ended) {
            let parsed: Result<Value, _> = serde_json::from_str(&call.arguments);
            assert!(parsed.is_err(), "cut, but complete: {call:?} of {case:?}");
        }
        whole
    })
}

/// A case, whole, in any pieces, and cut at every character: `calls` are names and arguments.
fn check_dialect(dialect: &'static Dialect, case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]) {
    if counts::counted(dialect, case) {
        return;
    }
    let case = pieces(case);
    let specials = specials(&case);
    let [_, whole] = any_pieces(dialect, &case, &specials);
    let made: Vec<(&str, Value)> = whole
        .calls
        .iter()
        .map(|call| {
            let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::from(call.arguments.as_str()));
            (call.name.as_str(), arguments)
        })
        .collect();
    assert_eq!((whole.reasoning.as_str(), whole.text.as_str(), made.as_slice()), (reasoning, text, calls), "{case:?}");
    let length: usize =
        case.iter().map(|piece| if let Piece::Text(text) = piece { text.chars().count() } else { 1 }).sum();
    for count in 0..length {
        let begun = first(&case, count);
        let [part, _] = any_pieces(dialect, &begun, &specials);
        check_beginning(&part, &whole, &begun);
    }
    check_mutations(dialect, &case, &specials);
}

/// What is read where an answer was cut is a beginning of what the whole is read as.
fn check_beginning(part: &Whole, whole: &Whole, begun: &[Piece<'_>]) {
    for (cut, call) in part.calls.iter().zip(&whole.calls) {
        // What is complete is right, and what is not cannot be taken for complete.
        assert_eq!((&cut.name, &cut.id), (&call.name, &call.id), "{begun:?}");
        match cut.ended {
            true => assert_eq!(cut.arguments, call.arguments, "{begun:?}"),
            false => {
                let parsed: Result<Value, _> = serde_json::from_str(&cut.arguments);
                assert!(parsed.is_err(), "{:?} of {begun:?}", cut.arguments);
                assert!(call.arguments.starts_with(&cut.arguments), "{:?} of {begun:?}", cut.arguments);
            }
        }
    }
    assert!(part.calls.len() <= whole.calls.len(), "{begun:?}");
}

/// Parts of a case dropped, doubled and put elsewhere: nothing panics, nothing depends on the pieces, and where it is
/// cut it is a beginning.
fn check_mutations(dialect: &'static Dialect, case: &[Piece<'_>], specials: &[String]) {
    let mut characters = Vec::new();
    for piece in case {
        match *piece {
            Piece::Text(text) => {
                characters.extend(text.char_indices().map(|(at, char)| Piece::Text(&text[at..at + char.len_utf8()])));
            }
            special => characters.push(special),
        }
    }
    if characters.is_empty() {
        return;
    }
    let mut random = generator(characters.len() as u64);
    for _ in 0..4 {
        let mut mutated = Vec::new();
        for _ in 0..1 + random(3) {
            let from = if random(2) == 0 { 0 } else { random(characters.len()) };
            let to = if random(2) == 0 { characters.len() } else { from + random(characters.len() - from + 1) };
            mutated.extend_from_slice(&characters[from..to]);
        }
        let texts: Vec<(bool, String)> = mutated.iter().fold(Vec::new(), |mut texts, piece| {
            match (piece, texts.last_mut()) {
                (Piece::Text(more), Some((false, text))) => text.push_str(more),
                (Piece::Text(text), _) => texts.push((false, (*text).to_owned())),
                (Piece::Special(name), _) => texts.push((true, (*name).to_owned())),
            }
            texts
        });
        let pieces =
            texts.iter().map(|(special, text)| if *special { Piece::Special(text) } else { Piece::Text(text) });
        let pieces = pieces.collect::<Vec<_>>();
        let wholes = any_pieces(dialect, &pieces, specials);
        for _ in 0..4 {
            let begun = first(&pieces, random(mutated.len() + 1));
            let part = read(dialect, &begun, specials, Splitter::finish);
            wholes.iter().for_each(|whole| check_beginning(&part, whole, &begun));
        }
    }
}

/// A dialect of this format alone, without thoughts. Answers are read as those of the row that has it first.
fn dialect(format: &'static Format) -> &'static Dialect {
    // These are read by their marks, too, in the dialect auto or behind text.
    let by_marks = ["harmony", "functionary", "functionary_v2"].contains(&format.name);
    let program = DIALECTS.iter().find(|row| row.tools[0].name == format.name && !by_marks).map(|row| row.program);
    let row = FORMATS.iter().find(|own| own.name == format.name).expect("a format has a row in FORMATS");
    let tools: &'static [&'static Format] = Box::leak(Box::new([*row]));
    Box::leak(Box::new(Dialect {
        name: "test",
        model_types: &[],
        template_marks: &[],
        stop_tokens: &[],
        program: program.unwrap_or(Answer::by_marks),
        reasoning: None,
        tools,
        call_ids: CallIds::Long,
        turns: None,
    }))
}

/// A dialect of the table.
fn named(name: &str) -> &'static Dialect {
    DIALECTS.iter().find(|row| row.name == name).expect("a dialect of this name")
}

/// A dialect of this format with `<think>` tags.
fn thinking(format: &'static Format, calls_inside: bool) -> &'static Dialect {
    let tags = Tags { open: &["<think>"], close: &["</think>"], always: false, calls_inside, again: false };
    Box::leak(Box::new(Dialect { reasoning: Some(tags), ..*dialect(format) }))
}

/// [`check_dialect`] for a format without thoughts.
fn check(format: &'static Format, case: &str, text: &str, calls: &[(&str, Value)]) {
    check_dialect(dialect(format), case, "", text, calls);
}

/// Texts that are hard to write as they are.
const TEXTS: [&str; 14] = [
    "",
    "plain",
    "a \"quoted\" 'text'",
    "line\nline\n",
    "</tool_call>",
    "{\"a\": 1}",
    "5",
    "true",
    "null",
    "tab\t\\ \\n \u{1f600} é",
    "if a < b && c > d:\n    return [1, 2]",
    "<think>no</think>",
    "```\ncode\n```",
    "  spaced  ",
];

/// What a format writes, it reads: hostile values of every type, alone and in parallel.
fn check_rendered(format: &'static Format) {
    if counts::counting() {
        return;
    }
    let call = |name: &str, arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        ToolCall { id: "call_1".to_owned(), name: name.to_owned(), arguments }
    };
    for (index, text) in TEXTS.iter().enumerate() {
        let file = call(
            "write_file",
            json!({"path": format!("/tmp/{index}"), "content": text, "tags": [text, ""], "options": {"mode": 420}}),
        );
        let weather = call("get_weather", json!({"city": text, "days": 3, "metric": index % 2 == 0, "limit": 1.5}));
        let none = call("now", json!({}));
        for calls in [vec![&file], vec![&weather, &none], vec![&none], vec![&none, &file, &weather]] {
            let written: Vec<String> =
                calls.iter().enumerate().map(|(index, call)| (format.render)(call, index)).collect();
            let envelope = &format.envelope;
            let written = format!("{}{}{}", envelope.open, written.join(envelope.between), envelope.close);
            let [_, whole] = any_pieces(dialect(format), &[Piece::Text(&written)], &[]);
            let made: Vec<(String, Value)> = whole
                .calls
                .iter()
                .map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).unwrap()))
                .collect();
            let expected: Vec<(String, Value)> =
                calls.iter().map(|call| (call.name.clone(), Value::Object(call.arguments.clone()))).collect();
            assert_eq!((made, whole.text.as_str()), (expected, ""), "{}: {written}", format.name);
        }
    }
}

/// Beginnings, ends and middles of cases, mixed and cut: nothing panics, nothing depends on the pieces.
#[test]
fn random_mutations() {
    let seeds = [
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": 3}}\n</tool_call>",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
        "<think>so</think>",
        "Hello `<tool_call>` ```x\n",
        "</parameter>",
        "<function=",
        "{\"name\": \"now\"}",
        "\\u12",
        "\"",
        "é",
    ];
    let mut random = generator(42);
    for format in FORMATS {
        let dialect = thinking(format, true);
        for _ in 0..400 {
            let mut text = String::new();
            for _ in 0..1 + random(4) {
                let seed = seeds[random(seeds.len())];
                let chars: Vec<char> = seed.chars().collect();
                let from = if random(2) == 0 { 0 } else { random(chars.len()) };
                let to = if random(2) == 0 { chars.len() } else { from + random(chars.len() - from + 1) };
                text.extend(&chars[from..to.max(from)]);
            }
            let [whole, _] = any_pieces(dialect, &[Piece::Text(&text)], &[]);
            // What is not markup is somewhere.
            if !text.contains('<') && !text.contains('{') {
                assert_eq!(whole.text, text);
            }
        }
    }
}

#[test]
fn a_big_argument_takes_no_room() {
    for format in FORMATS {
        let thorough = ["hermes", "qwen_xml"].contains(&format.name);
        let content = "0123456789 \n".repeat(if thorough { 200_000 } else { 5_000 });
        let call = ToolCall {
            id: String::new(),
            name: "write_file".to_owned(),
            arguments: Map::from_iter([("path".to_owned(), json!("p")), ("content".to_owned(), json!(content))]),
        };
        let envelope = &format.envelope;
        let written = format!("{}{}{}", envelope.open, (format.render)(&call, 0), envelope.close);
        let mut splitter = Splitter::new(dialect(format), &tools(), Phase::Text, [], 7);
        let mut whole = Whole::default();
        let (mut rest, mut most) = (written.as_str(), 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.char_indices().nth(13).map_or(rest.len(), |(at, _)| at));
            splitter.push(Piece::Text(piece)).into_iter().for_each(|event| whole.add(event));
            most = most.max(splitter.held());
            rest = after;
        }
        splitter.complete().into_iter().for_each(|event| whole.add(event));
        let arguments: Value = serde_json::from_str(&whole.calls[0].arguments).unwrap();
        assert!(arguments["content"] == content && most < 1000, "{} holds {most} bytes", format.name);
    }
}
