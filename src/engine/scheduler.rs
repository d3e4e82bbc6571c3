//! Who computes next. A tick takes new jobs, lets the cancelled go, admits the waiting and runs one forward pass:
//! a chunk of one prompt, or the next token of every answer.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use super::{
    Draw, Finish, Job, Limits, Row, RunError, Runner, Step,
    prefix::Prefixes,
    sequence::Sequence,
    stats::{Counters, add, set},
};

pub struct Scheduler<R: Runner> {
    runner: R,
    limits: Limits,
    waiting: VecDeque<Job>,
    rows: Vec<Sequence<R::State>>,
    prefixes: Prefixes<R::State>,
    /// Prompts and answers take turns; this says whose is next when both are there.
    prompt_next: bool,
    counters: Arc<Counters>,
}

impl<R: Runner> Scheduler<R> {
    pub fn new(runner: R, limits: Limits, counters: Arc<Counters>) -> Scheduler<R> {
        let prefixes = Prefixes::new(limits.prefix_bytes);
        Scheduler { runner, limits, waiting: VecDeque::new(), rows: Vec::new(), prefixes, prompt_next: true, counters }
    }

    pub fn push(&mut self, job: Job) {
        self.waiting.push_back(job);
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.rows.is_empty()
    }

    /// One turn.
    pub fn tick(&mut self) {
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
    }

    /// Ends everything that runs or waits.
    pub fn close(&mut self) {
        for job in self.waiting.drain(..) {
            let _ = job.steps.send(Step::Finished(Finish::Closing));
            add(&self.counters.finished, 1);
        }
        for sequence in self.rows.drain(..) {
            sequence.finish(Finish::Closing);
            add(&self.counters.finished, 1);
        }
        self.publish();
    }

    fn publish(&self) {
        set(&self.counters.running, self.rows.len());
        set(&self.counters.prefix_entries, self.prefixes.len());
        set(&self.counters.prefix_bytes, self.prefixes.bytes());
    }

    /// A reader that went away ends its job. What was computed for it is remembered all the same.
    fn drop_cancelled(&mut self) {
        let before = self.waiting.len();
        self.waiting.retain(|job| !job.steps.is_closed());
        let gone = before - self.waiting.len();
        self.left_queue(gone);
        add(&self.counters.cancelled, gone);
        for index in (0..self.rows.len()).rev().filter(|&index| self.rows[index].is_cancelled()).collect::<Vec<_>>() {
            let sequence = self.rows.remove(index);
            self.remember(sequence.finish(Finish::Closing));
            add(&self.counters.cancelled, 1);
        }
    }

    fn left_queue(&self, count: usize) {
        self.counters.waiting.fetch_sub(count as u64, std::sync::atomic::Ordering::Relaxed);
    }

    /// Gives waiting jobs free rows, each from the longest remembered prefix.
    fn admit(&mut self) {
        while self.rows.len() < self.limits.rows {
            let Some(job) = self.waiting.pop_front() else { return };
            self.left_queue(1);
            let context = self.runner.context();
            if job.prompt.is_empty() || job.prompt.len() >= context {
                let text = format!("a prompt of {} tokens does not fit a context of {context}", job.prompt.len());
                let _ = job.steps.send(Step::Finished(Finish::Failed(text)));
                add(&self.counters.failed, 1);
                continue;
            }
            let runner = &self.runner;
            let found = self.prefixes.find(&job.prompt, |state, length| runner.cut(state, length));
            let (state, cached) = found.unwrap_or_else(|| (self.runner.fresh(), 0));
            let _ = job.steps.send(Step::Started { cached });
            add(&self.counters.prompt_tokens, job.prompt.len());
            add(&self.counters.cached_tokens, cached);
            self.rows.push(Sequence::new(job, state, cached));
        }
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

    /// How much of the prompt of row `index` to run. A state that cannot be cut stops before the last token, so that
    /// the prompt without it is remembered and the same prompt again finds it.
    fn chunk(&self, index: usize) -> usize {
        let left = self.rows[index].job().prompt.len().saturating_sub(self.rows[index].done());
        let chunk = self.limits.prefill_chunk.max(1).min(left);
        if chunk == left && left > 1 && !self.runner.cuts() { left - 1 } else { chunk }
    }

    /// One forward pass of these rows, and what follows from it.
    fn run(&mut self, indices: Vec<usize>, work: Work) {
        let started = Instant::now();
        let chunk = indices.first().map_or(0, |&index| self.chunk(index));
        let mut counts = Vec::with_capacity(indices.len());
        let outcome = {
            let chosen = self.rows.iter_mut().enumerate().filter(|(index, _)| indices.contains(index));
            let mut rows: Vec<Row<R::State>> = chosen
                .map(|(_, sequence)| {
                    let ends_prompt = sequence.done() + chunk >= sequence.job().prompt.len();
                    let (state, tokens, job, answer) = sequence.parts(chunk);
                    counts.push(tokens.len());
                    let draw = Draw { sampling: &job.sampling, prompt: &job.prompt, answer };
                    Row { state, tokens, draw: ends_prompt.then_some(draw) }
                })
                .collect();
            let runner = &mut self.runner;
            catch_unwind(AssertUnwindSafe(|| runner.forward(&mut rows)))
                .unwrap_or_else(|_| Err(RunError("the forward pass panicked".into())))
        };
        let spent = match work {
            Work::Prompt(_) => &self.counters.prefill_microseconds,
            Work::Answers => &self.counters.decode_microseconds,
        };
        add(spent, started.elapsed().as_micros() as usize);
        match outcome {
            Ok(tokens) => self.deliver(&indices, &counts, tokens),
            Err(error) => self.fail(&indices, &error),
        }
    }

    fn deliver(&mut self, indices: &[usize], counts: &[usize], tokens: Vec<Option<u32>>) {
        let context = self.runner.context();
        let mut ended = Vec::new();
        for ((&index, &count), token) in indices.iter().zip(counts).zip(tokens) {
            let sequence = &mut self.rows[index];
            sequence.advance(count);
            match token {
                Some(token) => {
                    add(&self.counters.generated_tokens, 1);
                    ended.extend(sequence.take(token, context).map(|reason| (index, reason)));
                }
                // Inside a prompt. A state that can be cut is remembered at the end, with all of this in it.
                None if !self.runner.cuts() => {
                    let snapshot = self.rows[index].snapshot();
                    self.remember(snapshot);
                }
                None => {}
            }
        }
        for (index, reason) in ended.into_iter().rev() {
            let sequence = self.rows.remove(index);
            self.remember(sequence.finish(reason));
            add(&self.counters.finished, 1);
        }
    }

    /// The states of a failed pass are not to be trusted, so nothing of them is remembered.
    fn fail(&mut self, indices: &[usize], error: &RunError) {
        for &index in indices.iter().rev() {
            self.rows.remove(index).finish(Finish::Failed(error.0.clone()));
            add(&self.counters.failed, 1);
        }
    }

    fn remember(&mut self, (tokens, state): (Vec<u32>, R::State)) {
        if tokens.is_empty() {
            return;
        }
        let bytes = self.runner.bytes(&state);
        let contains = self.runner.cuts();
        self.prefixes.insert(tokens, state, bytes, contains);
    }
}

/// What a forward pass is for.
enum Work {
    /// The next chunk of this row's prompt.
    Prompt(usize),
    /// The next token of every answer.
    Answers,
}
