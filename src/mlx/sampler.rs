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
    // Every field is named: a new setting of `Sampling` does not compile until it is drawn with here or left out by name.
    let Sampling {
        temperature,
        top_k,
        top_p,
        min_p,
        seed: _,               // in `uniform`
        repetition_penalty: _, // this and what follows is in the adjustments
        presence_penalty: _,
        frequency_penalty: _,
        dry: _,
        logit_bias: _,
    } = draw.sampling;
    let off = mlx_cpu::Choice::GREEDY;
    let choice = mlx_cpu::Choice {
        temperature: temperature.unwrap_or(off.temperature),
        top_k: top_k.map_or(off.top_k, |top_k| top_k as usize),
        // The most likely token always stays, as whose share is 0 asks for.
        top_p: top_p.map_or(off.top_p, |share| share.max(f32::EPSILON)),
        min_p: min_p.unwrap_or(off.min_p),
        u: draw.sampling.uniform(draw.index),
    };
    let adjustment = |Adjustment { id, penalty, offset }| mlx_cpu::Adjustment { id: u32::from(id), penalty, offset };
    let adjustments = draw.penalties.adjustments().into_iter().map(adjustment).collect();
    mlx_cpu::Sample { choice, adjustments, allowed: None }
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
    let mlx_cpu::Choice { temperature, top_k, top_p, min_p, u } = row.choice;
    let logits = masked(adjusted(logits, &row.adjustments)?, row.allowed.as_ref())?;
    if temperature == 0.0 {
        return Ok(argmax_axis(&logits, 0, false)?);
    }
    let scaled = logits.divide(Array::from_f32(temperature))?;
    let order = ops::argsort(scaled.negative()?)?;
    let mut mass = ops::softmax_axis(scaled.take(&order)?, 0, true)?; // most likely first
    if top_k > 0 && top_k < logits.size() {
        let place = Array::arange::<i32, i32>(None, logits.size() as i32, None)?;
        let kept = place.lt(Array::from_int(top_k as i32))?;
        mass = mass.multiply(kept.as_dtype(Dtype::Float32)?)?;
    }
    if top_p < 1.0 {
        let before = mass.cumsum(0, None, None)?.subtract(&mass)?;
        let kept = before.lt(mass.sum(None)?.multiply(Array::from_f32(top_p))?)?;
        mass = mass.multiply(kept.as_dtype(Dtype::Float32)?)?;
    }
    if min_p > 0.0 {
        let kept = mass.ge(mass.max(None)?.multiply(Array::from_f32(min_p))?)?;
        mass = mass.multiply(kept.as_dtype(Dtype::Float32)?)?;
    }
    let reached = mass.cumsum(0, None, None)?;
    let target = mass.sum(None)?.multiply(Array::from_f32(u))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlx::Float;

    /// MLX's ops draw what our CPU kernel draws, which is tested against f64.
    #[test]
    fn both_ways_draw_the_same() {
        let cpu = Backend::Cpu { mode: mlx_cpu::Mode::Exact, kv: mlx_cpu::KvFormat::F16 };
        let mlx = Backend::Mlx { activations: Float::F32 };
        let mut state = 1u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..300 {
            let vocabulary = 2 + random(300);
            let logits: Vec<f32> = (0..vocabulary).map(|_| random(1 << 20) as f32 / 65536.0 - 8.0).collect();
            let logits = Array::from_slice(&logits, &[1, vocabulary as i32]);
            let choice = mlx_cpu::Choice {
                temperature: [0.0, 0.3, 1.0, 1.7][random(4)],
                top_k: [0, 1, 5, 50, 1000][random(5)],
                top_p: [1.0, 0.9, 0.5, 0.01][random(4)],
                min_p: [0.0, 0.05, 0.4][random(3)],
                u: random(1000) as f32 / 1000.0,
            };
            let adjustments = (0..random(3))
                .map(|id| mlx_cpu::Adjustment { id: (id % vocabulary) as u32, penalty: 1.3, offset: 2.0 })
                .take(vocabulary)
                .collect();
            let allowed = (round % 2 == 1).then(|| (0..10).map(|_| 1 | random(1 << 31) as u32).collect());
            let row = mlx_cpu::Sample { choice, adjustments, allowed };
            let token = |backend, u: f32| {
                let choice = mlx_cpu::Choice { u: u.max(0.0), ..row.choice };
                let drawn = draw(backend, &logits, vec![mlx_cpu::Sample { choice, ..row.clone() }]).expect("a draw");
                drawn.to_vec_exact::<u32>().expect("an id")[0]
            };
            let ours = token(mlx, choice.u);
            // On the border of two tokens either is right: the two ways round differently.
            let kernel = [-1e-5, 0.0, 1e-5].map(|off| token(cpu, choice.u + off));
            assert!(kernel.contains(&ours), "round {round}: {row:?} drew {ours}, not {kernel:?}");
        }
    }
}
