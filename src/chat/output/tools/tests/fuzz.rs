//! Answers that no model would write, in every dialect: what formats write, cut, mixed and broken. Nothing panics,
//! arguments of calls that ended are JSON (the harness holds them to it), nothing depends on the pieces, and where an
//! answer is cut its beginning is read as one.

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

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
                text.push_str(format.envelope.open);
                text.push_str(&(format.render)(&call, random(2)));
                text.push_str(format.envelope.close);
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

fn rounds(count: impl Fn(usize) -> bool, seed: u64) -> usize {
    let mut random = generator(seed);
    let mut round = 0;
    while count(round) {
        let dialect: &'static Dialect = &DIALECTS[random(DIALECTS.len())];
        let text = answer(dialect, &mut random);
        let begun = [Piece::Text(&text[..text.floor_char_boundary(random(text.len() + 1))])];
        let part = read(dialect, &begun, &[], Splitter::finish);
        for whole in any_pieces(dialect, &[Piece::Text(&text)], &[]) {
            check_beginning(&part, &whole, &begun);
            let length = whole.text.len()
                + whole.reasoning.len()
                + whole.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
            // Escapes make JSON longer, and a family's mark may be a letter; but nothing is said twice.
            assert!(length <= 8 * text.len() + 64, "{}: {text:?} became {whole:?}", dialect.name);
        }
        round += 1;
    }
    round
}

#[test]
fn answers_that_no_model_would_write() {
    rounds(|round| round < 300, 1);
}

/// METTLE_FUZZ_SECONDS=600 cargo test --release --lib fuzz -- --ignored --nocapture
#[test]
#[ignore = "runs for as long as METTLE_FUZZ_SECONDS says"]
fn fuzz() {
    let seconds = std::env::var("METTLE_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let (end, seed) = (Instant::now() + Duration::from_secs(seconds), seconds ^ 0x5eed);
    let rounds = rounds(|_| Instant::now() < end, seed);
    println!("{rounds} answers in {seconds} s, each in seven ways to cut it");
}
