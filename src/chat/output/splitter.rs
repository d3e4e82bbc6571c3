//! Tells thoughts, text and calls apart in an answer as it comes. Streamed or not, it is the same function over the
//! same text.

use std::{future::Future, pin::Pin, task};

use super::{
    emitter::Output,
    input::Input,
    tools::{Calls, Format, Region},
};
use crate::chat::{
    Event, Phase, Tool,
    dialect::{Dialect, Tags},
};

mod actions;
mod channels;
mod messages;
pub mod recipients;

pub use messages::{Kind, Messages};

/// Bytes at the end of a cut answer that may be nothing but the markup that closes a call.
const CLOSING: usize = 96;

/// A piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    /// A special token, by its name.
    Special(&'a str),
}

/// Reads one answer.
pub struct Splitter {
    input: Input,
    output: Output,
    calls: Calls,
    program: Option<Program>,
    stop_tokens: &'static [&'static str],
}

/// How a dialect's answers are read.
pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An answer that is being read: what programs work on.
#[derive(Clone)]
pub struct Answer {
    pub input: Input,
    pub output: Output,
    pub calls: Calls,
    pub dialect: &'static Dialect,
    style: &'static Style,
}

/// What a family's answers have beside marks around thoughts and calls.
#[derive(Debug)]
pub struct Style {
    /// Markup that says nothing.
    pub drops: &'static [&'static str],
    /// Marks that end a passage of an answer that consists of several.
    pub ends: &'static [&'static str],
}

static PLAIN: Style = Style { drops: &[], ends: &[] };

impl Splitter {
    /// `special_marks` are the names of the model's special tokens; `starts` is what the prompt's end has begun
    /// already; `ids` should be random.
    pub fn new(
        dialect: &'static Dialect,
        tools: &[Tool],
        starts: Phase,
        special_marks: impl IntoIterator<Item = String>,
        ids: u64,
    ) -> Splitter {
        let (input, output) = (Input::new(special_marks), Output::new(starts, ids, dialect.call_ids));
        let calls = Calls::new(tools, output.clone());
        let answer =
            Answer { input: input.clone(), output: output.clone(), calls: calls.clone(), dialect, style: &PLAIN };
        let program = (dialect.program)(answer);
        Splitter { input, output, calls, program: Some(program), stop_tokens: dialect.stop_tokens }
    }

    /// The events that this piece makes certain.
    pub fn push(&mut self, piece: Piece<'_>) -> Vec<Event> {
        match piece {
            Piece::Text(text) => self.input.push(text),
            Piece::Special(name) => self.input.push_special(name),
        }
        self.run();
        self.output.take()
    }

    /// The answer was cut, or its end says nothing.
    pub fn finish(&mut self) -> Vec<Event> {
        self.input.end();
        self.rest()
    }

    /// The model itself ended the answer, with one of its dialect's stop tokens, which was not pushed.
    pub fn complete(&mut self) -> Vec<Event> {
        self.input.end_with(self.stop_tokens);
        self.rest()
    }

    fn rest(&mut self) -> Vec<Event> {
        self.run();
        self.output.finish();
        self.output.take()
    }

    /// What the answer is in the middle of.
    pub fn phase(&self) -> Phase {
        self.output.phase()
    }

    /// Bytes held back at the moment.
    #[cfg(test)]
    pub(in crate::chat) fn held(&self) -> usize {
        self.input.held()
    }

    /// How many calls have begun.
    pub fn calls(&self) -> usize {
        self.output.calls()
    }

    /// The tools that were called and that nobody declared.
    pub fn rejected(&self) -> Vec<String> {
        self.calls.rejected()
    }

    fn run(&mut self) {
        let mut context = task::Context::from_waker(task::Waker::noop());
        if let Some(program) = &mut self.program
            && program.as_mut().poll(&mut context).is_ready()
        {
            self.program = None;
        }
        if self.program.is_none() {
            self.input.discard();
        }
    }
}

impl std::fmt::Debug for Splitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Splitter").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

/// What a mark in an answer may mean.
#[derive(Clone, Copy)]
enum Mark {
    OpenThought,
    CloseThought,
    Call,
    Dropped,
    End,
}

/// What a thought ended with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Its own mark, or the text.
    Thought,
    /// A call, before its own mark.
    Call,
    /// A mark that ends the passage.
    Passage,
}

impl Answer {
    /// The program of dialects that set thoughts and calls off by marks.
    pub fn by_marks(self) -> Program {
        Box::pin(async move {
            let ended = match self.output.phase() {
                Phase::Reasoning => self.thought().await,
                _ => Ended::Thought,
            };
            self.bare_call().await;
            self.text(ended).await;
        })
    }

    /// The same answer, with what this style adds.
    pub fn styled(mut self, style: &'static Style) -> Answer {
        self.style = style;
        self
    }

    /// One passage, which is a thought or text as this phase says, to the mark that ends it.
    pub(in crate::chat) async fn passage(&self, phase: Phase) {
        let mut ended = Ended::Thought;
        loop {
            self.output.enter(phase);
            if phase == Phase::Reasoning {
                ended = self.thought().await;
            }
            match ended {
                Ended::Passage => return,
                // The passage is a thought to its end.
                Ended::Call if !self.style.ends.is_empty() => {}
                _ => return self.text(ended).await,
            }
        }
    }

    /// The answer's text, and the calls and thoughts in it, to its end or the passage's. `thought` is what ended the
    /// thought before it.
    async fn text(&self, thought: Ended) {
        let marks = self.marks(Phase::Text);
        let texts: Vec<&str> = marks.iter().map(|(text, _)| *text).collect();
        // Whether nothing but space was said since a mark that is code: then the next mark is as well.
        let mut quoted = false;
        let mut unclosed = thought == Ended::Call;
        let say = |text: &str, quoted: &mut bool| {
            *quoted &= text.trim().is_empty();
            self.output.say(text);
        };
        while let Some(found) = self.input.until(&texts, |text| say(text, &mut quoted)).await {
            let text = texts[found];
            match marks[found].1 {
                // Only an answer that has not begun can still turn into a thought.
                Mark::OpenThought if self.output.is_blank() || self.thinks_again() => {
                    self.output.enter(Phase::Reasoning);
                    match self.thought().await {
                        Ended::Passage => return,
                        ended => unclosed = ended == Ended::Call,
                    }
                    self.bare_call().await;
                }
                // The mark of a thought that a call has ended.
                Mark::CloseThought if unclosed => {
                    unclosed = false;
                    self.output.drop_mark();
                }
                Mark::CloseThought if self.output.is_blank() || self.thinks_again() => self.output.enter(Phase::Text),
                Mark::Dropped => self.output.drop_mark(),
                Mark::End => return,
                Mark::OpenThought | Mark::CloseThought => self.output.say(text),
                Mark::Call if quoted || self.output.in_code() => {
                    quoted = true;
                    self.output.say(text);
                }
                Mark::Call => {
                    if !self.call(text).await {
                        self.output.say(text);
                    }
                }
            }
        }
    }

    /// A thought, to the end of its mark.
    async fn thought(&self) -> Ended {
        let mut ended = Ended::Thought;
        let marks = self.marks(Phase::Reasoning);
        let texts: Vec<&str> = marks.iter().map(|(text, _)| *text).collect();
        while let Some(found) = self.input.until(&texts, |text| self.output.say(text)).await {
            let text = texts[found];
            match marks[found].1 {
                // A thought may speak of its own marks.
                _ if self.output.after_backtick() && self.input.is_next("`").await => self.output.say(text),
                Mark::CloseThought => break,
                Mark::End => {
                    ended = Ended::Passage;
                    break;
                }
                Mark::Dropped => {}
                // The prompt has opened the thought already.
                Mark::OpenThought if !self.output.has_said() => {}
                Mark::OpenThought => self.output.say(text),
                Mark::Call => {
                    if self.call(text).await {
                        ended = Ended::Call;
                        break;
                    }
                    self.output.say(text);
                }
            }
        }
        self.output.enter(Phase::Text);
        ended
    }

    fn thinks_again(&self) -> bool {
        self.dialect.reasoning.as_ref().is_some_and(|tags| tags.again)
    }

    /// The marks that count in this phase.
    fn marks(&self, phase: Phase) -> Vec<(&'static str, Mark)> {
        let mut marks = Vec::new();
        let drops = self.style.drops.iter().map(|text| (*text, Mark::Dropped));
        // What says nothing in the text may still end a thought.
        marks.extend(drops.clone().filter(|_| phase == Phase::Text));
        if let Some(Tags { open, close, .. }) = &self.dialect.reasoning {
            marks.extend(open.iter().map(|text| (*text, Mark::OpenThought)));
            marks.extend(close.iter().map(|text| (*text, Mark::CloseThought)));
        }
        let in_thoughts = self.dialect.reasoning.as_ref().is_some_and(|tags| tags.calls_inside);
        if self.calls.any() && (phase == Phase::Text || in_thoughts) {
            for format in self.dialect.tools {
                marks.extend(format.opens.iter().map(|text| (*text, Mark::Call)));
            }
        }
        marks.extend(drops);
        marks.extend(self.style.ends.iter().map(|text| (*text, Mark::End)));
        // A mark may be there twice, as where it opens calls in several formats: the first counts.
        let mut seen = Vec::new();
        marks.retain(|(text, _)| {
            !seen.contains(text) && {
                seen.push(*text);
                true
            }
        });
        marks
    }

    /// A call that needs no mark at the beginning of the answer.
    async fn bare_call(&self) {
        let formats: Vec<&'static Format> =
            self.dialect.tools.iter().copied().filter(|format| !format.bare.is_empty()).collect();
        if formats.is_empty() || !self.calls.any() {
            return;
        }
        let Some((first, _)) = self.input.peek_after(0).await else { return };
        let formats = formats.into_iter().filter(|format| format.bare.contains(&first)).map(|format| (format, 0));
        self.try_calls(formats.collect(), true).await;
    }

    /// Calls behind this mark; whether there were any.
    async fn call(&self, mark: &str) -> bool {
        let find = |format: &&'static Format| {
            let index = format.opens.iter().position(|own| *own == mark)?;
            Some((*format, index))
        };
        self.try_calls(self.dialect.tools.iter().filter_map(find).collect(), false).await
    }

    /// Tries these formats one after the other. Where none of them reads a call, nothing was taken.
    async fn try_calls(&self, formats: Vec<(&'static Format, usize)>, is_bare: bool) -> bool {
        let before = self.output.calls();
        for (format, opened_by) in formats {
            if self.calls.are_over() {
                break;
            }
            self.input.pin();
            if is_bare {
                self.input.skip_space().await;
            }
            let (input, calls) = (self.input.clone(), self.calls.clone());
            let region = if is_bare { Region::bare(input, calls) } else { Region::marked(input, opened_by, calls) };
            let read = (format.parse)(region).await;
            if read.is_err() {
                self.give_up(before).await;
            }
            if read.is_ok() || self.output.calls() > before {
                self.input.unpin();
                return true;
            }
        }
        self.input.unpin();
        false
    }

    /// A format could not go on: what was read since its last complete call becomes text again.
    async fn give_up(&self, before: usize) {
        match self.calls.is_open() {
            // Cut off: the call stays open.
            true if self.input.met_end() => self.input.discard(),
            true => self.calls.close_broken(),
            false => {
                let over = self.input.met_end();
                // With more text this might have become a call, and whatever looks like one in it a part of that.
                if self.input.is_cut() {
                    self.calls.end();
                }
                self.input.rewind();
                // The end of a cut answer may be the beginning of what closes the call; a quote or a brace never is.
                let rest = self.input.pending();
                if over && self.output.calls() > before && rest.len() <= CLOSING && !rest.contains(['"', '{']) {
                    self.input.discard();
                }
            }
        }
    }
}
