//! A large matrix on its way into memory, some rows at a time, so that nobody waits long for it: a vocabulary's.

use super::stored::{self, MlxWeights, Stored};
use crate::mlx::{
    Backend, Error,
    quant::{Float, Matrix},
    weights::Weights,
};

/// Bytes of floats that one step reads.
const STEP: usize = 8 << 20;

/// The matrix so far.
#[derive(Default)]
pub struct Table {
    rows: usize,
    parts: Option<Parts>,
}

/// Rows from the top, as they lie in memory.
enum Parts {
    Cpu(mlx_cpu::Growing, mlx_cpu::Mode),
    Mlx(Vec<MlxWeights>, Float),
}

impl Table {
    /// Loads the next rows of the `weight` at a place. Gives the whole matrix when it has all `outputs`.
    ///
    /// # Errors
    /// As [`Weights::matrix`].
    pub fn step(&mut self, at: &Weights, outputs: usize, inputs: usize) -> Result<Option<Stored>, Error> {
        let step = (STEP / 4 / inputs).next_multiple_of(mlx_cpu::Growing::ROWS);
        let end = (self.rows + step).min(outputs);
        let part = at.rows(self.rows..end).matrix(outputs, inputs)?;
        self.rows = end;
        let fits = match &mut self.parts {
            Some(parts) => parts.push(&part)?,
            None if end == outputs => return Stored::new(&part, at.backend()).map(Some),
            None => {
                self.parts = Some(Parts::new(outputs, &part, at.backend())?);
                true
            }
        };
        if fits && end < outputs {
            return Ok(None);
        }
        let parts = self.parts.take().filter(|_| fits);
        match parts.map(Parts::finish).transpose()?.flatten() {
            Some(whole) => Ok(Some(whole)),
            // A GGUF's parts may need scales in f16 here and in f32 there.
            None => Stored::new(&at.matrix(outputs, inputs)?, at.backend()).map(Some),
        }
    }
}

impl Parts {
    /// The first rows of so many.
    fn new(outputs: usize, first: &Matrix, backend: Backend) -> Result<Parts, Error> {
        Ok(match backend {
            Backend::Cpu { mode, .. } => Parts::Cpu(mlx_cpu::Growing::new(outputs, &stored::unpacked(first, 1))?, mode),
            Backend::Mlx { activations } => Parts::Mlx(vec![MlxWeights::new(first, None, activations)?], activations),
        })
    }

    /// Whether the next rows have the form of those before.
    fn push(&mut self, part: &Matrix) -> Result<bool, Error> {
        match self {
            Parts::Cpu(growing, _) => Ok(growing.push(&stored::unpacked(part, 1)).is_ok()),
            Parts::Mlx(parts, activations) => {
                parts.push(MlxWeights::new(part, None, *activations)?);
                Ok(true)
            }
        }
    }

    /// All rows. `None` where their forms differ.
    fn finish(self) -> Result<Option<Stored>, Error> {
        match self {
            Parts::Cpu(growing, mode) => Ok(Some(Stored::Cpu { weights: growing.finish()?, mode })),
            Parts::Mlx(parts, _) => Ok(MlxWeights::joined(parts)?.map(Stored::Mlx)),
        }
    }
}
