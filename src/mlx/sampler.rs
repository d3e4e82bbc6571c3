//! Draws the next tokens on the device. The random number comes from the request's own stream, so a draw depends on
//! the logits and the request alone.

use mlx_rs::{
    Array, Dtype, ops,
    ops::indexing::{TryIndexOp, argmax_axis},
};

use super::{Backend, Error};
use crate::engine::{Adjustment, Draw, Logprobs, Sampling, TokenId, TokenSet};

/// One token for each row of `logits` `[rows, vocabulary]`, as `[rows]` u32.
pub fn draw(backend: Backend, logits: &Array, rows: Vec<mlx_cpu::Sample>) -> Result<Array, Error> {
    if let Backend::Cpu { .. } = backend {
        return Ok(mlx_cpu::sample(logits, rows)?);
    }
    let drawn = rows
        .iter()
        .enumerate()
        .map(|(index, row)| draw_with_mlx(&logits.try_index(index as i32)?.as_dtype(Dtype::Float32)?, row))
        .collect::<Result<Vec<Array>, Error>>()?;
    Ok(ops::stack(&drawn, 0)?.as_dtype(Dtype::Uint32)?)
}

/// How the next token is drawn, among all tokens.
pub fn settings(draw: &Draw) -> mlx_cpu::Sample {
    let Sampling { temperature, top_k, top_p, min_p, .. } = *draw.sampling;
    let u = draw.sampling.uniform(draw.index);
    let adjustment = |Adjustment { id, penalty, offset }| mlx_cpu::Adjustment { id: u32::from(id), penalty, offset };
    let adjustments = draw.penalties.adjustments().into_iter().map(adjustment).collect();
    mlx_cpu::Sample {
        temperature: temperature.unwrap_or(0.0),
        top_k: top_k.unwrap_or(0),
        top_p: top_p.unwrap_or(1.0),
        min_p: min_p.unwrap_or(0.0),
        u,
        adjustments,
        allowed: None,
    }
}

/// The same among these tokens.
pub fn among(settings: mlx_cpu::Sample, allowed: Option<&TokenSet>) -> mlx_cpu::Sample {
    mlx_cpu::Sample { allowed: allowed.map(|allowed| allowed.words().to_vec()), ..settings }
}

/// What is told of a row's probabilities.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The row of the logits.
    pub row: usize,
    /// How many tokens beside the drawn one.
    pub top: usize,
}

/// Log probabilities in the making.
pub struct LazyLogprobs {
    /// As [`mlx_cpu::logprobs`] lays them out: `[asked, 1 + 2 * most]` u32.
    pub numbers: Array,
    asked: Vec<Asked>,
}

impl LazyLogprobs {
    /// Of the tokens `drawn` `[rows]` from `logits` `[rows, vocabulary]`.
    pub fn new(backend: Backend, logits: &Array, drawn: &Array, asked: Vec<Asked>) -> Result<LazyLogprobs, Error> {
        let vocabulary = logits.dim(1) as usize;
        let asked: Vec<Asked> =
            asked.into_iter().map(|Asked { row, top }| Asked { row, top: top.min(vocabulary) }).collect();
        let numbers = match backend {
            Backend::Cpu { .. } => {
                let rows = asked.iter().map(|&Asked { row, top }| mlx_cpu::AskedLogprobs { row, top });
                mlx_cpu::logprobs(logits, drawn, rows.collect())?
            }
            Backend::Mlx { .. } => logprobs_with_mlx(logits, drawn, &asked)?,
        };
        Ok(LazyLogprobs { numbers, asked })
    }

    /// The numbers, computed, with the rows they belong to.
    pub fn read(&self) -> Result<Vec<(usize, Logprobs)>, Error> {
        let numbers: Vec<u32> = self.numbers.to_vec_exact().map_err(|error| Error(error.to_string()))?;
        let width = self.numbers.dim(1) as usize;
        let told = |(Asked { row, top }, numbers): (&Asked, &[u32])| {
            let pairs = numbers[1..].chunks_exact(2).take(*top);
            let top = pairs.map(|pair| (TokenId(pair[0]), f32::from_bits(pair[1]))).collect();
            (*row, Logprobs { drawn: f32::from_bits(numbers[0]), top })
        };
        Ok(self.asked.iter().zip(numbers.chunks_exact(width)).map(told).collect())
    }
}

/// The same numbers as our CPU kernel's, in MLX's ops.
fn logprobs_with_mlx(logits: &Array, drawn: &Array, asked: &[Asked]) -> Result<Array, Error> {
    let most = asked.iter().map(|asked| asked.top).max().unwrap_or(0) as i32;
    let mut rows = Vec::with_capacity(asked.len());
    for &Asked { row, .. } in asked {
        let row = row as i32;
        let logits = logits.try_index(row)?.as_dtype(Dtype::Float32)?;
        let logprobs = logits.subtract(ops::logsumexp(&logits, None)?)?;
        let own = logprobs.take(&drawn.try_index(row..row + 1)?)?;
        let own = own.view_dtype(Dtype::Uint32)?;
        let order = ops::argsort(logprobs.negative()?)?.try_index(..most)?;
        let values = logprobs.take(&order)?.view_dtype(Dtype::Uint32)?;
        let pairs = ops::stack(&[order.as_dtype(Dtype::Uint32)?, values], 1)?.reshape(&[2 * most])?;
        rows.push(ops::concatenate(&[own, pairs], 0)?);
    }
    Ok(ops::stack(&rows, 0)?)
}

/// The logits of one row `[vocabulary]`, -infinity for the tokens that are not allowed.
fn masked(logits: Array, allowed: Option<&Vec<u32>>) -> Result<Array, Error> {
    let Some(words) = allowed else { return Ok(logits) };
    let bit = |id: usize| words.get(id / 32).is_some_and(|word| word >> (id % 32) & 1 == 1);
    let allowed: Vec<bool> = (0..logits.size()).map(bit).collect();
    let allowed = Array::from_slice(&allowed, &[allowed.len() as i32]);
    Ok(ops::select(allowed, logits, Array::from_f32(f32::NEG_INFINITY))?)
}

/// The same definition as our CPU kernel's, in MLX's ops, for one row `[vocabulary]`.
fn draw_with_mlx(logits: &Array, row: &mlx_cpu::Sample) -> Result<Array, Error> {
    let logits = masked(adjusted(logits, &row.adjustments)?, row.allowed.as_ref())?;
    if row.temperature == 0.0 {
        return Ok(argmax_axis(&logits, 0, false)?);
    }
    let scaled = logits.divide(Array::from_f32(row.temperature))?;
    let order = ops::argsort(scaled.negative()?)?;
    let mut mass = ops::softmax_axis(scaled.take(&order)?, 0, true)?; // most likely first
    if row.top_k > 0 && (row.top_k as usize) < logits.size() {
        let place = Array::arange::<i32, i32>(None, logits.size() as i32, None)?;
        let kept = place.lt(Array::from_int(row.top_k as i32))?;
        mass = mass.multiply(kept.as_dtype(Dtype::Float32)?)?;
    }
    if row.top_p < 1.0 {
        let before = mass.cumsum(0, None, None)?.subtract(&mass)?;
        let kept = before.lt(mass.sum(None)?.multiply(Array::from_f32(row.top_p))?)?;
        mass = mass.multiply(kept.as_dtype(Dtype::Float32)?)?;
    }
    if row.min_p > 0.0 {
        let kept = mass.ge(mass.max(None)?.multiply(Array::from_f32(row.min_p))?)?;
        mass = mass.multiply(kept.as_dtype(Dtype::Float32)?)?;
    }
    let reached = mass.cumsum(0, None, None)?;
    let target = mass.sum(None)?.multiply(Array::from_f32(row.u))?;
    let index = argmax_axis(reached.gt(&target)?.as_dtype(Dtype::Int32)?, 0, false)?;
    Ok(order.take(&index)?)
}

fn adjusted(logits: &Array, adjustments: &[mlx_cpu::Adjustment]) -> Result<Array, Error> {
    if adjustments.is_empty() {
        return Ok(logits.clone());
    }
    let count = [adjustments.len() as i32];
    let list = |value: &dyn Fn(&mlx_cpu::Adjustment) -> f32| {
        Array::from_slice(&adjustments.iter().map(value).collect::<Vec<f32>>(), &count)
    };
    let ids: Vec<i32> = adjustments.iter().map(|adjustment| adjustment.id as i32).collect();
    let ids = Array::from_slice(&ids, &count);
    let (penalty, offset) = (list(&|adjustment| adjustment.penalty), list(&|adjustment| adjustment.offset));
    let old = logits.take_along_axis(&ids, 0)?;
    let positive = old.gt(Array::from_f32(0.0))?;
    let new = ops::select(positive, old.divide(&penalty)?, old.multiply(&penalty)?)?.add(offset)?;
    Ok(logits.put_along_axis(&ids, &new, 0)?)
}
