//! From the engine's steps to the events of an answer: tokens → text → thoughts, text and calls → what the request
//! asked for.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::mpsc::UnboundedReceiver;

use super::{
    Decoder, Event, Field, Finished, Logprob, ParallelCalls, Phase, Piece, Reason, Splitter, Tokenizer, ToolEvent,
    logprobs,
    output::{loops::Loops, repeats::Repeats, stop::StopStrings},
};
use crate::engine::{Drawn, Finish, Step};

/// How much longer a call's arguments may repeat themselves than other text: they are files, and tables.
const CALL_PATIENCE: usize = 4;

/// The answers to one request as they come. Dropping them cancels their jobs.
#[derive(Debug)]
pub struct Answers {
    answers: Vec<Answer>,
    /// Whose turn it is, so that none waits for another.
    turn: usize,
    ignored: Vec<Field>,
}

impl Answers {
    /// Of a request.
    pub(super) fn new(answers: Vec<Answer>) -> Answers {
        Answers { answers, turn: 0, ignored: Vec::new() }
    }

    /// Says what of the request had no effect.
    pub(super) fn with_ignored(self, ignored: Vec<Field>) -> Answers {
        Answers { ignored, ..self }
    }

    /// What of the request had no effect on this model.
    pub fn ignored(&self) -> &[Field] {
        &self.ignored
    }

    /// Emits the events of this many tokens together, after the first.
    pub fn set_interval(&mut self, tokens: usize) {
        self.answers.iter_mut().for_each(|answer| answer.interval = tokens.max(1));
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.answers.len()
    }

    /// The next event and the number of its answer; `None` after the last [`Event::Finished`].
    pub async fn next(&mut self) -> Option<(usize, Event)> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, Event)>> {
        let count = self.answers.len();
        let mut over = true;
        for offset in 0..count {
            let index = (self.turn + offset) % count;
            match self.answers[index].poll(context) {
                Poll::Ready(Some(event)) => {
                    self.turn = (index + 1) % count;
                    return Poll::Ready(Some((index, event)));
                }
                Poll::Ready(None) => {}
                Poll::Pending => over = false,
            }
        }
        if over { Poll::Ready(None) } else { Poll::Pending }
    }
}

/// One answer as it comes.
#[derive(Debug)]
pub(super) struct Answer {
    /// `None` once the answer has ended.
    steps: Option<UnboundedReceiver<Step>>,
    reader: Reader,
    ready: VecDeque<Event>,
    prompt_tokens: usize,
    /// The tokens drawn so far without the one that ends the answer; those of a stop string are counted.
    completion_tokens: usize,
    reasoning_tokens: usize,
    /// The events of so many tokens are emitted together.
    interval: usize,
    /// After how many tokens events were emitted last.
    emitted: usize,
}

/// What turns tokens into events.
#[derive(Debug)]
pub(super) struct Reader {
    /// The model's.
    pub tokenizer: Arc<Tokenizer>,
    /// Tokens to text.
    pub decoder: Decoder,
    /// Text to events.
    pub splitter: Splitter,
    /// Where the request wants the text to end.
    pub stop: StopStrings,
    /// `None` where the answer may repeat itself.
    pub loops: Option<Loops>,
    /// Whether more than one call is wanted.
    pub parallel_calls: ParallelCalls,
    /// The calls so far.
    pub repeats: Repeats,
}

impl Answer {
    /// Of a job whose prompt has so many tokens.
    pub(super) fn new(steps: UnboundedReceiver<Step>, reader: Reader, prompt_tokens: usize) -> Answer {
        Answer {
            steps: Some(steps),
            reader,
            ready: VecDeque::new(),
            prompt_tokens,
            completion_tokens: 0,
            reasoning_tokens: 0,
            interval: 1,
            emitted: 0,
        }
    }

    /// Whether what is ready may be emitted: the first token at once, later ones when there are enough.
    fn is_due(&self) -> bool {
        self.steps.is_none() || self.emitted == 0 || self.completion_tokens >= self.emitted + self.interval
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if self.is_due() {
                if let Some(event) = self.ready.pop_front() {
                    return Poll::Ready(Some(event));
                }
                self.emitted = self.completion_tokens;
            }
            let Some(steps) = &mut self.steps else { return Poll::Ready(None) };
            match steps.poll_recv(context) {
                Poll::Ready(step) => self.take(step),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Turns a step into events; `None` is an engine that went away.
    fn take(&mut self, step: Option<Step>) {
        match step {
            Some(Step::Started { cached }) => {
                self.ready.push_back(Event::Started { prompt_tokens: self.prompt_tokens, cached_tokens: cached });
            }
            Some(Step::Token(drawn)) => self.token(drawn),
            Some(Step::Finished(finish)) => self.end(finish),
            None => self.finish(Reason::Failed("the engine ended without finishing the answer".to_owned())),
        }
    }

    fn token(&mut self, drawn: Drawn) {
        let before = self.reader.splitter.phase();
        self.completion_tokens += 1;
        self.reasoning_tokens += usize::from(before == Phase::Reasoning);
        if let Some(logprob) = self.reader.logprob(&drawn) {
            self.emit(Event::Logprob(logprob));
        }
        let events = self.reader.read(drawn.id.into());
        if self.forward(events) {
            return;
        }
        let patience = if before == Phase::ToolCall { CALL_PATIENCE } else { 1 };
        if self.reader.loops.as_mut().is_some_and(|loops| loops.push(drawn.id.into(), patience)) {
            self.stop_loop();
        }
    }

    /// The model repeats itself without end. Calls that it has made stand; what it began of another is dropped.
    fn stop_loop(&mut self) {
        let phase = self.reader.splitter.phase();
        if phase == Phase::Text && self.reader.splitter.calls() > 0 {
            return self.finish(Reason::ToolCalls);
        }
        let rest = self.reader.finish(false);
        if !self.forward(rest) {
            self.flush();
            self.release();
            self.finish(Reason::Loop(phase));
        }
    }

    fn end(&mut self, finish: Finish) {
        let before = self.reader.splitter.phase();
        let rest = self.reader.finish(finish == Finish::Stop);
        // What ends without a mark ends where it was; a call may show only now.
        let phase = if before == Phase::Reasoning { before } else { self.reader.splitter.phase() };
        if self.forward(rest) {
            return;
        }
        self.flush();
        self.release();
        self.finish(match finish {
            // A call that the model itself did not bring to its end is as incomplete as one that was cut.
            Finish::Stop if phase == Phase::ToolCall => Reason::Length(phase),
            Finish::Stop if self.reader.splitter.calls() > 0 => Reason::ToolCalls,
            Finish::Stop => Reason::Stop,
            Finish::Length => Reason::Length(phase),
            Finish::Failed(message) => Reason::Failed(message),
            Finish::Closing => Reason::Closing,
        });
    }

    /// Passes events on; true where one of them ended the answer.
    fn forward(&mut self, events: Vec<Event>) -> bool {
        for event in events {
            match event {
                Event::Text(text) => {
                    self.release();
                    let watched = self.reader.stop.push(&text);
                    self.push_text(watched.text);
                    if let Some(string) = watched.stopped {
                        self.finish(Reason::StopString(string));
                        return true;
                    }
                }
                Event::ToolCall(event) => {
                    self.flush();
                    if self.call(event) {
                        self.finish(Reason::ToolCalls);
                        return true;
                    }
                }
                event => {
                    self.flush();
                    self.emit(event);
                }
            }
        }
        false
    }

    /// Passes on more of a call, as the request wants calls; true where no more of them are wanted.
    fn call(&mut self, event: ToolEvent) -> bool {
        let has_ended = matches!(event, ToolEvent::Ended { .. });
        if self.reader.parallel_calls != ParallelCalls::Distinct {
            self.emit(Event::ToolCall(event));
            return has_ended && self.reader.parallel_calls == ParallelCalls::Forbidden;
        }
        let Ok(certain) = self.reader.repeats.push(event) else { return true };
        certain.into_iter().for_each(|event| self.emit(Event::ToolCall(event)));
        false
    }

    /// Emits what was held of a call that goes on no more.
    fn release(&mut self) {
        let held = self.reader.repeats.finish();
        held.into_iter().for_each(|event| self.emit(Event::ToolCall(event)));
    }

    /// Emits text that waited for the rest of a stop string that will not come.
    fn flush(&mut self) {
        let held = self.reader.stop.finish();
        self.push_text(held);
    }

    fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.emit(Event::Text(text));
        }
    }

    /// Adds an event to those that are ready, as more of the last one where that waits for more.
    fn emit(&mut self, event: Event) {
        if self.interval > 1
            && let Some(last) = self.ready.back_mut()
        {
            match (last, &event) {
                (Event::Text(text), Event::Text(more)) | (Event::Reasoning(text), Event::Reasoning(more)) => {
                    return text.push_str(more);
                }
                (
                    Event::ToolCall(ToolEvent::Arguments { fragment, .. }),
                    Event::ToolCall(ToolEvent::Arguments { fragment: more, .. }),
                ) => return fragment.push_str(more),
                // It may stand before more than it led to, and not between two parts of one.
                (Event::Text(_) | Event::Reasoning(_) | Event::ToolCall(_), Event::Logprob(_)) => {
                    let at = self.ready.len() - 1;
                    return self.ready.insert(at, event);
                }
                _ => {}
            }
        }
        self.ready.push_back(event);
    }

    /// Ends the answer and, by dropping the receiver, the job.
    fn finish(&mut self, reason: Reason) {
        self.steps = None;
        let Answer { completion_tokens, reasoning_tokens, .. } = *self;
        let rejected = self.reader.splitter.rejected();
        self.emit(Event::Finished(Finished { reason, completion_tokens, reasoning_tokens, rejected }));
    }
}

impl Reader {
    /// What this token makes certain.
    fn read(&mut self, token: u32) -> Vec<Event> {
        let Some(name) = self.tokenizer.special_name(token) else {
            let text = self.decoder.push(&self.tokenizer, token);
            return if text.is_empty() { Vec::new() } else { self.splitter.push(Piece::Text(&text)) };
        };
        let rest = self.decoder.finish();
        let mut events = if rest.is_empty() { Vec::new() } else { self.splitter.push(Piece::Text(&rest)) };
        events.extend(self.splitter.push(Piece::Special(name)));
        events
    }

    /// What the end makes certain.
    fn finish(&mut self, by_the_model: bool) -> Vec<Event> {
        let rest = self.decoder.finish();
        let mut events = if rest.is_empty() { Vec::new() } else { self.splitter.push(Piece::Text(&rest)) };
        events.extend(if by_the_model { self.splitter.complete() } else { self.splitter.finish() });
        events
    }

    fn logprob(&self, drawn: &Drawn) -> Option<Logprob> {
        drawn.logprobs.as_ref().map(|logprobs| logprobs::logprob(&self.tokenizer, drawn.id.into(), logprobs))
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
