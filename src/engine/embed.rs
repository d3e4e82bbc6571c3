//! Embeddings, one kind of instance: jobs are rows of token ids, answers are vectors. Rows that wait are computed
//! together in one pass, and a pass in steps: as many rows a pass as make a step about as long as a turn.

mod scripted;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    failure::RunError,
    instance::{End, Instance, Pace, Progress},
    places::{Outcome, Place},
    stats::{Counters, add},
    token::TokenId,
};

pub use scripted::{EncoderScript, ScriptedEncoder};

/// A loaded model that makes vectors. Lives on the device thread and never leaves it.
pub trait Encoder {
    /// The most tokens a row may have.
    fn context(&self) -> usize;

    /// Begins a pass over these rows.
    fn begin(&mut self, rows: &[&[TokenId]]);

    /// The pass's next step, such as a layer. At its end one vector a row, in order; a row's vector does not depend on
    /// its company.
    ///
    /// # Errors
    /// The pass failed, and with it all of its rows.
    fn step(&mut self) -> Result<Option<Vec<Vec<f32>>>, RunError>;
}

/// Texts to make vectors of. Dropping the receiver of `vectors` cancels it.
#[derive(Debug)]
pub struct EmbedJob {
    /// A text each, at least one token long and no longer than the context.
    pub rows: Vec<Vec<TokenId>>,
    /// Gets a vector a row, in order.
    pub vectors: oneshot::Sender<Result<Vec<Vec<f32>>, EmbedError>>,
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// A row that does not fit.
    #[error("a text of {tokens} tokens does not fit a context of {context}")]
    Length {
        /// What the row has.
        tokens: usize,
        /// What a row may have.
        context: usize,
    },
    /// The forward pass failed; the text says how.
    #[error("{0}")]
    Failed(String),
    /// The instance is closing.
    #[error("the model is closing")]
    Closing,
}

/// Tokens of a pass before anything was measured, and the most of any.
const FIRST: usize = 64;
const MOST: usize = 2048;

/// The instance.
pub struct EmbedScheduler<E> {
    encoder: E,
    /// They take turns: each pass takes the next row of each, as long as there is room.
    jobs: VecDeque<Running>,
    pass: Option<Pass>,
    pace: Pace,
    /// Jobs that have come so far.
    count: usize,
    /// Tokens of a pass, by what the steps before took.
    budget: usize,
    counters: Arc<Counters>,
}

/// What is being computed.
struct Pass {
    /// The job of each row.
    jobs: Vec<usize>,
    tokens: usize,
    longest_step: Duration,
}

/// A job and its vectors so far.
struct Running {
    number: usize,
    job: EmbedJob,
    place: Place,
    vectors: Vec<Vec<f32>>,
    /// Rows of it in the pass.
    taken: usize,
}

impl Running {
    fn next(&self) -> Option<&[TokenId]> {
        self.job.rows.get(self.vectors.len() + self.taken).map(Vec::as_slice)
    }

    fn end(self, outcome: Outcome, result: Result<Vec<Vec<f32>>, EmbedError>) {
        self.place.end(outcome);
        // Nobody may be left to read it.
        let _ = self.job.vectors.send(result);
    }

    fn finish(mut self) {
        let vectors = std::mem::take(&mut self.vectors);
        self.end(Outcome::Finished, Ok(vectors));
    }
}

impl<E: Encoder> EmbedScheduler<E> {
    /// An instance without jobs.
    pub fn new(encoder: E, counters: Arc<Counters>) -> EmbedScheduler<E> {
        EmbedScheduler {
            encoder,
            jobs: VecDeque::new(),
            pass: None,
            pace: Pace::default(),
            count: 0,
            budget: FIRST,
            counters,
        }
    }

    fn drop_cancelled(&mut self) {
        for running in std::mem::take(&mut self.jobs) {
            if running.job.vectors.is_closed() {
                running.place.end(Outcome::Cancelled);
            } else {
                self.jobs.push_back(running);
            }
        }
    }

    /// Begins a pass over the next row of each job in turn until the budget is used, at least one. `None` where no job
    /// has one.
    fn begin(&mut self) -> Option<Pass> {
        let mut pass = Pass { jobs: Vec::new(), tokens: 0, longest_step: Duration::ZERO };
        let mut chosen = Vec::new();
        'full: loop {
            let before = chosen.len();
            for (index, running) in self.jobs.iter_mut().enumerate() {
                let Some(row) = running.next() else { continue };
                let tokens = row.len();
                if !chosen.is_empty() && pass.tokens + tokens > self.budget {
                    break 'full;
                }
                pass.tokens += tokens;
                pass.jobs.push(running.number);
                chosen.push((index, running.vectors.len() + running.taken));
                running.taken += 1;
            }
            if chosen.len() == before {
                break;
            }
        }
        let rows = chosen.iter().map(|&(job, row)| self.jobs[job].job.rows[row].as_slice());
        let rows: Vec<&[TokenId]> = rows.collect();
        if rows.is_empty() {
            return None;
        }
        self.encoder.begin(&rows);
        Some(pass)
    }

    /// The next step of the pass, in a turn of so long.
    fn step(&mut self, mut pass: Pass, turn: Duration) -> Result<(), RunError> {
        let began = Instant::now();
        let vectors = self.encoder.step()?;
        let took = began.elapsed();
        add(&self.counters.prefill_microseconds, took.as_micros() as usize);
        pass.longest_step = pass.longest_step.max(took);
        match vectors {
            None => self.pass = Some(pass),
            Some(vectors) => {
                self.budget = next_budget(self.budget, pass.tokens, pass.longest_step, turn);
                self.finish(&pass, vectors);
            }
        }
        Ok(())
    }

    /// Hands out the vectors of a pass, and lets those jobs be first next time that were last.
    fn finish(&mut self, pass: &Pass, vectors: Vec<Vec<f32>>) {
        add(&self.counters.prompt_tokens, pass.tokens);
        for (&number, vector) in pass.jobs.iter().zip(vectors) {
            // One that was cancelled is gone.
            if let Some(running) = self.jobs.iter_mut().find(|running| running.number == number) {
                running.vectors.push(vector);
                running.taken = 0;
            }
        }
        if !self.jobs.is_empty() {
            self.jobs.rotate_left(1);
        }
    }

    /// Ends the jobs that have all their vectors.
    fn deliver(&mut self) {
        for running in std::mem::take(&mut self.jobs) {
            if running.vectors.len() == running.job.rows.len() {
                running.finish();
            } else {
                self.jobs.push_back(running);
            }
        }
    }

    /// A failed pass ends the jobs that had rows in it.
    fn fail(&mut self, error: &RunError) {
        for running in std::mem::take(&mut self.jobs) {
            if running.taken > 0 {
                running.end(Outcome::Failed, Err(EmbedError::Failed(error.0.clone())));
            } else {
                self.jobs.push_back(running);
            }
        }
    }
}

/// The budget after a pass of so many tokens: as many as make a step of two thirds of a turn, so that few are longer than
/// a turn. Approached by halves, so that one slow step does not decide.
fn next_budget(budget: usize, tokens: usize, longest_step: Duration, turn: Duration) -> usize {
    // A pass of few tokens says little of what many take.
    if 2 * tokens < budget {
        return budget;
    }
    let fits = tokens as f64 * turn.as_secs_f64() / 1.5 / longest_step.as_secs_f64().max(1e-6);
    (budget.midpoint(fits as usize)).clamp(FIRST / 2, MOST)
}

impl<E: Encoder> Instance for EmbedScheduler<E> {
    type Job = EmbedJob;

    fn push(&mut self, job: EmbedJob, mut place: Place) {
        place.begin();
        let context = self.encoder.context();
        let misfit = job.rows.iter().map(Vec::len).find(|&tokens| tokens == 0 || tokens > context);
        self.count += 1;
        let running = Running { number: self.count, job, place, vectors: Vec::new(), taken: 0 };
        match misfit {
            Some(tokens) => running.end(Outcome::Failed, Err(EmbedError::Length { tokens, context })),
            None if running.job.rows.is_empty() => running.finish(),
            None => self.jobs.push_back(running),
        }
    }

    fn tick(&mut self, time: Duration) -> Result<Progress, RunError> {
        let mut pace = self.pace;
        let idle = pace.steps(time, || {
            self.drop_cancelled();
            let Some(pass) = self.pass.take().or_else(|| self.begin()) else { return Ok(Some(())) };
            if let Err(error) = self.step(pass, time) {
                self.fail(&error);
            }
            self.deliver();
            Ok(None)
        });
        self.pace = pace;
        idle?;
        Ok(if self.jobs.is_empty() { Progress::Idle } else { Progress::Busy })
    }

    fn context(&self) -> usize {
        self.encoder.context()
    }

    fn bytes(&self) -> usize {
        0
    }

    fn shed(&mut self, _bytes: usize) {}

    fn close(&mut self, end: End) {
        for running in self.jobs.drain(..) {
            let error = match &end {
                End::Closing => EmbedError::Closing,
                End::Failed(reason) => EmbedError::Failed(reason.clone()),
            };
            running.end(if end == End::Closing { Outcome::Finished } else { Outcome::Failed }, Err(error));
        }
    }
}
