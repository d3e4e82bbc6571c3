//! Reads answers: whole, in pieces, cut, and changed at random; and holds them to what must be the same.

use mettle::chat::{
    Beginning, Dialect, Event, FORMATS, Phase, Piece, ReasoningTags, Splitter, Tool, ToolEvent, ToolFormat,
};
use serde_json::Value;

use super::{
    cases::{Answer, Call, File},
    formats::tools,
    random::generator,
};

/// How the answers of a file are read.
pub struct Reader {
    pub dialect: &'static Dialect,
    pub tools: Vec<Tool>,
    pub starts: Phase,
}

/// How an answer ends: [`Splitter::finish`] or [`Splitter::complete`].
pub type End = fn(&mut Splitter) -> Vec<Event>;

/// What an answer consists of, put together again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Whole {
    pub reasoning: String,
    pub text: String,
    pub calls: Vec<Call>,
}

impl Reader {
    /// By the head of a file: in its family's dialect, or in one format alone.
    pub fn of(file: &File) -> Reader {
        let family = Dialect::named(&file.family).expect("a folder of a dialect");
        let dialect = match (file.setting("format"), file.setting("thoughts")) {
            (None, _) => family,
            (Some(name), None) => alone(format(name)),
            (Some(name), Some(_)) => {
                Box::leak(Box::new(Dialect { reasoning: Some(ReasoningTags::THINK), ..*alone(format(name)) }))
            }
        };
        let mut reader = Reader::new(dialect);
        if let Some(names) = file.setting("tools") {
            reader.tools.retain(|tool| names.split(' ').any(|name| name == tool.name));
        } else {
            reader.tools.truncate(4);
        }
        if file.setting("starts").is_some() {
            reader.starts = Phase::Reasoning;
        }
        reader
    }

    /// With all tools.
    pub fn new(dialect: &'static Dialect) -> Reader {
        let thinks = dialect.reasoning.as_ref().is_some_and(|tags| tags.always);
        let starts = if thinks { Phase::Reasoning } else { Phase::Text };
        Reader { dialect, tools: tools(), starts }
    }

    /// The format that the dialect writes.
    pub fn first_format(&self) -> &'static str {
        self.dialect.tools[0].name
    }

    /// The answer with what it is read as.
    pub fn read_as(&self, answer: &Answer) -> Answer {
        let pieces = pieces(&answer.text);
        let end = if answer.is_cut { Splitter::finish as End } else { Splitter::complete };
        let mut whole = self.read(&pieces, &specials(&pieces), end);
        whole.calls.iter_mut().filter(|call| call.id.starts_with("call_")).for_each(|call| call.id.clear());
        Answer { thought: whole.reasoning, said: whole.text, calls: whole.calls, ..answer.clone() }
    }

    /// Holds an answer to what must be the same in any pieces, and where it is cut or changed.
    pub fn check(&self, answer: &Answer) {
        let case = pieces(&answer.text);
        let specials = specials(&case);
        let [_, whole] = self.any_pieces(&case, &specials);
        let length: usize =
            case.iter().map(|piece| if let Piece::Text(text) = piece { text.chars().count() } else { 1 }).sum();
        for count in 0..length {
            let begun = first(&case, count);
            let [part, _] = self.any_pieces(&begun, &specials);
            check_beginning(&part, &whole, &begun);
        }
        self.check_mutations(&case, &specials);
    }

    /// Reads pieces.
    pub fn read(&self, pieces: &[Piece<'_>], specials: &[String], end: End) -> Whole {
        let beginning = Beginning {
            tools: &self.tools,
            phase: self.starts,
            special_tokens: std::sync::Arc::new(specials.iter().cloned().collect()),
            ids: 7,
        };
        let mut splitter = Splitter::new(self.dialect, beginning);
        let mut whole = Whole::default();
        for piece in pieces {
            splitter.push(*piece).into_iter().for_each(|event| whole.add(event));
        }
        end(&mut splitter).into_iter().for_each(|event| whole.add(event));
        whole
    }

    /// Reads in any pieces the same: what it is where it was cut, and where the model ended it.
    pub fn any_pieces(&self, case: &[Piece<'_>], specials: &[String]) -> [Whole; 2] {
        [Splitter::finish as End, Splitter::complete].map(|end| {
            let whole = self.read(case, specials, end);
            for seed in 0..6 {
                let mut random = generator(seed);
                let pieces = cut(case, |below| if seed == 0 { 0 } else { random(below) });
                assert_eq!(self.read(&pieces, specials, end), whole, "in other pieces: {case:?}");
            }
            for call in whole.calls.iter().filter(|call| !call.ended) {
                let parsed: Result<Value, _> = serde_json::from_str(&call.arguments);
                assert!(parsed.is_err(), "cut, but complete: {call:?} of {case:?}");
            }
            whole
        })
    }

    /// Parts of a case dropped, doubled and put elsewhere: nothing panics, nothing depends on the pieces, and where it is
    /// cut it is a beginning.
    fn check_mutations(&self, case: &[Piece<'_>], specials: &[String]) {
        let characters = characters(case);
        if characters.is_empty() {
            return;
        }
        let mut random = generator(characters.len() as u64);
        for _ in 0..4 {
            let mut mutated = Vec::new();
            for _ in 0..1 + random(3) {
                let from = if random(2) == 0 { 0 } else { random(characters.len()) };
                let to = if random(2) == 0 { characters.len() } else { from + random(characters.len() - from + 1) };
                mutated.extend_from_slice(&characters[from..to]);
            }
            let texts = joined(&mutated);
            let pieces: Vec<Piece<'_>> = texts
                .iter()
                .map(|(special, text)| if *special { Piece::Special(text) } else { Piece::Text(text) })
                .collect();
            let wholes = self.any_pieces(&pieces, specials);
            for _ in 0..4 {
                let begun = first(&pieces, random(mutated.len() + 1));
                let part = self.read(&begun, specials, Splitter::finish);
                wholes.iter().for_each(|whole| check_beginning(&part, whole, &begun));
            }
        }
    }
}

/// The format of this name.
pub fn format(name: &str) -> &'static ToolFormat {
    FORMATS.iter().copied().find(|format| format.name == name).unwrap_or_else(|| panic!("no format {name:?}"))
}

/// A dialect of this format alone, without thoughts. Answers are read as those of the row that has it first.
pub fn alone(format: &'static ToolFormat) -> &'static Dialect {
    // These are read by their marks, too, in the dialect auto or behind text.
    let by_marks = ["harmony", "functionary", "functionary_v2"].contains(&format.name);
    let first = |row: &&&'static Dialect| row.tools[0].name == format.name && !by_marks;
    let row = mettle::chat::DIALECTS.iter().find(first);
    let Dialect { program, drops, .. } = *row.copied().unwrap_or(&Dialect::PLAIN);
    let tools: &'static [&'static ToolFormat] = Box::leak(Box::new([format]));
    Box::leak(Box::new(Dialect { name: "test", program, drops, reasoning: None, tools, ..Dialect::PLAIN }))
}

impl Whole {
    fn add(&mut self, event: Event) {
        match event {
            Event::Reasoning(text) => self.reasoning += &text,
            Event::Text(text) => self.text += &text,
            Event::ToolCall(ToolEvent::Begun { index, id, name }) => {
                assert_eq!(index, self.calls.len(), "calls come one after the other");
                assert!(self.calls.last().is_none_or(|call| call.ended), "one call at a time");
                self.calls.push(Call { name, id, arguments: String::new(), ended: false });
            }
            Event::ToolCall(ToolEvent::Arguments { index, fragment }) => {
                assert!(!fragment.is_empty() && index + 1 == self.calls.len());
                self.calls[index].arguments += &fragment;
            }
            Event::ToolCall(ToolEvent::Ended { index }) => {
                let call = &mut self.calls[index];
                call.ended = true;
                let arguments: Result<Value, _> = serde_json::from_str(&call.arguments);
                assert!(arguments.is_ok_and(|arguments| arguments.is_object()), "{:?}", call.arguments);
            }
            other => panic!("no event of a splitter: {other:?}"),
        }
    }
}

/// What is read where an answer was cut is a beginning of what the whole is read as.
pub fn check_beginning(part: &Whole, whole: &Whole, begun: &[Piece<'_>]) {
    for (cut, call) in part.calls.iter().zip(&whole.calls) {
        // What is complete is right, and what is not cannot be taken for complete.
        assert_eq!((&cut.name, &cut.id), (&call.name, &call.id), "{begun:?}");
        if cut.ended {
            assert_eq!(cut.arguments, call.arguments, "{begun:?}");
        } else {
            let parsed: Result<Value, _> = serde_json::from_str(&cut.arguments);
            assert!(parsed.is_err(), "{:?} of {begun:?}", cut.arguments);
            assert!(call.arguments.starts_with(&cut.arguments), "{:?} of {begun:?}", cut.arguments);
        }
    }
    assert!(part.calls.len() <= whole.calls.len(), "{begun:?}");
}

/// The pieces of a case, special tokens told apart.
pub fn pieces(case: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for (index, part) in case.split('⟪').enumerate() {
        let (special, text) = if index == 0 { ("", part) } else { part.split_once('⟫').expect("a closing ⟫") };
        pieces.extend((!special.is_empty()).then_some(Piece::Special(special)));
        pieces.extend((!text.is_empty()).then_some(Piece::Text(text)));
    }
    pieces
}

/// The names of special tokens in pieces.
pub fn specials(pieces: &[Piece<'_>]) -> Vec<String> {
    let name = |piece: &Piece<'_>| match piece {
        Piece::Special(name) => Some((*name).to_owned()),
        Piece::Text(_) => None,
    };
    pieces.iter().filter_map(name).collect()
}

/// Cuts the text of pieces further, at places that `random` chooses.
fn cut<'a>(pieces: &[Piece<'a>], mut random: impl FnMut(usize) -> usize) -> Vec<Piece<'a>> {
    let mut cut = Vec::new();
    for piece in pieces {
        let Piece::Text(mut text) = *piece else {
            cut.push(*piece);
            continue;
        };
        while !text.is_empty() {
            let count = 1 + random(6);
            let at = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
            cut.push(Piece::Text(&text[..at]));
            text = &text[at..];
        }
    }
    cut
}

/// The first characters of pieces; a special token counts as one.
fn first<'a>(pieces: &[Piece<'a>], mut count: usize) -> Vec<Piece<'a>> {
    let mut taken = Vec::new();
    for piece in pieces {
        match *piece {
            _ if count == 0 => break,
            Piece::Text(text) => {
                let at = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
                count -= text[..at].chars().count();
                taken.push(Piece::Text(&text[..at]));
            }
            special => {
                count -= 1;
                taken.push(special);
            }
        }
    }
    taken
}

/// Pieces of a character or a special token each.
fn characters<'a>(case: &[Piece<'a>]) -> Vec<Piece<'a>> {
    let mut characters = Vec::new();
    for piece in case {
        match *piece {
            Piece::Text(text) => {
                characters.extend(text.char_indices().map(|(at, char)| Piece::Text(&text[at..at + char.len_utf8()])));
            }
            special => characters.push(special),
        }
    }
    characters
}

/// Texts that follow each other put together, and whether each is a special token.
fn joined(pieces: &[Piece<'_>]) -> Vec<(bool, String)> {
    pieces.iter().fold(Vec::new(), |mut texts, piece| {
        match (piece, texts.last_mut()) {
            (Piece::Text(more), Some((false, text))) => text.push_str(more),
            (Piece::Text(text), _) => texts.push((false, (*text).to_owned())),
            (Piece::Special(name), _) => texts.push((true, (*name).to_owned())),
        }
        texts
    })
}
