//! Two operators that minijinja has otherwise than Python: `%` of a string, which formats, and `~`, which joins texts
//! that are to be spelled as everywhere else. Both are written anew as filters of the operands that stand beside them.

use std::ops::Range;

use super::functions::{PERCENT, TEXT};

/// Rewrites a tag, from its `{%` or `{{` to before its end, or the rest of one.
pub(super) fn rewritten_tag(tag: &str) -> String {
    let code = tag.trim_start_matches(['{', '%', '-', '+']);
    let end = code.trim_end().trim_end_matches(['-', '+']).len();
    let head = &tag[..tag.len() - code.len()];
    [head, &rewritten(&code[..end]), &code[end..]].concat()
}

/// Rewrites an expression.
pub(super) fn rewritten(code: &str) -> String {
    if !code.contains(['%', '~']) {
        return code.to_owned();
    }
    let code = Code { text: code, pieces: pieces(code) };
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (index, piece) in code.pieces.iter().enumerate() {
        match piece.kind {
            Kind::Sign('%') => code.percent(index, &mut edits),
            Kind::Sign('~') => code.concatenation(index, &mut edits),
            _ => {}
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    edits.dedup();
    let mut out = String::with_capacity(code.text.len() + 16 * edits.len());
    let mut from = 0;
    for (range, text) in edits {
        out.push_str(&code.text[from..range.start]);
        out.push_str(&text);
        from = range.end;
    }
    out + &code.text[from..]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    String,
    Word,
    Open,
    Close,
    Sign(char),
}

struct Piece {
    kind: Kind,
    start: usize,
    end: usize,
    /// The place of a bracket's other half; its own where there is none.
    partner: usize,
}

struct Code<'a> {
    text: &'a str,
    pieces: Vec<Piece>,
}

impl Code<'_> {
    /// `left % right` becomes `left|percent(right)` where left may be a string: it is one, a name or an expression in
    /// parentheses. Where more arithmetic stands before it, it is a number, and the operator stays.
    fn percent(&self, index: usize, edits: &mut Vec<(Range<usize>, String)>) {
        let (Some(left), Some(right)) = (self.operand_before(index), self.operand_after(index + 1)) else { return };
        let numbers = !self.text[left.clone()].starts_with(['\'', '"', '('])
            && self.text[right.clone()].starts_with(|char: char| char.is_ascii_digit());
        if numbers || self.text[..left.start].trim_end().ends_with(['*', '/', '%', '-']) {
            return;
        }
        edits.push((left.end..right.start, format!("|{PERCENT}(")));
        edits.push((right.end..right.end, ")".to_owned()));
    }

    /// Each operand of `~` that stands alone and is no string already becomes a text first.
    fn concatenation(&self, index: usize, edits: &mut Vec<(Range<usize>, String)>) {
        let signs = ['*', '/', '%', '-', '+'];
        let before = self.operand_before(index);
        let before = before.filter(|left| !self.text[..left.start].trim_end().ends_with(signs));
        let after = self.operand_after(index + 1);
        let after = after.filter(|right| !self.text[right.end..].trim_start().starts_with(signs));
        for operand in [before, after].into_iter().flatten().filter(|operand| !self.is_string(operand)) {
            edits.push((operand.end..operand.end, format!("|{TEXT}")));
        }
    }

    /// One string, and nothing that is done to it.
    fn is_string(&self, operand: &Range<usize>) -> bool {
        let text = &self.text[operand.clone()];
        let quote = text.chars().next().filter(|char| "'\"".contains(*char));
        quote.is_some_and(|quote| string_length(text, quote) == text.len())
    }

    fn is_keyword(&self, piece: &Piece) -> bool {
        piece.kind == Kind::Word && KEYWORDS.contains(&&self.text[piece.start..piece.end])
    }

    /// A value with its attributes, items, calls and filters, which ends right before a piece.
    fn operand_before(&self, piece: usize) -> Option<Range<usize>> {
        let mut index = piece.checked_sub(1)?;
        let end = self.pieces[index].end;
        loop {
            let piece = &self.pieces[index];
            let before = |index: usize| index.checked_sub(1).map(|before| (before, &self.pieces[before]));
            match piece.kind {
                Kind::Close => {
                    index = piece.partner;
                    // It may be a call or an item of what stands before.
                    if let Some((called, before)) = before(index)
                        && before.is_value()
                        && !self.is_keyword(before)
                    {
                        index = called;
                        continue;
                    }
                }
                Kind::Word | Kind::String if !self.is_keyword(piece) => {}
                _ => return None,
            }
            match before(index) {
                Some((joint, sign)) if matches!(sign.kind, Kind::Sign('.' | '|')) => index = joint.checked_sub(1)?,
                // A test's argument, as in `x is divisibleby n`, is the test's.
                Some((test, word)) if word.kind == Kind::Word && !self.is_keyword(word) && test > 0 => return None,
                _ => return Some(self.pieces[index].start..end),
            }
        }
    }

    /// A value with its attributes, items, calls and filters, which begins with a piece.
    fn operand_after(&self, piece: usize) -> Option<Range<usize>> {
        let mut index = piece;
        let start = self.pieces.get(piece)?.start;
        loop {
            let piece = self.pieces.get(index)?;
            match piece.kind {
                Kind::Open => index = piece.partner,
                Kind::Word | Kind::String if !self.is_keyword(piece) => {}
                _ => return None,
            }
            // Calls and items follow at once, attributes and filters behind a sign.
            while let Some(next) = self.pieces.get(index + 1).filter(|next| next.kind == Kind::Open) {
                index = next.partner.max(index + 1);
            }
            match self.pieces.get(index + 1).map(|next| next.kind) {
                Some(Kind::Sign('.' | '|')) => index += 2,
                // A power binds more than what is before it.
                Some(Kind::Sign('*')) if self.text[self.pieces[index + 1].start..].starts_with("**") => return None,
                _ => return Some(start..self.pieces[index].end),
            }
        }
    }
}

impl Piece {
    fn is_value(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Close | Kind::String)
    }
}

/// Words that are no operands.
const KEYWORDS: &[&str] = &[
    "if",
    "else",
    "elif",
    "and",
    "or",
    "not",
    "in",
    "is",
    "set",
    "for",
    "recursive",
    "with",
    "call",
    "filter",
    "print",
];

/// What code is made of, without its white space.
fn pieces(code: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(char) = code[at..].chars().next() {
        let (kind, length) = match char {
            '\'' | '"' => (Kind::String, string_length(&code[at..], char)),
            '(' | '[' | '{' => (Kind::Open, 1),
            ')' | ']' | '}' => (Kind::Close, 1),
            char if char.is_alphanumeric() || char == '_' => (Kind::Word, word_length(&code[at..])),
            char => (Kind::Sign(char), char.len_utf8()),
        };
        if !char.is_whitespace() {
            let index = pieces.len();
            let mut partner = index;
            match kind {
                Kind::Open => open.push(index),
                Kind::Close => {
                    if let Some(other) = open.pop() {
                        partner = other;
                        pieces[other].partner = index;
                    }
                }
                _ => {}
            }
            pieces.push(Piece { kind, start: at, end: at + length, partner });
        }
        at += length;
    }
    pieces
}

fn string_length(code: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in code.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            char if char == quote => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// A name, or a number with its point and its exponent.
fn word_length(code: &str) -> usize {
    let number = code.starts_with(|char: char| char.is_ascii_digit());
    let mut before = ' ';
    let ends = |char: char| {
        let exponent = number && matches!(char, '+' | '-') && matches!(before, 'e' | 'E');
        let point = number && char == '.';
        before = char;
        !(char.is_alphanumeric() || char == '_' || exponent || point)
    };
    code.find(ends).unwrap_or(code.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_found() {
        for (code, expected) in [
            ("'%d' % 7", "'%d'|percent(7)"),
            ("'%s-%s' % (a, b[0]) + 'x'", "'%s-%s'|percent((a, b[0])) + 'x'"),
            ("(a ~ '%s') % x.y|upper", "(a|string ~ '%s')|percent(x.y|upper)"),
            ("f.g(1)['%'] % n", "f.g(1)['%']|percent(n)"),
            ("loop.index0 % 2 == 0", "loop.index0 % 2 == 0"),
            ("2 * a % b", "2 * a % b"),
            ("a % b % c", "a|percent(b) % c"),
            ("if (i % n) == 1", "if (i|percent(n)) == 1"),
            ("if '%s' % a in b", "if '%s'|percent(a) in b"),
            ("x is divisibleby n % 2", "x is divisibleby n % 2"),
            ("a ~ 1e16 ~ 'x'", "a|string ~ 1e16|string ~ 'x'"),
            ("'a' ~ (b if c else d) ~ e[0].f", "'a' ~ (b if c else d)|string ~ e[0].f|string"),
            ("'a' ~ 2 * b", "'a' ~ 2 * b"),
            ("'a' ~ x or y", "'a' ~ x|string or y"),
            ("'a % b ~ c'", "'a % b ~ c'"),
        ] {
            assert_eq!(rewritten(code), expected, "{code}");
        }
    }
}
