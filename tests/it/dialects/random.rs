//! Answers that no model would write, in every dialect: what formats write, cut, mixed and broken. Nothing panics,
//! arguments of calls that ended are JSON (the reader holds them to it), nothing depends on the pieces, and where an
//! answer is cut its beginning is read as one. `fuzz/` is the long run of the same.

use mettle::chat::{DIALECTS, Dialect, FORMATS, Piece, ReasoningTags, Splitter, ToolCall, render_turn};
use serde_json::{Value, json};

use super::reading::{Reader, alone, check_beginning};

/// Numbers below a limit.
pub fn generator(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

/// Values that may end a format's markup too soon.
const VALUES: &[&str] = &[
    "",
    "Paris",
    "\n",
    "a \"quoted\" 'b'",
    "</tool_call>",
    "</parameter>",
    "<think>",
    "```",
    "{\"a\": [1, {}]}",
    "]}",
    "é\u{1f600}",
    "<|\"|>",
    "\\",
    "\\u12",
    "null",
    "007",
    "[TOOL_CALLS]",
    "</arg_value>",
    "🙂, \"b\": 1",
];

/// Text that is in no format.
const PROSE: &[&str] =
    &["Hello. ", "\n\n", "`", "```\n", "<", "{", "[", "\"", "é", " to=", ">>>all\n", "Action: ", "\u{0}", "5 < 6 "];

/// One answer of a dialect: calls, marks, thoughts and prose, then changed at random.
fn answer(dialect: &Dialect, random: &mut impl FnMut(usize) -> usize) -> String {
    let mut text = String::new();
    for _ in 0..1 + random(4) {
        match random(5) {
            0 => text.push_str(PROSE[random(PROSE.len())]),
            1 => text.push_str(VALUES[random(VALUES.len())]),
            2 => {
                let tags = dialect.reasoning.iter().flat_map(|tags| tags.open.iter().chain(tags.close));
                let marks: Vec<&str> =
                    tags.copied().chain(dialect.tools.iter().flat_map(|format| format.opens.iter().copied())).collect();
                text.push_str(marks.get(random(marks.len().max(1))).unwrap_or(&""));
            }
            _ if dialect.tools.is_empty() => {}
            _ => {
                let format = dialect.tools[random(dialect.tools.len())];
                let mut value = || json!(VALUES[random(VALUES.len())]);
                let arguments = match value() {
                    city if city == "Paris" => json!({"city": city, "days": 3, "metric": true}),
                    content => json!({"path": value(), "content": content, "tags": [value()]}),
                };
                let Value::Object(arguments) = arguments else { panic!("an object") };
                let name = ["get_weather", "write_file", "now", "undeclared"][random(4)].to_owned();
                let call = ToolCall { id: "call_1".to_owned(), name, arguments };
                text.push_str(&render_turn(format, &[call]));
            }
        }
    }
    changed(&text, random)
}

/// A few characters left out, doubled, or put elsewhere.
fn changed(text: &str, random: &mut impl FnMut(usize) -> usize) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..random(4) {
        if chars.is_empty() {
            break;
        }
        let (at, count) = (random(chars.len()), 1 + random(6));
        let piece: Vec<char> = chars[at..chars.len().min(at + count)].to_vec();
        match random(3) {
            0 => drop(chars.drain(at..at + piece.len())),
            1 => drop(chars.splice(at..at, piece)),
            _ => {
                let to = random(chars.len());
                chars.splice(to..to, piece);
            }
        }
    }
    if random(3) == 0 {
        chars.truncate(random(chars.len() + 1));
    }
    chars.into_iter().collect()
}

#[test]
fn answers_that_no_model_would_write() {
    let mut random = generator(1);
    for _ in 0..300 {
        let dialect = DIALECTS[random(DIALECTS.len())];
        let reader = Reader { tools: super::formats::tools()[..4].to_vec(), ..Reader::new(dialect) };
        let text = answer(dialect, &mut random);
        let begun = [Piece::Text(&text[..text.floor_char_boundary(random(text.len() + 1))])];
        let part = reader.read(&begun, &[], Splitter::finish);
        for whole in reader.any_pieces(&[Piece::Text(&text)], &[]) {
            check_beginning(&part, &whole, &begun);
            let arguments: usize = whole.calls.iter().map(|call| call.arguments.len()).sum();
            let length = whole.text.len() + whole.reasoning.len() + arguments;
            // Escapes make JSON longer, and a family's mark may be a letter; but nothing is emitted twice.
            assert!(length <= 8 * text.len() + 64, "{}: {text:?} became {whole:?}", dialect.name);
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
    for format in FORMATS.iter() {
        let dialect = Dialect { reasoning: Some(ReasoningTags::THINK), ..*alone(format) };
        let reader = Reader::new(Box::leak(Box::new(dialect)));
        for _ in 0..400 {
            let mut text = String::new();
            for _ in 0..1 + random(4) {
                let seed = seeds[random(seeds.len())];
                let chars: Vec<char> = seed.chars().collect();
                let from = if random(2) == 0 { 0 } else { random(chars.len()) };
                let to = if random(2) == 0 { chars.len() } else { from + random(chars.len() - from + 1) };
                text.extend(&chars[from..to.max(from)]);
            }
            let [whole, _] = reader.any_pieces(&[Piece::Text(&text)], &[]);
            // What is not markup is somewhere.
            if !text.contains('<') && !text.contains('{') {
                assert_eq!(whole.text, text);
            }
        }
    }
}
