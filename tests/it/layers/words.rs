//! Words that stay where they belong: crates in the layer that they are for, vendors' field names in the protocols,
//! and words that say nothing to a reader nowhere.

use super::{paths, source::Source};

/// A word of code and the only places it may stand in; places are beginnings of paths.
const CODE: &[(&str, &[&str])] = &[
    ("mlx_rs", &["src/mlx/", "crates/"]),
    ("mlx_sys", &["crates/"]),
    ("mlx_cpu", &["src/mlx/", "crates/"]),
    ("axum", &["src/server/"]),
    ("serde", &["src/protocol/", "src/hub/", "src/schema/", "src/checkpoint/"]),
    ("Serialize", &["src/protocol/", "src/hub/", "src/schema/"]),
    ("Deserialize", &["src/protocol/", "src/hub/", "src/schema/", "src/checkpoint/"]),
    ("println!", &["commands/", "crates/", "build.rs"]),
    ("print!", &["commands/", "crates/"]),
    ("eprintln!", &["commands/", "crates/"]),
    ("eprint!", &["commands/", "crates/"]),
    ("unsafe", &["src/mlx/array.rs", "crates/"]),
    ("tokenizers", &["src/chat/"]),
    ("minijinja", &["src/chat/"]),
    ("llguidance", &["src/chat/"]),
    ("todo!", &[]),
    ("unimplemented!", &[]),
    ("dbg!", &[]),
];

/// Paths of the standard library and the only places that may name them.
const PATHS: &[(&[&str], &[&str])] = &[(&["std", "env"], &["commands/", "crates/", "build.rs"])];

/// Vendors' names of a request's fields. `src/` has them in strings in `protocol` alone: elsewhere an error names
/// `chat::Field`, and each vendor says what that is called on its wire.
const VENDORS: &[&str] = &[
    "response_format",
    "tool_choice",
    "parallel_tool_calls",
    "enable_thinking",
    "thinking_budget",
    "reasoning_effort",
    "top_logprobs",
    "max_completion_tokens",
    "stream_options",
    "chat_template_kwargs",
    "continue_final_message",
    "add_generation_prompt",
    "guided_json",
    "structured_outputs",
];
/// Chat templates have variables of the same names.
const VENDOR_PLACES: &[&str] = &["src/protocol/", "src/chat/prompt/"];

/// Words that a reader has to guess at. `DESIGN.md` has the field's words for them.
const RIDDLES: &[&str] = &[
    "teach", "teaches", "taught", "lesson", "hear", "hears", "heard", "wish", "wishes", "buried", "telling", "unkept",
];
const RIDDLE_PLACES: &[&str] = &["src/", "commands/"];

/// Words in places where they do not belong.
pub fn words(source: &Source) -> Vec<String> {
    let is_in = |places: &[&str]| places.iter().any(|place| source.path.starts_with(place));
    let mut found = Vec::new();
    for (word, places) in CODE {
        if !is_in(places) && has(&source.product.code, word) {
            found.push(format!("{}: `{word}` belongs to {}", source.path, places.join(", ")));
        }
    }
    for (path, places) in PATHS {
        if !is_in(places) && source.paths.iter().any(|named| starts_with(&named.segments, path)) {
            found.push(format!("{}: `{}` belongs to {}", source.path, path.join("::"), places.join(", ")));
        }
    }
    if source.path.starts_with("src/") && !is_in(VENDOR_PLACES) {
        let named = VENDORS.iter().filter(|word| has(&source.product.strings, word));
        found.extend(
            named.map(|word| format!("{}: \"{word}\" is a vendor's word and belongs to protocol", source.path)),
        );
    }
    if is_in(RIDDLE_PLACES) {
        found.extend(
            riddles(&source.product.code)
                .into_iter()
                .map(|word| format!("{}: the name `{word}` is a riddle; DESIGN.md has a plain word", source.path)),
        );
    }
    found
}

fn starts_with(segments: &[String], path: &[&str]) -> bool {
    segments.len() >= path.len() && segments.iter().zip(path).all(|(segment, wanted)| segment == wanted)
}

/// Whether a text has a word as a whole.
pub fn has(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(paths::is_word) && !after.is_some_and(paths::is_word)
    })
}

/// The names that have a riddle as a part: `tool_lesson`, `ToolLesson`.
fn riddles(code: &str) -> Vec<&str> {
    let mut found: Vec<&str> = code.split(|c| !paths::is_word(c)).filter(|name| parts(name).any(is_riddle)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn is_riddle(part: &str) -> bool {
    RIDDLES.contains(&part.to_lowercase().as_str())
}

/// The words that a name is made of.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').flat_map(|part| {
        let starts = part.char_indices().filter(|(index, c)| *index == 0 || c.is_uppercase()).map(|(index, _)| index);
        let starts: Vec<usize> = starts.collect();
        let ends: Vec<usize> = starts.iter().skip(1).copied().chain([part.len()]).collect();
        starts.into_iter().zip(ends).map(|(start, end)| &part[start..end]).collect::<Vec<_>>()
    })
}
