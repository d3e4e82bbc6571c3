//! What a text model may take on.

use crate::engine::places::Capacity;

/// What a text model may take on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sequences computed together.
    pub rows: usize,
    /// Jobs that may wait for a row.
    pub waiting: usize,
    /// Tokens of prompts in one forward pass. Running answers wait this long at most.
    pub prefill_chunk: usize,
    /// Memory for remembered prefixes, in bytes.
    pub prefix_bytes: usize,
}

impl Limits {
    /// How many jobs that makes.
    pub fn capacity(&self) -> Capacity {
        Capacity { rows: self.rows, waiting: self.waiting }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { rows: 8, waiting: 256, prefill_chunk: 512, prefix_bytes: 1 << 30 }
    }
}
