//! Who computes next. A tick takes new jobs, lets the cancelled go, admits the waiting and runs one forward pass: the
//! next tokens of every answer, and chunks of prompts up to a budget of tokens.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    drawn::Accepted,
    guides::Guides,
    job::{Finish, Job, Step},
    limits::Limits,
    prefix::{Found, Key, Prefixes},
    runner::{Row, Runner},
    sequence::{Bounds, Ended, Part, Sequence, Snapshot, Start},
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
    /// The id of the next sequence.
    next_id: u64,
    /// The pass that was submitted and not collected yet.
    flight: Option<Flight<R::Pass>>,
    prefixes: Prefixes<R::State>,
    guides: Guides,
    counters: Arc<Counters>,
    /// When the last pass was collected.
    landed: Instant,
}

/// A submitted pass.
struct Flight<Pass> {
    pass: Pass,
    rows: Vec<Flying>,
    submitted: Instant,
}

/// A sequence's row in a submitted pass.
#[derive(Clone, Copy)]
struct Flying {
    /// The sequence's.
    id: u64,
    /// Tokens that it adds to the state.
    count: usize,
    /// How many of them are the prompt's.
    of_prompt: usize,
    /// How many tokens it may add to the answer; 0 inside a prompt.
    most: usize,
}

/// A pass that could not be submitted.
struct Unsubmitted {
    ids: Vec<u64>,
    error: RunError,
}

impl<R: Runner> Scheduler<R> {
    /// Without jobs. It keeps `counters` up to date.
    pub fn new(runner: R, limits: Limits, counters: Arc<Counters>) -> Scheduler<R> {
        Scheduler {
            prefixes: Prefixes::new(limits.prefix_bytes, runner.cuts()),
            runner,
            limits,
            waiting: VecDeque::new(),
            rows: Vec::new(),
            next_id: 0,
            flight: None,
            guides: Guides::default(),
            counters,
            landed: Instant::now(),
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.rows.is_empty() && self.flight.is_none()
    }

    fn chunk(&self) -> usize {
        self.limits.prefill_chunk.max(1)
    }

    /// Ends a job that has no row.
    fn refuse(job: &Job, place: Place, reason: Finish) {
        place.end(outcome(Some(&reason)));
        let _ = job.steps.send(Step::Finished(reason));
    }

    /// Ends a row; without a reason, because nobody waits for one. The counters and the remembered prefixes are in
    /// order before the reader hears of it, so whoever has an answer finds them as the answer left them.
    fn end(&mut self, index: usize, reason: Option<Finish>) {
        let Ended { steps, place, snapshot } = self.rows.remove(index).end();
        self.remember(snapshot);
        self.publish();
        place.end(outcome(reason.as_ref()));
        if let Some(reason) = reason {
            let _ = steps.send(Step::Finished(reason));
        }
    }

    /// Ends a row whose state is not to be trusted, so that nothing of it is remembered.
    fn abandon(row: Sequence<R::State>, reason: Finish) {
        let (steps, place) = row.abandon();
        place.end(outcome(Some(&reason)));
        let _ = steps.send(Step::Finished(reason));
    }

    fn publish(&self) {
        set(&self.counters.prefix_entries, self.prefixes.len());
        set(&self.counters.prefix_bytes, self.prefixes.bytes());
    }

    /// A reader that went away ends its job. What was computed for it is remembered all the same.
    fn drop_cancelled(&mut self) {
        if self.waiting.iter().any(|(job, _)| job.steps.is_closed()) {
            let waiting = std::mem::take(&mut self.waiting);
            let (gone, left): (VecDeque<_>, VecDeque<_>) =
                waiting.into_iter().partition(|(job, _)| job.steps.is_closed());
            self.waiting = left;
            gone.into_iter().for_each(|(_, place)| place.end(Outcome::Cancelled));
        }
        for index in (0..self.rows.len()).rev() {
            if self.rows[index].is_cancelled() {
                self.end(index, None);
            }
        }
    }

    /// Gives waiting jobs free rows, each from the longest remembered prefix.
    fn admit(&mut self) {
        while self.rows.len() < self.limits.rows {
            let Some((job, mut place)) = self.waiting.pop_front() else { return };
            place.begin();
            match self.start(&job) {
                Ok(start) => {
                    add(&self.counters.prompt_tokens, job.prompt.tokens.len());
                    add(&self.counters.cached_tokens, start.cached);
                    let _ = job.steps.send(Step::Started { cached: start.cached });
                    let mut sequence = Sequence::new(self.next_id, (job, place), start);
                    self.next_id += 1;
                    sequence.consult(&mut self.guides, 0);
                    self.rows.push(sequence);
                }
                Err(RunError(text)) => Self::refuse(&job, place, Finish::Failed(text)),
            }
        }
    }

    /// What a job starts from.
    fn start(&mut self, job: &Job) -> Result<Start<R::State>, RunError> {
        let length = job.prompt.tokens.len();
        let context = self.runner.context();
        if length == 0 || length >= context {
            return Err(RunError(format!("a prompt of {length} tokens does not fit a context of {context}")));
        }
        if job.max_tokens == 0 {
            return Err(RunError("an answer has at least 1 token, but max_tokens is 0".into()));
        }
        job.prompt.check()?;
        let keys = Key::of_prompt(&job.prompt);
        let runner = &mut self.runner;
        let prefixes = &mut self.prefixes;
        let (state, cached, shared) = guarded("the model", || {
            let Found { state, shared } = prefixes.find(&keys, |state, length| runner.cut(state, length));
            let (state, cached) = state.unwrap_or_else(|| (runner.fresh(), 0));
            (state, cached, shared)
        })?;
        let parts_at = shared.min(length - 1);
        // A state there is worth having if it would have saved more than a few of the tokens that were not cached.
        let branch = if parts_at > cached + self.limits.prefill_chunk / 4 { parts_at } else { 0 };
        Ok(Start { keys, state, cached, branch })
    }

    /// What each row does in the next pass; `None` where it waits. Answers come first; what the budget of prompt tokens
    /// leaves goes to the prompts in their order.
    fn plan(&self) -> Vec<Option<Part>> {
        let mut budget = self.chunk();
        self.rows.iter().map(|row| self.part(row, &mut budget)).collect()
    }

    fn part(&self, row: &Sequence<R::State>, budget: &mut usize) -> Option<Part> {
        let cuts = self.runner.cuts();
        let flying = self.flight.iter().flat_map(|flight| &flight.rows).position(|flying| flying.id == row.id);
        if !row.in_prompt() {
            let Some(index) = flying else { return Some(Part::Answer) };
            // A row whose token is on its way goes on with it unseen, or waits.
            return row.may_run_ahead(self.runner.context()).then_some(Part::Ahead(index));
        }
        // A state that cannot be cut is copied between chunks, which is when its pass is collected.
        if *budget == 0 || flying.is_some() && !cuts {
            return None;
        }
        let whole = row.prompt_left().min(self.chunk());
        let count = if cuts { whole.min(*budget) } else { whole.min(row.to_next_stop()) };
        // Nor does it stop wherever the budget happens to end: prompts with one beginning stop at the same places.
        let fits = count <= *budget;
        *budget = budget.saturating_sub(count);
        fits.then_some(Part::Prompt(count))
    }

    /// Starts the next pass, if there is anything to compute.
    fn submit(&mut self) -> Option<Result<Flight<R::Pass>, Unsubmitted>> {
        let plan = self.plan();
        let submitted = Instant::now();
        let context = self.runner.context();
        let pipelines = self.runner.pipelines();
        let cuts = self.runner.cuts();
        let mut flying = Vec::with_capacity(plan.len());
        let mut rows: Vec<Row<R::State>> = Vec::with_capacity(plan.len());
        for (sequence, part) in self.rows.iter_mut().zip(plan) {
            let Some(part) = part else { continue };
            if matches!(part, Part::Ahead(_)) && !cuts {
                sequence.keep_before_ahead();
            }
            let id = sequence.id;
            let row = sequence.row(part, context, pipelines);
            let count = row.tokens.len();
            let of_prompt = if matches!(part, Part::Prompt(_)) { count } else { 0 };
            flying.push(Flying { id, count, of_prompt, most: row.draw.as_ref().map_or(0, |draw| draw.most) });
            rows.push(row);
        }
        if rows.is_empty() {
            return None;
        }
        let runner = &mut self.runner;
        let pass = guarded("the model", || runner.submit(&mut rows)).and_then(|pass| pass);
        drop(rows);
        Some(match pass {
            Ok(pass) => {
                self.advance(&flying);
                Ok(Flight { pass, rows: flying, submitted })
            }
            Err(error) => Err(Unsubmitted { ids: flying.iter().map(|flying| flying.id).collect(), error }),
        })
    }

    fn advance(&mut self, flying: &[Flying]) {
        let mut flying = flying.iter().peekable();
        for sequence in &mut self.rows {
            if let Some(flying) = flying.next_if(|flying| flying.id == sequence.id) {
                sequence.advance(flying.count);
            }
        }
    }

    /// Waits for a pass, and what follows from it.
    fn land(&mut self, flight: Flight<R::Pass>) {
        let Flight { pass, rows, submitted } = flight;
        let runner = &mut self.runner;
        let accepted = guarded("the model", || runner.collect(pass)).and_then(|accepted| accepted);
        self.count_time(&rows, submitted);
        match accepted {
            Ok(accepted) => self.deliver(&rows, accepted),
            Err(error) => self.fail(rows.iter().map(|row| row.id), &error),
        }
    }

    /// Adds the time since the pass was submitted, or since the one before it was collected, to what prompts and answers
    /// took, by their shares of its tokens.
    fn count_time(&mut self, rows: &[Flying], submitted: Instant) {
        let now = Instant::now();
        let spent = now.duration_since(submitted.max(self.landed)).as_micros() as usize;
        self.landed = now;
        let all: usize = rows.iter().map(|row| row.count).sum();
        let of_prompts: usize = rows.iter().map(|row| row.of_prompt).sum();
        let prefill = spent * of_prompts / all.max(1);
        add(&self.counters.prefill_microseconds, prefill);
        add(&self.counters.decode_microseconds, spent - prefill);
    }

    fn deliver(&mut self, flying: &[Flying], accepted: Vec<Accepted>) {
        assert_eq!(flying.len(), accepted.len(), "a runner that leaves out rows is a bug");
        let bounds = Bounds { context: self.runner.context(), chunk: self.chunk() };
        for (flying, accepted) in flying.iter().zip(accepted) {
            assert!(accepted.len() <= flying.most, "a runner that accepts more than it may is a bug");
            // One that ended meanwhile had its row in vain.
            let Some(index) = self.rows.iter().position(|row| row.id == flying.id) else { continue };
            if flying.most == 0 {
                self.pass_on(index, flying.count);
                continue;
            }
            let sequence = &mut self.rows[index];
            let answered = sequence.answered();
            let reason = sequence.take(accepted, bounds, &mut self.guides);
            // A token that ends the answer without being part of it was drawn, too.
            let is_outside = matches!(reason, Some(Finish::Stop | Finish::Failed(_)));
            add(&self.counters.generated_tokens, sequence.answered() - answered + usize::from(is_outside));
            match reason {
                Some(reason @ Finish::Failed(_)) => Self::abandon(self.rows.remove(index), reason),
                Some(reason) => self.end(index, Some(reason)),
                None => {}
            }
        }
    }

    /// After a chunk inside a prompt the next prompt has its turn, so that a short one need not wait for a long one.
    fn pass_on(&mut self, index: usize, count: usize) {
        // A state that can be cut is remembered at the end, with all of this in it.
        if !self.runner.cuts() {
            let chunk = self.chunk();
            let (snapshot, replaced) = self.rows[index].snapshot(count, chunk);
            if let Some(keys) = replaced {
                self.prefixes.forget(keys);
            }
            self.remember(snapshot);
        }
        let sequence = self.rows.remove(index);
        self.rows.push(sequence);
    }

    fn fail(&mut self, ids: impl Iterator<Item = u64>, error: &RunError) {
        for id in ids {
            if let Some(index) = self.rows.iter().position(|row| row.id == id) {
                Self::abandon(self.rows.remove(index), Finish::Failed(error.0.clone()));
            }
        }
    }

    /// A state whose size cannot be told is forgotten: it cost time, no answer.
    fn remember(&mut self, snapshot: Snapshot<R::State>) {
        let Snapshot { keys, state } = snapshot;
        if keys.is_empty() {
            return;
        }
        if let Ok(bytes) = guarded("the model", || self.runner.bytes(&state)) {
            self.prefixes.insert(&keys, state, bytes);
        }
    }
}

impl<R: Runner> Instance for Scheduler<R> {
    type Job = Job;

    fn push(&mut self, job: Job, place: Place) {
        self.waiting.push_back((job, place));
    }

    fn tick(&mut self, _: Duration) -> Result<Progress, RunError> {
        self.drop_cancelled();
        self.admit();
        let next = self.submit();
        if let Some(flight) = self.flight.take() {
            self.land(flight);
        }
        match next {
            Some(Ok(flight)) if self.runner.pipelines() => self.flight = Some(flight),
            Some(Ok(flight)) => self.land(flight),
            Some(Err(Unsubmitted { ids, error })) => self.fail(ids.into_iter(), &error),
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
        self.flight = None;
        for (job, place) in self.waiting.drain(..) {
            Self::refuse(&job, place, reason.clone());
        }
        for row in self.rows.drain(..) {
            Self::abandon(row, reason.clone());
        }
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
