//! Control tokens in what people say: found in the prompt, so that they are encoded as the plain text they are.
//!
//! The prompt itself is left alone. Where a text of the request holds the name of a control token, the conversation is
//! rendered a second time with marks around that name. If the rendering without its marks is the prompt (the template
//! did not look at that name), the marks tell where in the prompt the name is someone's words.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use super::controls::Controls;
use super::variables::{Mark, Speaker};
use crate::chat::python::is_space;
use crate::chat::{Error, Field};

/// Where marks stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Around each name, and around a piece of one at the start or end, which the text beside it might complete.
    Pieces,
    /// Around each name.
    Names,
    /// As `Names`, but behind one that starts the text and before one that ends it: templates look there.
    Inside,
}

/// The names in a request's texts, noted while it is rendered.
pub(super) struct Search<'a> {
    controls: &'a Controls,
    any: RefCell<bool>,
    /// Texts that begin with the end of a name or end with the beginning of one.
    with_pieces: RefCell<BTreeSet<String>>,
    of_assistant: RefCell<BTreeSet<&'a str>>,
}

/// Which names of whose texts are marked.
type Wanted<'a> = &'a dyn Fn(Speaker, &str) -> bool;

/// The character before a name and the one behind it.
type Marks = [char; 2];

impl<'a> Search<'a> {
    pub(super) fn new(controls: &'a Controls) -> Search<'a> {
        Search { controls, any: RefCell::default(), with_pieces: RefCell::default(), of_assistant: RefCell::default() }
    }

    /// Notes what a text holds and leaves it as it is.
    pub(super) fn look(&self, speaker: Speaker, text: &str) -> Option<String> {
        for (_, name) in self.controls.names_in(text) {
            if self.usual(speaker, name) {
                *self.any.borrow_mut() = true;
                if speaker == Speaker::Assistant {
                    self.of_assistant.borrow_mut().insert(name);
                }
            }
        }
        if self.controls.pieces_of(text).iter().any(Option::is_some) {
            *self.any.borrow_mut() = true;
            let text = text.trim_matches(is_space);
            // Of the two sides of a name one is longer than a character, and that one tells.
            if text.len() > 1 {
                self.with_pieces.borrow_mut().insert(text.to_owned());
            }
        }
        None
    }

    /// The ranges of the prompt `text` that are names of control tokens in someone's words, once the request was
    /// looked at. `render` renders the request again, with its texts marked.
    pub(super) fn plain_ranges(
        &self,
        text: &str,
        render: impl Fn(Mark<'_>) -> Result<String, Error>,
    ) -> Result<Vec<Range<usize>>, Error> {
        if !*self.any.borrow() {
            return Ok(Vec::new());
        }
        let marks = unused(text);
        let attempt = |style: Style, wanted: Wanted<'_>| {
            let marked = render(&|speaker, text| self.mark(style, &|name| wanted(speaker, name), marks, text)).ok()?;
            self.marked_ranges(style, &marked, marks, text)
        };
        if let Some(ranges) = attempt(Style::Pieces, &|speaker, name| self.usual(speaker, name)) {
            return Ok(ranges);
        }
        // What a template takes out of the assistant's words is for it to read.
        let names = self.of_assistant.borrow();
        let is_read = |name: &str| {
            self.controls.is_mentioned(name)
                && attempt(Style::Names, &|speaker, other| speaker == Speaker::Assistant && other == name).is_none()
        };
        let read: Vec<&str> = names.iter().copied().filter(|name| is_read(name)).collect();
        let spared = |speaker: Speaker, name: &str| {
            self.usual(speaker, name) && (speaker == Speaker::Other || !read.contains(&name))
        };
        let ranges = attempt(Style::Names, &spared).or_else(|| attempt(Style::Inside, &spared));
        ranges.filter(|ranges| !self.completes_pieces(text, ranges)).ok_or_else(|| {
            let message = "a message holds the name of a control token, or a part of one, where the model's chat template \
                           reads it, so it cannot be told from the template's own; put some text before and behind it";
            Error::Request { field: Field::Messages, message: message.to_owned() }
        })
    }

    /// Whether a name that is not plain begins or ends in a text that has a piece of it there.
    fn completes_pieces(&self, prompt: &str, plain: &[Range<usize>]) -> bool {
        let with_pieces = self.with_pieces.borrow();
        let is_plain = |name: &Range<usize>| plain.iter().any(|own| own.start < name.end && name.start < own.end);
        let mut names = self.controls.names_in(prompt).map(|(range, _)| range).filter(|name| !is_plain(name));
        names.any(|name| {
            prompt[name.clone()].char_indices().skip(1).any(|(at, _)| {
                let (before, after) = prompt.split_at(name.start + at);
                with_pieces.iter().any(|text| before.ends_with(text) || after.starts_with(text))
            })
        })
    }

    fn usual(&self, speaker: Speaker, name: &str) -> bool {
        speaker == Speaker::Other || !self.controls.is_markup(name)
    }

    /// The text with marks around the wanted names; `None` where it has none.
    fn mark(&self, style: Style, wanted: &dyn Fn(&str) -> bool, marks: Marks, text: &str) -> Option<String> {
        let mut places: Vec<Range<usize>> =
            self.controls.names_in(text).filter(|(_, name)| wanted(name)).map(|(range, _)| range).collect();
        if style == Style::Pieces {
            let [start, end] = self.controls.pieces_of(text);
            let first = places.first().map_or(text.len(), |place| place.start);
            places.splice(0..0, start.filter(|start| start.end <= first));
            let last = places.last().map_or(0, |place| place.end);
            places.extend(end.filter(|end| end.start >= last));
        }
        if places.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(text.len() + 8 * places.len());
        let mut done = 0;
        for place in places {
            let (starts, ends) = (place.start == 0, place.end == text.len());
            out.push_str(&text[done..place.start]);
            if style != Style::Inside || !starts {
                out.push(marks[0]);
            }
            out.push_str(&text[place.clone()]);
            if style != Style::Inside || !ends || starts {
                out.push(marks[1]);
            }
            done = place.end;
        }
        out.push_str(&text[done..]);
        Some(out)
    }

    /// The ranges that a marked rendering tells of; `None` where without its marks it is not the prompt. A mark
    /// without its partner is no name any more: the template has taken that out, and writes its own.
    fn marked_ranges(&self, style: Style, marked: &str, marks: Marks, text: &str) -> Option<Vec<Range<usize>>> {
        // JSON in ASCII and Python's `repr` have spelled them out.
        let spelled_out = marks.iter().flat_map(|mark| spellings(*mark).map(|spelling| (*mark, spelling)));
        let marked = spelled_out.fold(marked.to_owned(), |marked, (mark, spelling)| {
            marked.replace(&spelling, mark.encode_utf8(&mut [0; 4]))
        });
        let alone = style == Style::Inside;
        let name_at = |start: usize| self.controls.name_at(text, start).filter(|_| alone);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let (mut at, mut open) = (0, None);
        for (index, char) in marked.char_indices() {
            if char == marks[0] {
                ranges.extend(open.replace(at).and_then(name_at));
            } else if char == marks[1] {
                ranges.extend(match open.take() {
                    Some(start) => Some(start..at).filter(|range| !range.is_empty()),
                    None => self.controls.name_before(text, at).filter(|_| alone),
                });
            } else {
                let same = text.as_bytes().get(at..at + char.len_utf8())?;
                if same != &marked.as_bytes()[index..index + char.len_utf8()] {
                    return None;
                }
                at += char.len_utf8();
            }
        }
        ranges.extend(open.and_then(name_at));
        (at == text.len()).then_some(ranges)
    }
}

/// Two characters for private use that the prompt does not use.
fn unused(text: &str) -> Marks {
    let is_unused =
        |char: &char| !text.contains(*char) && !spellings(*char).iter().any(|spelling| text.contains(spelling));
    let mut unused = ('\u{f0000}'..='\u{ffffd}').filter(is_unused);
    // A prompt that uses every one of 65,534 such characters gets marks it cannot be told from, and is refused.
    [unused.next().unwrap_or('\u{f0000}'), unused.next().unwrap_or('\u{f0001}')]
}

/// A character as JSON in ASCII has it, and as Python's `repr`.
fn spellings(char: char) -> [String; 2] {
    let json = char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    [json, format!("\\U{:08x}", u32::from(char))]
}
