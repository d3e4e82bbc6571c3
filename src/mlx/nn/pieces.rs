//! Matrices on their way into memory, some rows at a time, so that nobody who shares the device waits long for one.

use std::ops::Range;

use super::stored::{self, MlxWeights, Stored};
use crate::mlx::{
    Backend, Error,
    quant::{Float, Matrix},
    steps::pause,
    weights::Weights,
};

/// A matrix, or a stack of them, of which the first rows are here.
struct Gathered {
    /// Outputs of all matrices together.
    outputs: usize,
    parts: Parts,
}

enum Parts {
    None(Backend),
    Cpu(mlx_cpu::Growing, mlx_cpu::Mode),
    Mlx(Vec<MlxWeights>, Float),
}

/// The weights at these places, one below the other, as one matrix over so many inputs. `None` where their forms differ.
///
/// # Errors
/// As [`Weights::matrix`].
pub async fn load(parts: &[(Weights<'_>, usize)], inputs: usize) -> Result<Option<Stored>, Error> {
    counted_once(&parts[0].0, below_each_other(parts, inputs)).await
}

/// What was read in vain is read once more, and counts once.
async fn counted_once(
    at: &Weights<'_>,
    load: impl Future<Output = Result<Option<Stored>, Error>>,
) -> Result<Option<Stored>, Error> {
    let before = at.tally();
    let loaded = load.await?;
    if loaded.is_none() {
        at.set_tally(before);
    }
    Ok(loaded)
}

/// The `weight` at one place.
///
/// # Errors
/// As [`Weights::matrix`].
pub async fn load_one(at: &Weights<'_>, outputs: usize, inputs: usize) -> Result<Stored, Error> {
    match load(&[(at.clone(), outputs)], inputs).await? {
        Some(stored) => Ok(stored),
        // A GGUF's rows may need scales in f16 here and in f32 there.
        None => Stored::new(&at.matrix(outputs, inputs)?, at.backend()),
    }
}

async fn below_each_other(parts: &[(Weights<'_>, usize)], inputs: usize) -> Result<Option<Stored>, Error> {
    let outputs = parts.iter().map(|(_, outputs)| outputs).sum();
    let (backend, step) = (parts[0].0.backend(), step(&parts[0].0, inputs));
    if outputs <= step {
        let mut matrices = Vec::with_capacity(parts.len());
        for (at, outputs) in parts {
            matrices.push(at.matrix(*outputs, inputs)?);
        }
        if !matrices.windows(2).all(|pair| pair[0].same_form(&pair[1])) {
            return Ok(None);
        }
        let whole = matrices.into_iter().reduce(Matrix::stack).expect("a linear has a weight");
        let stored = Stored::new(&whole, backend)?;
        pause().await;
        return Ok(Some(stored));
    }
    let (_, before_last) = parts.split_last().expect("a linear has a weight");
    if !before_last.iter().all(|(_, outputs)| outputs.is_multiple_of(mlx_cpu::Growing::ROWS)) {
        return Ok(None);
    }
    let mut growing = Gathered { outputs, parts: Parts::None(backend) };
    for (at, outputs) in parts {
        for first in (0..*outputs).step_by(step) {
            let rows = first..(first + step).min(*outputs);
            if !growing.push(&at.rows(rows).matrix(*outputs, inputs)?, None)? {
                return Ok(None);
            }
            pause().await;
        }
    }
    growing.finish(None)
}

/// A stack of this shape: matrices, outputs and inputs of each. `read` reads some of them, whose rows follow each other. `None` where their
/// forms differ.
///
/// # Errors
/// As `read`'s.
pub async fn load_stack(
    at: &Weights<'_>,
    shape: [usize; 3],
    read: impl Fn(Range<usize>) -> Result<Option<Matrix>, Error>,
) -> Result<Option<Stored>, Error> {
    counted_once(at, behind_each_other(at, shape, read)).await
}

async fn behind_each_other(
    at: &Weights<'_>,
    [matrices, outputs, inputs]: [usize; 3],
    read: impl Fn(Range<usize>) -> Result<Option<Matrix>, Error>,
) -> Result<Option<Stored>, Error> {
    // Matrices whose rows are no whole blocks do not lie one behind the other in one tall matrix.
    let at_once = if outputs.is_multiple_of(mlx_cpu::Growing::ROWS) { step(at, inputs) / outputs } else { matrices };
    let at_once = at_once.clamp(1, matrices);
    let mut growing = Gathered { outputs: matrices * outputs, parts: Parts::None(at.backend()) };
    for first in (0..matrices).step_by(at_once) {
        let range = first..(first + at_once).min(matrices);
        let count = range.len();
        let Some(matrix) = read(range)? else { return Ok(None) };
        if count == matrices {
            return Stored::stack(&matrix, matrices, at.backend()).map(Some);
        }
        if !growing.push(&matrix, Some(count))? {
            return Ok(None);
        }
        pause().await;
    }
    growing.finish(Some(matrices))
}

/// Rows of a piece.
fn step(at: &Weights, inputs: usize) -> usize {
    (at.piece() / 4 / inputs).max(1).next_multiple_of(mlx_cpu::Growing::ROWS)
}

impl Gathered {
    /// Takes the next rows, `matrices` matrices where it is a stack. False where their form is another than that of those
    /// before.
    fn push(&mut self, part: &Matrix, matrices: Option<usize>) -> Result<bool, Error> {
        match &mut self.parts {
            Parts::None(Backend::Cpu { mode, .. }) => {
                let growing = mlx_cpu::Growing::new(self.outputs, &stored::unpacked(part, 1))?;
                self.parts = Parts::Cpu(growing, *mode);
            }
            Parts::None(Backend::Mlx { activations }) => {
                self.parts = Parts::Mlx(vec![MlxWeights::new(part, matrices, *activations)?], *activations);
            }
            Parts::Cpu(growing, _) => return Ok(growing.push(&stored::unpacked(part, 1)).is_ok()),
            Parts::Mlx(parts, activations) => parts.push(MlxWeights::new(part, matrices, *activations)?),
        }
        Ok(true)
    }

    /// All rows. `None` where their forms differ.
    fn finish(self, matrices: Option<usize>) -> Result<Option<Stored>, Error> {
        match self.parts {
            Parts::None(_) => Ok(None),
            Parts::Cpu(growing, mode) => {
                Ok(Some(Stored::Cpu { weights: growing.finish(matrices.unwrap_or(1))?, mode }))
            }
            Parts::Mlx(parts, _) => Ok(MlxWeights::joined(parts)?.map(Stored::Mlx)),
        }
    }
}
