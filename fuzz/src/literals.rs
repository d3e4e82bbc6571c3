//! The string literals of Rust sources: the marks that mettle knows, and the cases that its tests have recorded.

use std::{collections::BTreeSet, fs, path::Path};

/// Those of a file or folder of the repository, without what is only for its tests.
pub fn of(path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path), &mut found);
    found
}

fn collect(path: &Path, found: &mut BTreeSet<String>) {
    if !path.is_dir() {
        found.extend(literals(&fs::read_to_string(path).expect("a file of Rust")));
        return;
    }
    for entry in fs::read_dir(path).expect("a folder that can be read") {
        let path = entry.expect("an entry").path();
        if !path.file_stem().expect("a name").to_string_lossy().ends_with("tests") {
            collect(&path, found);
        }
    }
}

fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/', 'r']) {
        rest = &rest[at..];
        rest = if rest.starts_with("//") {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(text) = rest.strip_prefix('"') {
            let end = end_of_string(text);
            found.push(unescaped(&text[..end]));
            &text[end + 1..]
        } else if let Some((hashes, text)) = raw(rest) {
            let (text, after) = text.split_once(&format!("\"{hashes}")).expect("the end of a raw string");
            found.push(text.to_owned());
            after
        } else {
            &rest[char_literal(rest).max(1)..]
        };
    }
    found
}

/// The hashes of a raw string, and what follows its opening quote.
fn raw(source: &str) -> Option<(&str, &str)> {
    let text = source.strip_prefix('r')?;
    let hashes = text.len() - text.trim_start_matches('#').len();
    Some((&text[..hashes], text[hashes..].strip_prefix('"')?))
}

/// Where the quote stands that ends a string.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|char| {
        let ends = char == '"' && !escaped;
        escaped = char == '\\' && !escaped;
        ends
    });
    end.expect("the end of a string")
}

/// The length of a character in quotes; 0 where it is none.
fn char_literal(source: &str) -> usize {
    let Some(text) = source.strip_prefix('\'') else { return 0 };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), Some(escaped)) => {
            let start = 1 + escaped.len_utf8();
            text[start..].find('\'').map_or(0, |end| 1 + start + end + 1)
        }
        (Some(char), Some('\'')) => char.len_utf8() + 2,
        _ => 0,
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let escape = after.chars().next().expect("an escape");
        rest = &after[escape.len_utf8()..];
        match escape {
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            '0' => out.push('\0'),
            '\n' => rest = rest.trim_start(),
            'x' | 'u' => {
                let code = if escape == 'x' { &rest[..2] } else { &rest[1..rest.find('}').expect("a code point")] };
                out.extend(u32::from_str_radix(code, 16).ok().and_then(char::from_u32));
                rest = &rest[code.len() + if escape == 'x' { 0 } else { 2 }..];
            }
            other => out.push(other),
        }
    }
    out + rest
}
