//! An instance's counters, readable from any thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an instance has done and is doing. Counters grow; `running`, `waiting` and `prefix_*` are of this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    pub running: u64,
    pub waiting: u64,
    /// Jobs that ended with a reason of their own.
    pub finished: u64,
    /// Jobs whose reader went away.
    pub cancelled: u64,
    pub failed: u64,
    /// Tokens of admitted prompts, remembered ones included.
    pub prompt_tokens: u64,
    /// Of these, the ones that were remembered.
    pub cached_tokens: u64,
    pub generated_tokens: u64,
    pub prefix_entries: u64,
    pub prefix_bytes: u64,
    pub prefill_microseconds: u64,
    pub decode_microseconds: u64,
}

macro_rules! counters {
    ($($name:ident),*) => {
        /// [`Stats`] in the making. `running`, `waiting` and the ends of jobs are counted by the jobs' places, the rest
        /// by the instance.
        #[derive(Debug, Default)]
        pub struct Counters { $(pub $name: AtomicU64),* }

        impl Counters {
            /// The counters of this moment.
            pub fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }
    };
}

counters!(
    running,
    waiting,
    finished,
    cancelled,
    failed,
    prompt_tokens,
    cached_tokens,
    generated_tokens,
    prefix_entries,
    prefix_bytes,
    prefill_microseconds,
    decode_microseconds
);

/// Adds to a counter.
pub fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}

/// Takes from a gauge.
pub fn subtract(gauge: &AtomicU64, amount: usize) {
    gauge.fetch_sub(amount as u64, Ordering::Relaxed);
}

/// Sets a gauge.
pub fn set(gauge: &AtomicU64, value: usize) {
    gauge.store(value as u64, Ordering::Relaxed);
}
