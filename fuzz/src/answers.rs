//! Answers of models: reads one in several ways, and holds what is read to what mettle promises.
//!
//! A case is three bytes, then the answer. In it 0xff cuts the text, and 0xfe stands before and behind the name of a
//! special token; neither byte is in any UTF-8.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

use crate::{
    chat::{Beginning, Dialect, Event, Phase, Piece, Splitter, Tool, ToolEvent},
    promises,
};

/// Between pieces of text.
pub const CUT: u8 = 0xff;

/// Around the name of a special token.
const SPECIAL: u8 = 0xfe;

/// The tools that every answer may call, where it declares any.
pub static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(tools);

/// How an answer is read.
pub struct Case {
    pub dialect: &'static Dialect,
    starts: Phase,
    /// The model ended the answer itself.
    pub complete: bool,
    declares_tools: bool,
    /// Which share of the pieces is there where the answer is cut, in 256ths.
    share: usize,
    pieces: Vec<Owned>,
}

#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Text(String),
    Special(String),
}

/// What an answer consists of, put together again.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Reasoning(String),
    Text(String),
    Call(Call),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub id: String,
    pub arguments: String,
    pub ended: bool,
}

impl Case {
    pub fn new(dialects: &[&'static Dialect], data: &[u8]) -> Option<Case> {
        let [dialect, flags, share, answer @ ..] = data else { return None };
        let flag = |bit: u8| flags & (1 << bit) != 0;
        Some(Case {
            dialect: dialects[usize::from(*dialect) % dialects.len()],
            starts: if flag(0) { Phase::Reasoning } else { Phase::Text },
            complete: flag(1),
            declares_tools: !flag(2),
            share: usize::from(*share),
            pieces: pieces(answer),
        })
    }

    /// Reads the answer whole, in pieces and character by character; holds it to all promises.
    pub fn check(&self) -> Vec<Part> {
        let whole = self.read(&joined(&self.pieces));
        assert_eq!(self.read(&self.pieces), whole, "in pieces: {self:?}");
        assert_eq!(self.read(&characters(&self.pieces)), whole, "by characters: {self:?}");
        promises::of_whole(self, &whole);
        let begun = &self.pieces[..self.pieces.len() * self.share / 256];
        promises::of_beginning(self, &self.read_to(begun, Splitter::finish), &whole);
        whole
    }

    fn read(&self, pieces: &[Owned]) -> Vec<Part> {
        self.read_to(pieces, if self.complete { Splitter::complete } else { Splitter::finish })
    }

    fn read_to(&self, pieces: &[Owned], end: fn(&mut Splitter) -> Vec<Event>) -> Vec<Part> {
        let tools: &[Tool] = if self.declares_tools { &TOOLS } else { &[] };
        let special = |piece: &Owned| if let Owned::Special(name) = piece { Some(name.clone()) } else { None };
        let names = self.pieces.iter().filter_map(special).collect::<BTreeSet<String>>();
        let beginning = Beginning { tools, phase: self.starts, special_tokens: Arc::new(names), ids: 7 };
        let mut splitter = Splitter::new(self.dialect, beginning);
        let mut parts = Vec::new();
        for piece in pieces {
            let events = splitter.push(match piece {
                Owned::Text(text) => Piece::Text(text),
                Owned::Special(name) => Piece::Special(name),
            });
            events.into_iter().for_each(|event| add(&mut parts, event));
        }
        end(&mut splitter).into_iter().for_each(|event| add(&mut parts, event));
        parts
    }

    /// Another answer in the same dialect, which the model has ended.
    pub fn read_text(&self, text: &str) -> Vec<Part> {
        let pieces = vec![Owned::Text(text.to_owned())];
        let other = Case { starts: Phase::Text, complete: true, declares_tools: true, pieces, ..*self };
        other.read(&other.pieces)
    }

    /// The answer's text, special tokens by their names.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(Owned::Text(text) | Owned::Special(text))| text.as_str()).collect()
    }

    pub fn begins_thinking(&self) -> bool {
        self.starts == Phase::Reasoning
    }

    pub fn has_special_tokens(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Owned::Special(_)))
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let formats: Vec<&str> = self.dialect.tools.iter().map(|format| format.name).collect();
        let Case { starts, complete, declares_tools, share, pieces, .. } = self;
        write!(f, "{} {formats:?} {starts:?}, complete {complete}, tools {declares_tools}, ", self.dialect.name)?;
        write!(f, "share {share}, {pieces:?}")
    }
}

fn add(parts: &mut Vec<Part>, event: Event) {
    match (event, parts.last_mut()) {
        (Event::Reasoning(more), Some(Part::Reasoning(text))) => text.push_str(&more),
        (Event::Reasoning(text), _) => parts.push(Part::Reasoning(text)),
        (Event::Text(more), Some(Part::Text(text))) => text.push_str(&more),
        (Event::Text(text), _) => parts.push(Part::Text(text)),
        (Event::ToolCall(ToolEvent::Begun { index, id, name }), last) => {
            assert!(!matches!(last, Some(Part::Call(Call { ended: false, .. }))), "one call at a time");
            assert_eq!(index, calls(parts).count(), "calls come one after the other");
            parts.push(Part::Call(Call { name, id, arguments: String::new(), ended: false }));
        }
        (Event::ToolCall(ToolEvent::Arguments { fragment, .. }), Some(Part::Call(call))) => {
            assert!(!call.ended && !fragment.is_empty());
            call.arguments.push_str(&fragment);
        }
        (Event::ToolCall(ToolEvent::Ended { .. }), Some(Part::Call(call))) => {
            assert!(!call.ended);
            call.ended = true;
        }
        (event, last) => panic!("{event:?} after {last:?}"),
    }
}

pub fn calls(parts: &[Part]) -> impl Iterator<Item = &Call> {
    parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
}

fn pieces(answer: &[u8]) -> Vec<Owned> {
    let mut pieces = Vec::new();
    for (index, part) in answer.split(|byte| *byte == SPECIAL).enumerate() {
        if index % 2 == 1 {
            let name = String::from_utf8_lossy(part).into_owned();
            pieces.extend((!name.is_empty()).then_some(Owned::Special(name)));
        } else {
            let texts = part.split(|byte| *byte == CUT).filter(|text| !text.is_empty());
            pieces.extend(texts.map(|text| Owned::Text(String::from_utf8_lossy(text).into_owned())));
        }
    }
    pieces
}

fn joined(pieces: &[Owned]) -> Vec<Owned> {
    let mut joined: Vec<Owned> = Vec::new();
    for piece in pieces {
        match (piece, joined.last_mut()) {
            (Owned::Text(more), Some(Owned::Text(text))) => text.push_str(more),
            (piece, _) => joined.push(piece.clone()),
        }
    }
    joined
}

fn characters(pieces: &[Owned]) -> Vec<Owned> {
    let cut = |piece: &Owned| match piece {
        Owned::Text(text) => text.chars().map(|char| Owned::Text(char.into())).collect(),
        special => vec![special.clone()],
    };
    pieces.iter().flat_map(cut).collect()
}

/// What may be called: the tools of the tests' cases, and what their types make of values.
fn tools() -> Vec<Tool> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/dialects/tools.json");
    let tools = std::fs::read_to_string(path).expect("the tools of the tests' cases");
    let tools: Map<String, Value> = serde_json::from_str(&tools).expect("JSON");
    tools.into_iter().take(5).map(|(name, schema)| Tool::new(name, schema)).collect()
}
