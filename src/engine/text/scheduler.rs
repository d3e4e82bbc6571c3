//! Who computes next. A tick takes new jobs, lets the cancelled go, admits the waiting and runs one forward pass:
//! a chunk of one prompt, or the next token of every answer.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use super::{
    guides::Guides,
    job::{Finish, Job, Step},
    limits::Limits,
    prefix::Prefixes,
    runner::{Drawn, Row, Runner},
    sequence::{Memory, Sequence, Taking},
};
use crate::engine::{
    failure::{RunError, guarded},
    instance::{End, Instance, Progress},
    places::{Outcome, Place},
    stats::{Counters, add, set},
};

/// The text generation of one model.
pub struct Scheduler<R: Runner> {
    runner: R,
    limits: Limits,
    waiting: VecDeque<(Job, Place)>,
    rows: Vec<Sequence<R::State>>,
    prefixes: Prefixes<R::State>,
    guides: Guides,
    /// Prompts and answers take turns; this says whose is next when both are there.
    prompt_next: bool,
    counters: Arc<Counters>,
}

impl<R: Runner> Scheduler<R> {
    pub fn new(runner: R, limits: Limits, counters: Arc<Counters>) -> Scheduler<R> {
        let prefixes = Prefixes::new(limits.prefix_bytes);
        let (waiting, rows, guides) = (VecDeque::new(), Vec::new(), Guides::default());
        Scheduler { runner, limits, waiting, rows, prefixes, guides, prompt_next: true, counters }
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.rows.is_empty()
    }

    /// Ends a job that has no row.
    fn refuse(job: &Job, place: Place, reason: Finish) {
        place.end(outcome(Some(&reason)));
        let _ = job.steps.send(Step::Finished(reason));
    }

    /// Ends a row; without a reason, because nobody waits for one. The counters and the remembered prefixes are in
    /// order before the reader hears of it, so whoever has an answer finds them as the answer left them.
    fn end(&mut self, index: usize, reason: Option<Finish>) {
        let (steps, place, memory) = self.rows.remove(index).end();
        // The states of a failed pass are not to be trusted, so nothing of them is remembered.
        if !matches!(reason, Some(Finish::Failed(_))) {
            self.remember(memory);
        }
        self.publish();
        place.end(outcome(reason.as_ref()));
        if let Some(reason) = reason {
            let _ = steps.send(Step::Finished(reason));
        }
    }

    fn publish(&self) {
        set(&self.counters.prefix_entries, self.prefixes.len());
        set(&self.counters.prefix_bytes, self.prefixes.bytes());
    }

    /// A reader that went away ends its job. What was computed for it is remembered all the same.
    fn drop_cancelled(&mut self) {
        let mut kept = VecDeque::with_capacity(self.waiting.len());
        for (job, place) in self.waiting.drain(..) {
            match job.steps.is_closed() {
                true => place.end(Outcome::Cancelled),
                false => kept.push_back((job, place)),
            }
        }
        self.waiting = kept;
        for index in (0..self.rows.len()).rev().filter(|&index| self.rows[index].is_cancelled()).collect::<Vec<_>>() {
            self.end(index, None);
        }
    }

    /// Gives waiting jobs free rows, each from the longest remembered prefix.
    fn admit(&mut self) {
        while self.rows.len() < self.limits.rows {
            let Some((job, mut place)) = self.waiting.pop_front() else { return };
            place.begin();
            match self.start(&job) {
                Ok((state, cached)) => {
                    let branch = self.branch(&job.prompt, cached);
                    add(&self.counters.prompt_tokens, job.prompt.len());
                    add(&self.counters.cached_tokens, cached);
                    let _ = job.steps.send(Step::Started { cached });
                    let mut sequence = Sequence::new((job, place), state, cached, branch);
                    sequence.consult(&mut self.guides, 0);
                    self.rows.push(sequence);
                }
                Err(RunError(text)) => Self::refuse(&job, place, Finish::Failed(text)),
            }
        }
    }

    /// The state a job starts from, and how many of its prompt's tokens that holds.
    fn start(&mut self, job: &Job) -> Result<(R::State, usize), RunError> {
        let (length, context) = (job.prompt.len(), self.runner.context());
        if length == 0 || length >= context {
            return Err(RunError(format!("a prompt of {length} tokens does not fit a context of {context}")));
        }
        if job.max_tokens == 0 {
            return Err(RunError("an answer has at least 1 token, but max_tokens is 0".into()));
        }
        let (runner, prefixes) = (&mut self.runner, &mut self.prefixes);
        guarded("the model", || {
            let found = prefixes.find(&job.prompt, |state, length| runner.cut(state, length));
            found.unwrap_or_else(|| (runner.fresh(), 0))
        })
    }

    /// Where the prompt parts from the remembered ones, if a state there would have saved more than a few tokens of
    /// the ones that were not `cached`; else 0.
    fn branch(&self, prompt: &[u32], cached: usize) -> usize {
        let shared = self.prefixes.shared(prompt).min(prompt.len() - 1);
        if shared > cached + self.limits.prefill_chunk / 4 { shared } else { 0 }
    }

    fn choose(&mut self) -> Option<Work> {
        let prompt = self.rows.iter().position(Sequence::in_prompt);
        let answers = self.rows.iter().any(|row| !row.in_prompt());
        let prompt_next = self.prompt_next;
        // After a chunk of a prompt the answers are next, and the other way round.
        self.prompt_next = !(prompt.is_some() && prompt_next);
        match (prompt, answers) {
            (Some(index), false) => Some(Work::Prompt(index)),
            (Some(index), true) if prompt_next => Some(Work::Prompt(index)),
            (_, true) => Some(Work::Answers),
            (None, false) => None,
        }
    }

    /// How much of the prompt of row `index` to run; 0 where the prompt is done.
    fn chunk(&self, index: usize) -> usize {
        let row = &self.rows[index];
        let left = row.job().prompt.len().saturating_sub(row.done());
        let chunk = self.limits.prefill_chunk.max(1).min(left);
        if self.runner.cuts() { chunk } else { chunk.min(row.to_next_stop()) }
    }

    /// One forward pass of these rows, and what follows from it.
    fn run(&mut self, indices: Vec<usize>, work: Work) {
        let started = Instant::now();
        let chunk = indices.first().map_or(0, |&index| self.chunk(index));
        let mut counts = Vec::with_capacity(indices.len());
        let outcome = {
            let chosen = self.rows.iter_mut().enumerate().filter(|(index, _)| indices.contains(index));
            let mut rows: Vec<Row<R::State>> = chosen.map(|(_, sequence)| sequence.row(chunk)).collect();
            counts.extend(rows.iter().map(|row| row.tokens.len()));
            let runner = &mut self.runner;
            guarded("the model", || runner.forward(&mut rows)).and_then(|drawn| drawn)
        };
        let spent = match work {
            Work::Prompt(_) => &self.counters.prefill_microseconds,
            Work::Answers => &self.counters.decode_microseconds,
        };
        add(spent, started.elapsed().as_micros() as usize);
        match outcome {
            Ok(drawn) => self.deliver(&indices, &counts, drawn),
            Err(error) => self.fail(&indices, &error),
        }
    }

    fn deliver(&mut self, indices: &[usize], counts: &[usize], drawn: Vec<Option<Drawn>>) {
        let limits = Taking { context: self.runner.context(), chunk: self.limits.prefill_chunk.max(1) };
        let mut ended = Vec::new();
        for ((&index, &count), drawn) in indices.iter().zip(counts).zip(drawn) {
            let sequence = &mut self.rows[index];
            sequence.advance(count);
            match drawn {
                Some(drawn) => {
                    let answered = sequence.answered();
                    let reason = sequence.take(drawn, limits, &mut self.guides);
                    // A stop token is drawn, too.
                    add(&self.counters.generated_tokens, (sequence.answered() - answered).max(1));
                    ended.extend(reason.map(|reason| (index, reason)));
                }
                None => self.pass_on(index, count),
            }
        }
        for (index, reason) in ended.into_iter().rev() {
            self.end(index, Some(reason));
        }
    }

    /// After a chunk inside a prompt the next prompt has its turn, so that a short one need not wait for a long one.
    fn pass_on(&mut self, index: usize, count: usize) {
        // A state that can be cut is remembered at the end, with all of this in it.
        if !self.runner.cuts() {
            let snapshot = self.rows[index].snapshot(count, self.limits.prefill_chunk.max(1));
            snapshot.replaces.into_iter().for_each(|tokens| self.prefixes.forget(tokens));
            let memory = (snapshot.tokens.to_vec(), snapshot.state);
            self.remember(memory);
        }
        let sequence = self.rows.remove(index);
        self.rows.push(sequence);
    }

    fn fail(&mut self, indices: &[usize], error: &RunError) {
        for &index in indices.iter().rev() {
            self.end(index, Some(Finish::Failed(error.0.clone())));
        }
    }

    /// A state whose size cannot be told is forgotten: it cost time, no answer.
    fn remember(&mut self, (tokens, state): Memory<R::State>) {
        if tokens.is_empty() {
            return;
        }
        if let Ok(bytes) = guarded("the model", || self.runner.bytes(&state)) {
            self.prefixes.insert(tokens, state, bytes, self.runner.cuts());
        }
    }
}

impl<R: Runner> Instance for Scheduler<R> {
    type Job = Job;

    fn push(&mut self, job: Job, place: Place) {
        self.waiting.push_back((job, place));
    }

    fn tick(&mut self) -> Result<Progress, RunError> {
        self.drop_cancelled();
        self.admit();
        match self.choose() {
            Some(Work::Prompt(index)) => self.run(vec![index], Work::Prompt(index)),
            Some(Work::Answers) => {
                let answering = (0..self.rows.len()).filter(|&index| !self.rows[index].in_prompt()).collect();
                self.run(answering, Work::Answers);
            }
            None => {}
        }
        self.publish();
        Ok(if self.is_idle() { Progress::Idle } else { Progress::Busy })
    }

    fn context(&self) -> usize {
        self.runner.context()
    }

    fn bytes(&self) -> usize {
        self.prefixes.bytes()
    }

    fn shed(&mut self, bytes: usize) {
        self.prefixes.shed(bytes);
        self.publish();
    }

    fn close(&mut self, end: End) {
        let reason = match end {
            End::Closing => Finish::Closing,
            End::Failed(reason) => Finish::Failed(reason),
        };
        for (job, place) in self.waiting.drain(..) {
            Self::refuse(&job, place, reason.clone());
        }
        while !self.rows.is_empty() {
            self.end(0, Some(reason.clone()));
        }
        self.publish();
    }
}

/// How a job ended, for the counters; without a reason because its reader went away.
fn outcome(reason: Option<&Finish>) -> Outcome {
    match reason {
        Some(Finish::Failed(_)) => Outcome::Failed,
        Some(Finish::Stop | Finish::Length | Finish::Closing) => Outcome::Finished,
        None => Outcome::Cancelled,
    }
}

/// What a forward pass is for.
enum Work {
    /// The next chunk of this row's prompt.
    Prompt(usize),
    /// The next token of every answer.
    Answers,
}
