//! What the kernels' tests share: a small generator of numbers, comparison, and threads held for one test.

use std::sync::{Mutex, PoisonError};

use super::pool;

/// A multiplicative generator (splitmix64): the same numbers on every machine.
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// One of 0..bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// From -1 to 1, evenly.
    pub fn f32(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// So many numbers between -1 and 1.
    pub fn vec(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.f32()).collect()
    }
}

/// Asserts that `got` is within `tolerance` of `want`, relative to the largest of `want`.
#[track_caller]
pub fn close(got: &[f32], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().fold(1e-3, |scale: f64, want| scale.max(want.abs()));
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs();
        assert!(error <= tolerance * scale, "{what}: value {i} is {got}, expected {want} (largest {scale})");
    }
}

/// Asserts the same bits.
#[track_caller]
pub fn same_bits(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(a.to_bits() == b.to_bits(), "{what}: value {i} is {a:e} and {b:e}");
    }
}

/// Runs `body` with the pool at `threads`; tests that set it take turns.
pub fn with_threads<T>(threads: usize, body: impl FnOnce() -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    pool::set_threads(threads);
    let result = body();
    pool::set_threads(0);
    result
}
