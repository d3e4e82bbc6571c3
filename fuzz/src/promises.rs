//! What holds for every answer, whatever a model writes.

use std::sync::LazyLock;

use serde::de::IgnoredAny;

use crate::{
    answers::{Call, Case, Part, calls},
    literals,
};

/// Every mark that mettle could know: the text constants of dialects, of the splitter and of the formats.
pub static MARKS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let paths =
        ["src/chat/dialect", "src/chat/output/splitter", "src/chat/output/splitter.rs", "src/chat/output/tools"];
    paths.iter().flat_map(|path| literals::of(path)).filter(|mark| !mark.trim().is_empty()).collect()
});

/// What the whole answer is read as.
pub fn of_whole(case: &Case, parts: &[Part]) {
    let text = case.text();
    calls(parts).for_each(|call| is_json_only_if_ended(case, call));
    let said: String = parts.iter().filter_map(said).collect();
    assert!(is_part_of(said.chars(), &text), "said what is not there, or twice: {case:?} became {parts:?}");
    // Escapes make JSON longer, and a mark may be a letter.
    let written: usize = calls(parts).map(|call| call.arguments.len()).sum();
    assert!(written <= 8 * text.len() + 64, "{case:?} became {parts:?}");
    if calls(parts).next().is_none() {
        nothing_is_lost(case, &text, &said);
    }
}

/// What a beginning of the answer is read as, beside the whole: what is complete in it is right.
pub fn of_beginning(case: &Case, begun: &[Part], whole: &[Part]) {
    assert!(calls(begun).count() <= calls(whole).count(), "{case:?}: {begun:?} of {whole:?}");
    for (cut, call) in calls(begun).zip(calls(whole)) {
        is_json_only_if_ended(case, cut);
        assert_eq!((&cut.name, &cut.id), (&call.name, &call.id), "{case:?}");
        match cut.ended {
            true => assert_eq!(cut.arguments, call.arguments, "{case:?}"),
            false => assert!(call.arguments.starts_with(&cut.arguments), "{case:?}: {cut:?} of {call:?}"),
        }
    }
}

/// The arguments of a call that ended are an object; those of one that was cut cannot be taken for one.
fn is_json_only_if_ended(case: &Case, call: &Call) {
    // Unlike a value, this takes numbers that no double holds.
    let is_json = serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
    assert_eq!(is_json && call.arguments.starts_with('{'), call.ended, "{case:?}: {call:?}");
}

/// An answer without calls is said, but for marks and space around them.
fn nothing_is_lost(case: &Case, text: &str, said: &str) {
    // These leave out what stands in their messages' headers.
    let has_headers = ["harmony", "muse", "inkling"].contains(&case.dialect.name);
    if has_headers || case.has_special_tokens() {
        return;
    }
    let mut is_mark: Vec<bool> = text.bytes().map(|byte| byte.is_ascii_whitespace()).collect();
    let mut marked = false;
    for (at, _) in text.char_indices() {
        for mark in marks_at(&text[at..]) {
            is_mark[at..at + mark.len()].fill(true);
            marked = true;
        }
    }
    let words = text.char_indices().filter(|(at, char)| !is_mark[*at] && !char.is_whitespace()).map(|(_, char)| char);
    assert!(is_part_of(words, said), "{case:?} became {said:?}");
    match case.begins_thinking() {
        _ if marked => {}
        true => assert_eq!(said, text.trim(), "{case:?}"),
        // What ends the answer may be a mark, and white space before it a part of that.
        false if case.complete => assert_eq!(said.trim_end(), text.trim_end(), "{case:?}"),
        false => assert_eq!(said, text, "{case:?}"),
    }
}

/// The marks that a text begins with.
fn marks_at(text: &str) -> impl Iterator<Item = &'static str> {
    static BY_FIRST_BYTE: LazyLock<[Vec<&str>; 256]> = LazyLock::new(|| {
        let mut marks = [const { Vec::new() }; 256];
        MARKS.iter().for_each(|mark| marks[usize::from(mark.as_bytes()[0])].push(mark.as_str()));
        marks
    });
    let first = usize::from(text.as_bytes()[0]);
    BY_FIRST_BYTE[first].iter().copied().filter(|mark| text.starts_with(mark))
}

fn said(part: &Part) -> Option<&str> {
    match part {
        Part::Reasoning(text) | Part::Text(text) => Some(text),
        Part::Call(_) => None,
    }
}

/// Whether these characters are all in a text, in this order.
fn is_part_of(mut part: impl Iterator<Item = char>, text: &str) -> bool {
    let mut rest = text.chars();
    part.all(|char| rest.any(|other| other == char))
}
