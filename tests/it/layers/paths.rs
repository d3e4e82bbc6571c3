//! The paths that a file names: those of its `use` declarations, groups taken apart, and those within its code.

use super::mask;

/// A path as it is written, in segments. `use a::{b::c as d}` gives `a, b, c`, called `d` here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub segments: Vec<String>,
    /// What a `use` calls it; `None` for a path within the code.
    pub alias: Option<String>,
}

/// All paths of code without comments and strings.
pub fn paths(code: &str) -> Vec<Named> {
    let mut found = Vec::new();
    let mut uses = Vec::new();
    for start in words(code, "use") {
        let Some(length) = code[start..].find(';') else { continue };
        uses.push(start..start + length);
        tree(&code[start + 3..start + length], &[], &mut found);
    }
    found.extend(inline(&mask::without(code, &uses)));
    found
}

/// Where a word stands as a whole, followed by a space.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(start, _)| start).filter(move |start| {
        let before = code[..*start].chars().next_back();
        let after = code[start + word.len()..].chars().next();
        !before.is_some_and(is_word) && after.is_some_and(char::is_whitespace)
    })
}

/// The paths of a `use` tree below a prefix.
fn tree(text: &str, prefix: &[String], found: &mut Vec<Named>) {
    let text = text.trim();
    if let Some(open) = text.find('{') {
        let prefix = [prefix, &segments(&text[..open])].concat();
        let inner = &text[open + 1..text.rfind('}').unwrap_or(text.len())];
        split(inner).into_iter().for_each(|part| tree(part, &prefix, found));
        return;
    }
    let (path, alias) = text.split_once(" as ").map_or((text, None), |(path, alias)| (path, Some(alias.trim())));
    let mut segments = [prefix, &segments(path)].concat();
    if segments.last().is_some_and(|last| last == "self") && segments.len() > 1 {
        segments.pop();
    }
    if let Some(last) = segments.last() {
        let alias = Some(alias.unwrap_or(last).to_owned());
        found.push(Named { segments, alias });
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// Parts between the commas that stand in no bracket.
pub fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    let mut before = ' ';
    for (index, character) in text.char_indices() {
        match character {
            '(' | '[' | '{' | '<' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
        before = character;
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// Paths of at least two segments outside `use` declarations.
fn inline(code: &str) -> Vec<Named> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(|c: char| is_word(c) && !c.is_ascii_digit()) {
        let begin = rest[..start].chars().next_back();
        let (segments, length) = path(&rest[start..]);
        if segments.len() > 1 && begin != Some(':') {
            found.push(Named { segments, alias: None });
        }
        rest = &rest[start + length..];
    }
    found
}

/// The path that the text starts with, and its length.
fn path(text: &str) -> (Vec<String>, usize) {
    let mut segments = Vec::new();
    let mut at = 0;
    loop {
        let length = text[at..].find(|c| !is_word(c)).unwrap_or(text.len() - at);
        segments.push(text[at..at + length].to_owned());
        at += length;
        match text[at..].strip_prefix("::") {
            Some(rest) if rest.starts_with(is_word) => at += 2,
            _ => return (segments, at),
        }
    }
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
