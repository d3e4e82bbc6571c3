//! Draws the next tokens on the device. The random number comes from the request's own stream, so a draw depends on
//! the logits and the request alone.

use mlx_rs::{
    Array, Dtype, ops,
    ops::indexing::{TryIndexOp, argmax_axis},
};

use super::{Backend, Error};
use crate::engine::{Adjustment, Draw, Logprobs, Pending, Sampling};

/// One token for each row of `logits` `[rows, vocabulary]`, as `[rows]` u32. Waits for the masks of rows that have one.
pub fn draw<'a>(backend: Backend, logits: &Array, draws: impl Iterator<Item = &'a Draw<'a>>) -> Result<Array, Error> {
    let rows: Vec<mlx_cpu::Sample> = draws.map(row).collect();
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

fn row(draw: &Draw) -> mlx_cpu::Sample {
    let Sampling { temperature, top_k, top_p, min_p, .. } = *draw.sampling;
    let u = draw.sampling.uniform(draw.answer.len());
    let adjustments = draw.adjustments().into_iter();
    let adjustments =
        adjustments.map(|Adjustment { id, penalty, offset }| mlx_cpu::Adjustment { id, penalty, offset }).collect();
    let allowed = draw.mask.and_then(Pending::mask).map(|mask| mask.words().to_vec());
    mlx_cpu::Sample {
        temperature: temperature.unwrap_or(0.0),
        top_k: top_k.unwrap_or(0),
        top_p: top_p.unwrap_or(1.0),
        min_p: min_p.unwrap_or(0.0),
        u,
        adjustments,
        allowed,
    }
}

/// The logits of one row `[vocabulary]`, -infinity for the tokens that are not allowed.
fn masked(logits: Array, allowed: Option<&Vec<u32>>) -> Result<Array, Error> {
    let Some(words) = allowed else { return Ok(logits) };
    let bit = |id: usize| words.get(id / 32).is_some_and(|word| word >> (id % 32) & 1 == 1);
    let allowed: Vec<bool> = (0..logits.size()).map(bit).collect();
    let allowed = Array::from_slice(&allowed, &[allowed.len() as i32]);
    Ok(ops::select(allowed, logits, Array::from_f32(f32::NEG_INFINITY))?)
}

/// Log probabilities of the drawn token and the most likely ones, from the row of `logits` it was drawn from.
pub fn logprobs(logits: &Array, row: usize, drawn: u32, top: usize) -> Result<Logprobs, Error> {
    let logits = logits.try_index(row as i32)?.as_dtype(Dtype::Float32)?;
    logits.eval()?;
    let logits: Vec<f32> = logits.to_vec_exact().map_err(|error| Error(error.to_string()))?;
    Ok(Logprobs::of(&logits, drawn, top))
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
