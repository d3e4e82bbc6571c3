//! Tells thoughts, text and calls apart in an answer as it comes. Streamed or not, it is the same function over the
//! same text.

use std::{future::Future, pin::Pin, sync::Arc, task};

use super::{
    calls::Region,
    reading::{Beginning, Reading},
    tools,
};
use crate::chat::{
    Event, Phase,
    dialect::{Dialect, Program, ReasoningTags, ToolFormat},
};

mod actions;
mod channels;
mod messages;
mod recipients;

/// Bytes at the end of a cut answer that may be nothing but the markup that closes a call.
const CLOSING: usize = 96;

/// A piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Plain text.
    Text(&'a str),
    /// A special token, by its name.
    Special(&'a str),
}

/// Reads one answer.
pub struct Splitter {
    reading: Arc<Reading>,
    /// `None` once it has come to its end.
    program: Option<Running>,
}

/// A program that reads an answer.
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Splitter {
    /// For an answer in this dialect.
    pub fn new(dialect: &'static Dialect, beginning: Beginning<'_>) -> Splitter {
        let reading = Arc::new(Reading::new(dialect, beginning));
        let program = Some(program(Arc::clone(&reading)));
        Splitter { reading, program }
    }

    /// The events that this piece makes certain.
    pub fn push(&mut self, piece: Piece<'_>) -> Vec<Event> {
        match piece {
            Piece::Text(text) => self.reading.input.push(text),
            Piece::Special(name) => self.reading.input.push_special(name),
        }
        self.run();
        self.reading.output.take()
    }

    /// The answer was cut, or its end says nothing.
    pub fn finish(&mut self) -> Vec<Event> {
        self.reading.input.end();
        self.rest()
    }

    /// The model itself ended the answer, with one of its dialect's stop tokens, which was not pushed.
    pub fn complete(&mut self) -> Vec<Event> {
        self.reading.input.end_with(self.reading.dialect.stop_tokens);
        self.rest()
    }

    fn rest(&mut self) -> Vec<Event> {
        self.run();
        self.reading.output.finish();
        self.reading.output.take()
    }

    /// What the answer is in the middle of.
    pub fn phase(&self) -> Phase {
        self.reading.output.phase()
    }

    /// Bytes held back at the moment.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.reading.input.held()
    }

    /// How many calls have begun.
    pub fn calls(&self) -> usize {
        self.reading.output.calls()
    }

    /// The tools that were called and that nobody declared.
    pub fn rejected(&self) -> Vec<String> {
        self.reading.output.rejected()
    }

    fn run(&mut self) {
        let mut context = task::Context::from_waker(task::Waker::noop());
        if let Some(program) = &mut self.program
            && program.as_mut().poll(&mut context).is_ready()
        {
            self.program = None;
        }
        if self.program.is_none() {
            self.reading.input.discard();
        }
    }
}

impl std::fmt::Debug for Splitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Splitter").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

/// The program of the answer's dialect.
fn program(reading: Arc<Reading>) -> Running {
    Box::pin(async move {
        match &reading.dialect.program {
            Program::Marks => reading.by_marks().await,
            Program::Channels => reading.by_channels().await,
            Program::Messages(messages) => reading.by_messages(messages).await,
            Program::Recipients(recipients) => reading.by_recipients(recipients).await,
            Program::Actions => reading.by_actions().await,
        }
    })
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

impl Reading {
    /// Reads an answer that sets thoughts and calls off by marks.
    async fn by_marks(self: &Arc<Reading>) {
        let ended = match self.output.phase() {
            Phase::Reasoning => self.thought().await,
            _ => Ended::Thought,
        };
        self.bare_call().await;
        self.text(ended).await;
    }

    /// Marks that end a passage of an answer that consists of several.
    fn ends(&self) -> &'static [&'static str] {
        match &self.dialect.program {
            Program::Messages(messages) => messages.ends,
            _ => &[],
        }
    }

    /// One passage, which is a thought or text as this phase says, to the mark that ends it.
    async fn passage(self: &Arc<Reading>, phase: Phase) {
        let mut ended = Ended::Thought;
        loop {
            self.output.enter(phase);
            if phase == Phase::Reasoning {
                ended = self.thought().await;
            }
            match ended {
                Ended::Passage => return,
                // The passage is a thought to its end.
                Ended::Call if !self.ends().is_empty() => {}
                _ => return self.text(ended).await,
            }
        }
    }

    /// The answer's text, and the calls and thoughts in it, to its end or the passage's. `thought` is what ended the
    /// thought before it.
    async fn text(self: &Arc<Reading>, thought: Ended) {
        let marks = self.marks(Phase::Text);
        let texts: Vec<&str> = marks.iter().map(|(text, _)| *text).collect();
        // Whether there was nothing but space since a mark that is code: then the next mark is as well.
        let mut quoted = false;
        let mut unclosed = thought == Ended::Call;
        let emit = |text: &str, quoted: &mut bool| {
            *quoted &= text.trim().is_empty();
            self.output.emit(text);
        };
        while let Some(found) = self.input.until(&texts, |text| emit(text, &mut quoted)).await {
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
                Mark::OpenThought | Mark::CloseThought => self.output.emit(text),
                Mark::Call if quoted || self.output.in_code() => {
                    quoted = true;
                    self.output.emit(text);
                }
                Mark::Call => {
                    if !self.call(text).await {
                        self.output.emit(text);
                    }
                }
            }
        }
    }

    /// A thought, to the end of its mark.
    async fn thought(self: &Arc<Reading>) -> Ended {
        let mut ended = Ended::Thought;
        let marks = self.marks(Phase::Reasoning);
        let texts: Vec<&str> = marks.iter().map(|(text, _)| *text).collect();
        while let Some(found) = self.input.until(&texts, |text| self.output.emit(text)).await {
            let text = texts[found];
            match marks[found].1 {
                // A thought may speak of its own marks.
                _ if self.output.after_backtick() && self.input.is_next("`").await => self.output.emit(text),
                Mark::CloseThought => break,
                Mark::End => {
                    ended = Ended::Passage;
                    break;
                }
                Mark::Dropped => {}
                // The prompt has opened the thought already.
                Mark::OpenThought if !self.output.has_text() => {}
                Mark::OpenThought => self.output.emit(text),
                Mark::Call => {
                    if self.call(text).await {
                        ended = Ended::Call;
                        break;
                    }
                    self.output.emit(text);
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
        let drops = self.dialect.drops.iter().map(|text| (*text, Mark::Dropped));
        // What is left out of the text may still end a thought.
        marks.extend(drops.clone().filter(|_| phase == Phase::Text));
        if let Some(ReasoningTags { open, close, .. }) = &self.dialect.reasoning {
            marks.extend(open.iter().map(|text| (*text, Mark::OpenThought)));
            marks.extend(close.iter().map(|text| (*text, Mark::CloseThought)));
        }
        let in_thoughts = self.dialect.reasoning.as_ref().is_some_and(|tags| tags.calls_inside);
        if self.may_have_calls() && (phase == Phase::Text || in_thoughts) {
            for format in self.dialect.tools {
                marks.extend(format.opens.iter().map(|text| (*text, Mark::Call)));
            }
        }
        marks.extend(drops);
        marks.extend(self.ends().iter().map(|text| (*text, Mark::End)));
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
    async fn bare_call(self: &Arc<Reading>) {
        let may_be_bare = self.dialect.tools.iter().any(|format| !format.bare.is_empty());
        if !may_be_bare || !self.may_have_calls() {
            return;
        }
        let Some((first, _)) = self.input.peek_after(0).await else { return };
        let formats = self.dialect.tools.iter().filter(|format| format.bare.contains(&first));
        self.try_calls(formats.map(|format| (*format, None)).collect()).await;
    }

    /// Calls behind this mark; whether there were any.
    async fn call(self: &Arc<Reading>, mark: &str) -> bool {
        let opened = |format: &&'static ToolFormat| {
            let mark = format.opens.iter().find(|own| **own == mark)?;
            Some((*format, Some(*mark)))
        };
        self.try_calls(self.dialect.tools.iter().filter_map(opened).collect()).await
    }

    /// Tries these formats one after the other, each with the mark that opened it. Where none of them reads a call,
    /// nothing was taken.
    async fn try_calls(self: &Arc<Reading>, formats: Vec<(&'static ToolFormat, Option<&'static str>)>) -> bool {
        let before = self.output.calls();
        for (format, opened_by) in formats {
            if self.output.calls_are_over() {
                break;
            }
            self.input.pin();
            if opened_by.is_none() {
                self.input.skip_space().await;
            }
            let read = tools::read(format, Region::new(self, opened_by)).await;
            if read.is_err() {
                self.give_up(before);
            }
            let undeclared = self.input.holds() && self.output.calls() == before;
            if read.is_ok() && undeclared {
                self.no_calls();
            }
            self.input.unpin();
            if read.is_ok() && !undeclared || self.output.calls() > before {
                return true;
            }
        }
        self.input.unpin();
        false
    }

    /// What was read is in order, but no tool of those called was declared: it is text.
    fn no_calls(&self) {
        if self.input.is_cut() {
            self.output.end_calls();
        }
        self.input.rewind();
    }

    /// A format could not go on: what was read since its last complete call becomes text again.
    fn give_up(self: &Arc<Reading>, before: usize) {
        if self.output.is_call_open() {
            // Cut off: the call stays open.
            if self.input.met_end() {
                self.input.discard();
            } else {
                self.output.close_broken();
            }
            return;
        }
        let over = self.input.met_end();
        // With more text this might have become a call, and whatever looks like one in it a part of that.
        if self.input.is_cut() {
            self.output.end_calls();
        }
        self.input.rewind();
        // The end of a cut answer may be the beginning of what closes the call; a quote or a brace never is.
        let rest = self.input.pending();
        if over && self.output.calls() > before && rest.len() <= CLOSING && !rest.contains(['"', '{']) {
            self.input.discard();
        }
    }
}
