//! The names of a tokenizer's control tokens, and where they stand in a text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use crate::chat::ControlToken;
use crate::chat::python::is_space;

#[derive(Debug, Clone, Copy)]
struct Kind {
    special: bool,
    /// It stands in the template's text.
    mentioned: bool,
    /// The template looks for it in a message's words.
    read: bool,
}

#[derive(Debug)]
pub(super) struct Controls {
    names: BTreeMap<String, Kind>,
    /// The names spelled backwards, to find what ends like one.
    reversed: BTreeSet<String>,
    /// In bytes, longest first: of two names at one place the longer counts.
    lengths: Vec<usize>,
    /// The bytes that names begin with.
    starts: Vec<bool>,
}

impl Controls {
    /// `tokens` are the tokenizer's; those that are not special count where the template writes them.
    pub(super) fn new(tokens: &[ControlToken], template: &str) -> Controls {
        let counts =
            |token: &&ControlToken| !token.text.trim().is_empty() && (token.special || template.contains(&token.text));
        let kind = |token: &ControlToken| Kind {
            special: token.special,
            mentioned: template.contains(&token.text),
            read: reads(template, &token.text),
        };
        let names: BTreeMap<String, Kind> =
            tokens.iter().filter(counts).map(|token| (token.text.clone(), kind(token))).collect();
        let reversed = names.keys().map(|name| name.chars().rev().collect()).collect();
        let lengths: BTreeSet<usize> = names.keys().map(String::len).collect();
        let mut starts = vec![false; 256];
        names.keys().for_each(|name| starts[usize::from(name.as_bytes()[0])] = true);
        Controls { names, reversed, lengths: lengths.into_iter().rev().collect(), starts }
    }

    /// Whether an assistant's history may hold a name in good faith: marks of reasoning and of calls are often not
    /// special, and templates take them out of there.
    pub(super) fn is_markup(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|kind| kind.read || !kind.special)
    }

    /// Whether the template's text has this name in it: another it cannot look for.
    pub(super) fn is_mentioned(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|kind| kind.mentioned)
    }

    /// Every name in a text, from the left, without overlaps.
    pub(super) fn names_in<'a>(&'a self, text: &str) -> impl Iterator<Item = (Range<usize>, &'a str)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                at += text.as_bytes()[at..].iter().position(|&byte| self.starts[usize::from(byte)])?;
                if let Some(name) = self.longest_at(text, at) {
                    let start = at;
                    at += name.len();
                    return Some((start..at, name));
                }
                at += 1;
            }
        })
    }

    /// What at the start of a text may end a name, and what at its end may begin one. White space around a text is not
    /// looked at, as templates trim it.
    pub(super) fn pieces_of(&self, text: &str) -> [Option<Range<usize>>; 2] {
        let before = text.len() - text.trim_start_matches(is_space).len();
        let pieces = self.pieces_of_trimmed(text.trim_matches(is_space));
        pieces.map(|piece| piece.map(|piece| before + piece.start..before + piece.end))
    }

    fn pieces_of_trimmed(&self, text: &str) -> [Option<Range<usize>>; 2] {
        let longest = self.lengths.first().map_or(0, |length| length - 1).min(text.len());
        // What begins with a piece and is longer stands right behind it in order.
        let after = |piece: &str| (Bound::Excluded(piece.to_owned()), Bound::Unbounded);
        let start = (1..=longest).rev().filter(|&end| text.is_char_boundary(end)).find(|&end| {
            let piece: String = text[..end].chars().rev().collect();
            self.reversed.range(after(&piece)).next().is_some_and(|name| name.starts_with(&piece))
        });
        let end = (text.len() - longest..text.len()).filter(|&start| text.is_char_boundary(start)).find(|&start| {
            let piece = &text[start..];
            self.names.range(after(piece)).next().is_some_and(|(name, _)| name.starts_with(piece))
        });
        [start.map(|end| 0..end), end.map(|start| start..text.len())]
    }

    /// The name that begins here.
    pub(super) fn name_at(&self, text: &str, start: usize) -> Option<Range<usize>> {
        self.longest_at(text, start).map(|name| start..start + name.len())
    }

    /// The name that ends here.
    pub(super) fn name_before(&self, text: &str, end: usize) -> Option<Range<usize>> {
        let starts = self.lengths.iter().filter_map(|length| end.checked_sub(*length));
        starts
            .map(|start| start..end)
            .find(|range| text.get(range.clone()).is_some_and(|name| self.names.contains_key(name)))
    }

    fn longest_at(&self, text: &str, start: usize) -> Option<&str> {
        let ends = self.lengths.iter().map(|length| start + length);
        let name = ends.filter_map(|end| text.get(start..end)).find_map(|name| self.names.get_key_value(name));
        name.map(|(name, _)| name.as_str())
    }
}

/// Whether a template splits something at a name or asks whether something holds it.
fn reads(template: &str, name: &str) -> bool {
    ['\'', '"'].iter().any(|quote| {
        let constant = format!("{quote}{name}{quote}");
        template.match_indices(&constant).any(|(at, _)| {
            let (before, after) = (&template[..at], &template[at + constant.len()..]);
            before.ends_with("split(") || after.starts_with(" in ") || after.starts_with(" not in ")
        })
    })
}
