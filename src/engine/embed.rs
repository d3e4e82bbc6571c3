//! Embeddings, one kind of instance: jobs are rows of token ids, answers are vectors. Rows that wait are computed
//! together, as many a turn as take about [`TURN`], so that whoever shares the device waits no longer than that.

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
    instance::{End, Instance, Progress},
    places::{Outcome, Place},
    stats::{Counters, add},
    token::TokenId,
};

pub use scripted::{EncoderScript, ScriptedEncoder};

/// A loaded model that makes vectors. Lives on the device thread and never leaves it.
pub trait Encoder {
    /// The most tokens a row may have.
    fn context(&self) -> usize;

    /// One vector a row, in order. A row's vector does not depend on its company.
    ///
    /// # Errors
    /// The pass failed, and with it all of its rows.
    fn encode(&mut self, rows: &[&[TokenId]]) -> Result<Vec<Vec<f32>>, RunError>;
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

/// How long a turn should take: a good many tokens of a small model, and less than a token of a large one.
const TURN: Duration = Duration::from_millis(8);
/// Tokens of a turn before anything was measured, and the most of any.
const FIRST: usize = 64;
const MOST: usize = 2048;

/// The instance.
pub struct EmbedScheduler<E> {
    encoder: E,
    /// They take turns: each pass takes the next row of each, as long as there is room.
    jobs: VecDeque<Running>,
    /// Tokens of a turn, by what the turns before took.
    budget: usize,
    counters: Arc<Counters>,
}

/// A job and its vectors so far.
struct Running {
    job: EmbedJob,
    place: Place,
    vectors: Vec<Vec<f32>>,
    /// Rows of it in the pass that is being put together.
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
        EmbedScheduler { encoder, jobs: VecDeque::new(), budget: FIRST, counters }
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

    /// Chooses the rows of a pass: the next of each job in turn until the budget is used, at least one. Gives each
    /// row's job.
    fn choose(&mut self) -> Vec<usize> {
        let (mut chosen, mut tokens) = (Vec::new(), 0);
        loop {
            let before = chosen.len();
            for (index, running) in self.jobs.iter_mut().enumerate() {
                let Some(row) = running.next() else { continue };
                if !chosen.is_empty() && tokens + row.len() > self.budget {
                    return chosen;
                }
                tokens += row.len();
                running.taken += 1;
                chosen.push(index);
            }
            if chosen.len() == before {
                return chosen;
            }
        }
    }

    /// One pass over the chosen rows.
    fn run(&mut self, chosen: &[usize]) -> Result<(), RunError> {
        let mut places: Vec<usize> = self.jobs.iter().map(|running| running.vectors.len()).collect();
        let mut rows: Vec<&[TokenId]> = Vec::with_capacity(chosen.len());
        for &index in chosen {
            rows.push(&self.jobs[index].job.rows[places[index]]);
            places[index] += 1;
        }
        let tokens: usize = rows.iter().map(|row| row.len()).sum();
        let started = Instant::now();
        let vectors = self.encoder.encode(&rows)?;
        let spent = started.elapsed();
        add(&self.counters.prompt_tokens, tokens);
        add(&self.counters.prefill_microseconds, spent.as_micros() as usize);
        self.budget = next_budget(self.budget, tokens, spent);
        for (&index, vector) in chosen.iter().zip(vectors) {
            self.jobs[index].vectors.push(vector);
            self.jobs[index].taken = 0;
        }
        Ok(())
    }

    /// Ends the jobs that have all their vectors, and lets the others be first next time that were last.
    fn deliver(&mut self) {
        for running in std::mem::take(&mut self.jobs) {
            match running.next() {
                None => running.finish(),
                Some(_) => self.jobs.push_back(running),
            }
        }
        if !self.jobs.is_empty() {
            self.jobs.rotate_left(1);
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

/// The budget after a pass of so many tokens took so long: what fits [`TURN`], approached by halves so that one slow pass
/// does not decide.
fn next_budget(budget: usize, tokens: usize, spent: Duration) -> usize {
    // A pass of few tokens says little of what many take.
    if 2 * tokens < budget {
        return budget;
    }
    let fits = tokens as f64 * TURN.as_secs_f64() / spent.as_secs_f64().max(1e-6);
    (budget.midpoint(fits as usize)).clamp(FIRST / 2, MOST)
}

impl<E: Encoder> Instance for EmbedScheduler<E> {
    type Job = EmbedJob;

    fn push(&mut self, job: EmbedJob, mut place: Place) {
        place.begin();
        let context = self.encoder.context();
        let misfit = job.rows.iter().map(Vec::len).find(|&tokens| tokens == 0 || tokens > context);
        let running = Running { job, place, vectors: Vec::new(), taken: 0 };
        match misfit {
            Some(tokens) => running.end(Outcome::Failed, Err(EmbedError::Length { tokens, context })),
            None => self.jobs.push_back(running),
        }
    }

    fn tick(&mut self) -> Result<Progress, RunError> {
        self.drop_cancelled();
        let chosen = self.choose();
        if !chosen.is_empty()
            && let Err(error) = self.run(&chosen)
        {
            self.fail(&error);
        }
        self.deliver();
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
