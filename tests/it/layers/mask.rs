//! Rust text with parts of it blanked, so that rules can look for words without being fooled: code alone, strings alone,
//! and either of them without the items that only tests see. Blanked bytes become spaces, so places stay what they are.

use std::ops::Range;

/// One file's text, in the forms that the rules ask for.
pub struct Masked {
    /// Without comments and without what stands in strings.
    pub code: String,
    /// What stands in strings, and nothing else.
    pub strings: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Text,
}

/// Tells code, comments and strings of a file apart.
pub fn mask(text: &str) -> Masked {
    let kinds = kinds(text.as_bytes());
    let only = |wanted: Kind| {
        let bytes = text.bytes().zip(&kinds).map(|(byte, kind)| match byte {
            b'\n' => b'\n',
            _ if *kind == wanted => byte,
            _ => b' ',
        });
        String::from_utf8(bytes.collect()).expect("whole characters were blanked")
    };
    Masked { code: only(Kind::Code), strings: only(Kind::Text) }
}

/// What each byte belongs to.
fn kinds(text: &[u8]) -> Vec<Kind> {
    let mut kinds = vec![Kind::Code; text.len()];
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(length) = comment(rest) {
            kinds[at..at + length].fill(Kind::Comment);
            at += length;
        } else if let Some((open, close, length)) = string(text, at) {
            kinds[at + open..at + length - close].fill(Kind::Text);
            at += length;
        } else {
            at += 1;
        }
    }
    kinds
}

/// The length of the comment that starts here.
fn comment(rest: &[u8]) -> Option<usize> {
    if rest.starts_with(b"//") {
        return Some(rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with(b"/*") {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    Some(rest.len())
}

/// The string or character that starts at `at`: bytes before its contents, bytes after them, and its whole length.
fn string(text: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    let rest = &text[at..];
    match rest[0] {
        b'"' => Some((1, 1, quoted(rest, b'"'))),
        b'\'' if is_character(rest) => Some((1, 1, quoted(rest, b'\''))),
        b'r' if at == 0 || !is_word(text[at - 1]) || is_raw_prefix(text, at) => raw(rest),
        _ => None,
    }
}

/// Whether the `r` at `at` follows the `b` or `c` of a raw byte string.
fn is_raw_prefix(text: &[u8], at: usize) -> bool {
    matches!(text[at - 1], b'b' | b'c') && (at < 2 || !is_word(text[at - 2]))
}

fn raw(rest: &[u8]) -> Option<(usize, usize, usize)> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let open = hashes + 2;
    let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let found = rest[open..].windows(end.len()).position(|window| window == end);
    let length = found.map_or(rest.len(), |position| open + position + end.len());
    Some((open, (hashes + 1).min(length - open), length))
}

/// The length of a string with escapes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Whether a quote begins a character, and not a lifetime.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(first) => {
            let width = match first {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            rest.get(1 + width) == Some(&b'\'')
        }
        None => false,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where items stand that only tests see, in code without comments and strings.
pub fn test_items(code: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, _) in code.match_indices(MARK) {
        if found.last().is_none_or(|last| last.end <= start) {
            found.push(start..item_end(code, start + MARK.len()));
        }
    }
    found
}

/// The end of the item that begins at `start`, behind further attributes: its `;`, or the brace that closes it.
fn item_end(code: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(rest) = code[at..].trim_start().strip_prefix('#') {
        let bracket = code.len() - rest.len();
        at = bracket + close(&code[bracket..]).unwrap_or(rest.len());
    }
    let is_statement = ["use", "static", "type", "let"].into_iter().any(|word| {
        let head = code[at..].trim_start();
        let head = head.strip_prefix("pub").map_or(head, |rest| rest.trim_start_matches(|c| c != ' ').trim_start());
        head.starts_with(&format!("{word} "))
    });
    let bytes = code.as_bytes();
    let mut depth = 0;
    for (index, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return index,
            b')' | b']' => depth -= 1,
            b'}' => {
                depth -= 1;
                if depth == 0 && !is_statement {
                    return index + 1;
                }
            }
            b';' if depth == 0 => return index + 1,
            _ => {}
        }
    }
    code.len()
}

/// The length up to and with the bracket that closes the first one.
pub fn close(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text with these places blanked.
pub fn without(text: &str, places: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for place in places {
        bytes[place.clone()].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(bytes).expect("whole characters were blanked")
}
