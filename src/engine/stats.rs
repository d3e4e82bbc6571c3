//! The engine's counters, readable from any thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the engine has done and is doing. Counters grow; `running`, `waiting` and `prefix_*` are of this moment.
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
        /// [`Stats`] in the making. Written by the device thread, but for `waiting`, which a submit raises.
        #[derive(Debug, Default)]
        pub struct Counters { $(pub $name: AtomicU64),* }

        impl Counters {
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

/// Sets a gauge.
pub fn set(counter: &AtomicU64, value: usize) {
    counter.store(value as u64, Ordering::Relaxed);
}
