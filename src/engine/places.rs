//! How many jobs an instance may hold: each has a place, taken before any work is done for it and given back at its
//! end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use super::stats::{Counters, add, subtract};

/// How many jobs an instance may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Jobs computed together.
    pub rows: usize,
    /// Jobs that may wait for a row.
    pub waiting: usize,
}

/// Why a job was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Try again after so many seconds, at least 1: by then a place is likely to be free.
    #[error("{waiting} jobs are waiting already, the limit is {limit}")]
    Full { waiting: usize, limit: usize, retry_after: u64 },
    /// More at once than there will ever be places for.
    #[error("{asked} jobs at once are more than the {limit} that can be taken")]
    TooMany { asked: usize, limit: usize },
    #[error("the model is closed")]
    Closed,
    /// The instance failed before; the reason says how.
    #[error("the model has failed and takes no more jobs: {reason}")]
    Dead { reason: String },
}

/// The places of an instance.
#[derive(Debug)]
pub struct Places {
    capacity: Capacity,
    /// Promised to callers, waiting or running.
    taken: AtomicUsize,
    counters: Arc<Counters>,
    /// How many microseconds jobs run, later ones counting more. 0 before the first has ended.
    run_microseconds: AtomicU64,
}

impl Places {
    pub fn new(capacity: Capacity, counters: Arc<Counters>) -> Places {
        Places { capacity, taken: AtomicUsize::new(0), counters, run_microseconds: AtomicU64::new(0) }
    }

    /// Takes `count` places, all or none.
    ///
    /// # Errors
    /// [`SubmitError::Full`] or [`SubmitError::TooMany`].
    pub fn take(&self, count: usize) -> Result<(), SubmitError> {
        let Capacity { rows, waiting } = self.capacity;
        let all = rows + waiting;
        if count > all.max(1) {
            return Err(SubmitError::TooMany { asked: count, limit: all });
        }
        let more = |taken: usize| Some(taken + count).filter(|wanted| *wanted <= all);
        match self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => Ok(()),
            Err(taken) => {
                let retry_after = self.seconds_until_free(taken + count - all);
                Err(SubmitError::Full { waiting: taken.saturating_sub(rows), limit: waiting, retry_after })
            }
        }
    }

    /// Gives places back.
    pub fn give_back(&self, count: usize) {
        self.taken.fetch_sub(count, Ordering::AcqRel);
    }

    /// Jobs end one after the other, `rows` of them in the time that one takes.
    fn seconds_until_free(&self, count: usize) -> u64 {
        let run = self.run_microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        let seconds = run * count as f64 / self.capacity.rows.max(1) as f64;
        (seconds.ceil() as u64).max(1)
    }

    pub(super) fn note_run(&self, microseconds: u64) {
        // Only the device thread ends jobs that ran.
        let known = self.run_microseconds.load(Ordering::Relaxed);
        let mean = if known == 0 { microseconds } else { (7 * known + microseconds) / 8 };
        self.run_microseconds.store(mean.max(1), Ordering::Relaxed);
    }
}

/// How a job ended, for the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With a reason of its own.
    Finished,
    /// Its reader went away.
    Cancelled,
    Failed,
}

/// A job's place. A place that is dropped without an end counts as failed.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    /// When it began to run.
    began: Option<Instant>,
    outcome: Outcome,
}

impl Place {
    /// Of a job that waits; the place itself was taken before.
    pub(super) fn of_waiting(places: &Arc<Places>) -> Place {
        add(&places.counters.waiting, 1);
        Place { places: Arc::clone(places), began: None, outcome: Outcome::Failed }
    }

    /// The job waits no longer.
    pub fn begin(&mut self) {
        if self.began.is_none() {
            subtract(&self.places.counters.waiting, 1);
            add(&self.places.counters.running, 1);
            self.began = Some(Instant::now());
        }
    }

    /// The job is over.
    pub fn end(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counters = &self.places.counters;
        match self.began {
            Some(began) => {
                subtract(&counters.running, 1);
                self.places.note_run(began.elapsed().as_micros() as u64);
            }
            None => subtract(&counters.waiting, 1),
        }
        let counter = match self.outcome {
            Outcome::Finished => &counters.finished,
            Outcome::Cancelled => &counters.cancelled,
            Outcome::Failed => &counters.failed,
        };
        add(counter, 1);
        self.places.give_back(1);
    }
}
