//! Embeddings, one kind of instance: jobs are rows of token ids, answers are vectors. Rows that wait are computed
//! together, as many a tick as a token budget allows, so that whoever shares the device waits for one such pass at most.

use super::failure::RunError;

/// A loaded model that makes vectors. Lives on the device thread and never leaves it.
pub trait Encoder {
    /// The most tokens a row may have.
    fn context(&self) -> usize;

    /// One vector a row, in order. A row's vector must not depend on its company.
    ///
    /// # Errors
    /// The pass failed, and with it all of its rows.
    fn encode(&mut self, rows: &[&[u32]]) -> Result<Vec<Vec<f32>>, RunError>;
}
