//! The arguments of a call that has begun, written as one JSON object while they come.

use std::collections::HashSet;

use serde_json::Value;

use super::{NotACall, Region, misplaced::Misplaced};
use crate::{
    chat::output::{
        input::Input,
        json::{self, Led, Sink, Spelled},
    },
    schema::{Shape, Types},
};

/// Writes one call's arguments. A call that is dropped before [`Arguments::end`] was cut off, and its JSON stays open.
pub struct Arguments {
    region: Region,
    shape: Shape,
    /// The names of those written.
    names: HashSet<String>,
    /// What comes now is the second value of a name, and is not written.
    is_doubled: bool,
    /// Required arguments that may stand in the wrong place.
    misplaced: Option<Misplaced>,
}

/// Where a value ends that is written without quotes.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The first of these.
    pub marks: &'a [&'a str],
    /// One of these follows the mark, behind white space; where anything else does, the value itself has the mark in it.
    /// Empty where that does not matter.
    pub before: &'a [&'a str],
    /// One newline at each end is no part of the value.
    pub trim: bool,
}

impl<'a> End<'a> {
    /// At the first of these marks, whatever follows it.
    pub fn at(marks: &'a [&'a str]) -> End<'a> {
        End { marks, before: &[], trim: false }
    }

    /// At the first of these marks that one of those follows, with which the format goes on.
    pub fn before(marks: &'a [&'a str], before: &'a [&'a str]) -> End<'a> {
        End { marks, before, trim: false }
    }

    /// Takes the value and the mark, emits the value piece by piece, and returns the mark's index.
    async fn find(&self, input: &Input, mut emit: impl FnMut(&str)) -> Option<usize> {
        loop {
            let found = input.until_mark(self.marks, &mut emit).await?;
            if self.before.is_empty() || input.follows(self.before).await? {
                return Some(found);
            }
            emit(self.marks[found]);
        }
    }

    /// [`End::find`] in one piece.
    async fn text(&self, input: &Input) -> Option<(String, usize)> {
        let mut text = String::new();
        let mark = self.find(input, |piece| text.push_str(piece)).await?;
        Some((text, mark))
    }
}

impl Sink for Arguments {
    fn json(&mut self, piece: &str) {
        if self.is_doubled || self.region.is_silent {
            return;
        }
        if let Some(misplaced) = &mut self.misplaced {
            misplaced.read(piece);
        }
        self.region.output.arguments(piece);
    }
}

/// Keeps the brace back that closes the arguments.
struct Unclosed<'a> {
    arguments: &'a mut Arguments,
    held: bool,
}

impl Sink for Unclosed<'_> {
    fn json(&mut self, piece: &str) {
        if std::mem::replace(&mut self.held, piece == "}") {
            self.arguments.json("}");
        }
        if piece != "}" {
            self.arguments.json(piece);
        }
    }
}

impl Arguments {
    /// Of a call that has begun, by the schema of its tool.
    pub(in crate::chat::output) fn new(region: Region, shape: Shape) -> Arguments {
        let misplaced = Misplaced::of(&shape);
        Arguments { region, shape, names: HashSet::new(), is_doubled: false, misplaced }
    }

    /// The brace that closes the arguments, and before it what was found in the wrong place.
    fn close(&mut self) {
        let missing = self.misplaced.take().map_or(String::new(), |misplaced| misplaced.missing());
        self.json(&format!("{missing}}}"));
    }

    /// All arguments at once, as the JSON object that comes next. Where one of these special tokens ends it too early,
    /// what it lacks is added. Ends the call.
    pub async fn object(mut self, ends: &[&str]) -> Result<(), NotACall> {
        let region = self.region.clone();
        let input = &region.input;
        let shape = self.shape.clone();
        let mut unclosed = Unclosed { arguments: &mut self, held: false };
        input.fence(ends);
        let read = json::copy(input, &shape, &mut unclosed).await;
        if input.unfence('"') && read.is_err() {
            if self.region.is_silent {
                return Ok(());
            }
            self.region.output.close_broken();
            input.pin();
            return Ok(());
        }
        read?;
        self.close();
        self.region.end_call();
        Ok(())
    }

    /// All arguments at once. Ends the call.
    pub fn all(mut self, object: Spelled) {
        let fitted = self.shape.fit(object).to_string();
        self.json(&fitted[..fitted.len() - 1]);
        self.close();
        self.region.end_call();
    }

    /// One argument, as the Python value that comes next between a call's parentheses.
    pub async fn argument(&mut self, name: &str) -> Result<(), NotACall> {
        let region = self.region.clone();
        let input = &region.input;
        let shape = self.shape.member(name);
        let key = self.key(name);
        Ok(json::argument(input, &shape, &mut Led { lead: &key, sink: self }).await?)
    }

    /// [`Arguments::argument`] of a call that ends with its line.
    pub async fn statement(&mut self, name: &str) -> Result<(), NotACall> {
        let region = self.region.clone();
        let input = &region.input;
        let shape = self.shape.member(name);
        let key = self.key(name);
        Ok(json::statement(input, &shape, &mut Led { lead: &key, sink: self }).await?)
    }

    /// One argument, as the text up to the first of these marks, which is taken too; its index is returned. A string
    /// streams; anything else is read by its schema once it is complete.
    pub async fn text(&mut self, name: &str, end: End<'_>) -> Result<usize, NotACall> {
        let region = self.region.clone();
        let input = &region.input;
        let shape = self.shape.member(name);
        if shape.types().is_some_and(Types::only_string) {
            return self.stream(input, name, end).await;
        }
        let (text, mark) = end.text(input).await.ok_or(NotACall)?;
        let text = if end.trim { without_newlines(&text) } else { &text };
        let value = shape.read(text);
        self.member(name, &value);
        Ok(mark)
    }

    /// [`Arguments::text`] where the model says whether it writes a string or another value's JSON.
    pub async fn stated(&mut self, name: &str, end: End<'_>, is_string: bool) -> Result<usize, NotACall> {
        let region = self.region.clone();
        let input = &region.input;
        let shape = self.shape.member(name);
        if is_string && shape.types().is_none_or(Types::only_string) {
            return self.stream(input, name, end).await;
        }
        let (text, mark) = end.text(input).await.ok_or(NotACall)?;
        let value = if is_string { shape.read(&text) } else { shape.read_value(&text) };
        self.member(name, &value);
        Ok(mark)
    }

    /// One argument whose value is known, but for what the schema wants of it.
    pub fn fitted(&mut self, name: &str, value: Spelled) {
        let value = self.shape.member(name).fit(value);
        self.member(name, &value);
    }

    /// One argument whose value is known.
    pub fn member(&mut self, name: &str, value: &Spelled) {
        let key = self.key(name);
        self.json(&format!("{key}{value}"));
    }

    /// The schema of the arguments.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What leads the next argument. Of two of the same name the first counts.
    fn key(&mut self, name: &str) -> String {
        let open = if self.names.is_empty() { "{" } else { "," };
        self.is_doubled = !self.names.insert(name.to_owned());
        format!("{open}{}:", Value::from(name))
    }

    async fn stream(&mut self, input: &Input, name: &str, end: End<'_>) -> Result<usize, NotACall> {
        let key = self.key(name);
        self.json(&format!("{key}\""));
        // The last newline waits for what follows it; the first is taken when it is there.
        let mut first = end.trim;
        let mut held = false;
        let emit = |mut piece: &str| {
            if std::mem::take(&mut first) {
                piece = piece.strip_prefix('\n').unwrap_or(piece);
            }
            if !piece.is_empty() && std::mem::take(&mut held) {
                self.json("\\n");
            }
            if end.trim && piece.ends_with('\n') {
                held = true;
                piece = &piece[..piece.len() - 1];
            }
            let quoted = Value::from(piece).to_string();
            self.json(&quoted[1..quoted.len() - 1]);
        };
        let mark = end.find(input, emit).await.ok_or(NotACall)?;
        self.json("\"");
        Ok(mark)
    }

    /// The call is complete.
    pub fn end(mut self) {
        self.is_doubled = false;
        if self.names.is_empty() {
            self.json("{");
        }
        self.close();
        self.region.end_call();
    }
}

/// Arguments as JSON that is there already: an object, alone in a list or written as a string; null, an empty list and an
/// empty string are none at all.
pub(super) fn all_of(json: &str) -> Result<Spelled, NotACall> {
    let value = match json::read(json) {
        Some(Spelled::Text(text)) if text.trim().is_empty() => return Ok(Spelled::members([])),
        Some(Spelled::Text(text)) => json::read(&text),
        value => value,
    };
    match value {
        Some(Spelled::Plain(text)) if text == "null" => Ok(Spelled::members([])),
        Some(Spelled::List(mut items)) if items.len() < 2 => match items.pop() {
            None => Ok(Spelled::members([])),
            Some(object @ Spelled::Members(_)) => Ok(object),
            Some(_) => Err(NotACall),
        },
        Some(object @ Spelled::Members(_)) => Ok(object),
        _ => Err(NotACall),
    }
}

/// Text without one newline at each end.
pub(in crate::chat::output) fn without_newlines(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.strip_suffix('\n').unwrap_or(text)
}
