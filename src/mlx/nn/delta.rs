//! The gated delta rule (Yang et al. 2024): a recurrence that decays its memory, erases what it would answer to a
//! key and writes the new value in its place. In MLX's own ops; on a CPU the whole layer is one of ours.

use mlx_rs::{Array, ops, ops::indexing::TryIndexOp};

use crate::mlx::Error;

/// One sequence's inputs to the recurrence, normalised already.
pub struct DeltaInputs<'a> {
    pub q: &'a Array,    // [length, key_heads, key_dim]
    pub k: &'a Array,    // [length, key_heads, key_dim]
    pub v: &'a Array,    // [length, value_heads, value_dim]
    pub g: &'a Array,    // [length, value_heads], how much of the memory stays, f32
    pub beta: &'a Array, // [length, value_heads], how strongly the new value is written
}

/// Runs the recurrence over a sequence; `state` is `[value_heads, value_dim, key_dim]` in f32 and moves on. Returns
/// `[length, value_heads, value_dim]`. A value head uses key head (its number / value heads a key head).
pub fn gated_delta(inputs: &DeltaInputs, state: &mut Array) -> Result<Array, Error> {
    let DeltaInputs { q, k, v, g, beta } = inputs;
    let (value_heads, value_dim) = (v.dim(1), v.dim(2));
    let (key_heads, key_dim) = (q.dim(1), q.dim(2));
    let repeat = value_heads / key_heads;
    let mut outputs = Vec::new();
    for t in 0..q.dim(0) {
        // [key_heads, key_dim] → [value_heads, 1, key_dim]
        let spread = |x: &Array| -> Result<Array, Error> {
            let row = x.try_index(t)?.reshape(&[key_heads, 1, key_dim])?;
            let row = ops::broadcast_to(&row, &[key_heads, repeat, key_dim])?;
            Ok(row.reshape(&[value_heads, 1, key_dim])?.as_dtype(state.dtype())?)
        };
        let (q, k) = (spread(q)?, spread(k)?);
        let column = |x: &Array| -> Result<Array, Error> { Ok(x.try_index(t)?.reshape(&[value_heads, -1, 1])?) };
        let decayed = state.multiply(column(g)?)?;
        let answer = decayed.multiply(&k)?.sum_axis(-1, true)?; // [value_heads, value_dim, 1]
        let change = column(v)?.subtract(&answer)?.multiply(column(beta)?)?;
        *state = decayed.add(change.multiply(&k)?)?;
        outputs.push(state.multiply(&q)?.sum_axis(-1, false)?); // [value_heads, value_dim]
    }
    Ok(ops::stack(&outputs, 0)?.as_dtype(v.dtype())?.reshape(&[-1, value_heads, value_dim])?)
}
