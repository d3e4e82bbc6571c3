//! Who computes next. A tick takes new jobs, lets the cancelled go, admits the waiting and runs one forward pass:
//! a chunk of one prompt, or the next token of every answer.

use std::{
    any::Any,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use super::{
    Drawn, Finish, Job, Limits, Row, RunError, Runner, Step,
    guides::Guides,
    prefix::Prefixes,
    sequence::{Memory, Sequence, Taking},
    stats::{Counters, add, set},
};

pub struct Scheduler<R: Runner> {
    runner: R,
    limits: Limits,
    waiting: VecDeque<Job>,
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
        while let Some(job) = self.waiting.pop_front() {
            self.left_queue(1);
            self.refuse(&job, Finish::Closing);
        }
        while !self.rows.is_empty() {
            self.end(0, Some(Finish::Closing));
        }
        self.publish();
    }

    /// Ends a job that has no row.
    fn refuse(&self, job: &Job, reason: Finish) {
        self.count(Some(&reason));
        let _ = job.steps.send(Step::Finished(reason));
    }

    /// Ends a row; without a reason, because nobody waits for one. The counters and the remembered prefixes are in
    /// order before the reader hears of it, so whoever has an answer finds them as the answer left them.
    fn end(&mut self, index: usize, reason: Option<Finish>) {
        let (steps, memory) = self.rows.remove(index).end();
        // The states of a failed pass are not to be trusted, so nothing of them is remembered.
        if !matches!(reason, Some(Finish::Failed(_))) {
            self.remember(memory);
        }
        self.count(reason.as_ref());
        self.publish();
        if let Some(reason) = reason {
            let _ = steps.send(Step::Finished(reason));
        }
    }

    fn count(&self, reason: Option<&Finish>) {
        let counter = match reason {
            Some(Finish::Failed(_)) => &self.counters.failed,
            Some(Finish::Stop | Finish::Length | Finish::Closing) => &self.counters.finished,
            None => &self.counters.cancelled,
        };
        add(counter, 1);
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
            self.end(index, None);
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
            match self.start(&job) {
                Ok((state, cached)) => {
                    let branch = self.branch(&job.prompt, cached);
                    add(&self.counters.prompt_tokens, job.prompt.len());
                    add(&self.counters.cached_tokens, cached);
                    let _ = job.steps.send(Step::Started { cached });
                    let mut sequence = Sequence::new(job, state, cached, branch);
                    sequence.consult(&mut self.guides, 0);
                    self.rows.push(sequence);
                }
                Err(RunError(text)) => self.refuse(&job, Finish::Failed(text)),
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
        guarded(|| {
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
            guarded(|| runner.forward(&mut rows)).and_then(|drawn| drawn)
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
        if let Ok(bytes) = guarded(|| self.runner.bytes(&state)) {
            self.prefixes.insert(tokens, state, bytes, self.runner.cuts());
        }
    }
}

/// Asks the model for something. A panic in there is its failure, not the device thread's end.
fn guarded<T>(ask: impl FnOnce() -> T) -> Result<T, RunError> {
    let asked = catch_unwind(AssertUnwindSafe(ask));
    asked.map_err(|panic| RunError(format!("the model panicked: {}", said(&*panic))))
}

/// What a panic said.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}

/// What a forward pass is for.
enum Work {
    /// The next chunk of this row's prompt.
    Prompt(usize),
    /// The next token of every answer.
    Answers,
}
