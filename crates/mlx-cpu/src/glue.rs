//! Joins kernels and graph: every function adds one node. Shapes are checked here, while the graph is built, so that
//! a mistake is an error of the call and not of a later evaluation.

use mlx_rs::Array;

use crate::{
    Error, Weights,
    kernels::{
        gate::{self, Activation},
        pack,
        rows::{Heads, Rows, RowsMut},
    },
    op::{Dtype, Output, View, apply_one},
};

pub(crate) fn f32_output(shape: &[i32]) -> Output<'_> {
    Output { shape, dtype: Dtype::F32, donor: None }
}

pub(crate) fn fits(holds: bool, sentence: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error(sentence())) }
}

/// Runs `body` on an input's rows of `inner` last axes; rows that do not fold are copied together first.
pub(crate) fn with_rows<T>(view: &View, inner: usize, body: impl FnOnce(Rows) -> T) -> T {
    match view.rows::<f32>(inner) {
        Some(rows) => body(rows),
        None => {
            let copy = view.gather::<f32>();
            let shape = view.shape();
            let width = shape[shape.len() - inner..].iter().map(|&extent| extent as usize).product();
            body(Rows::packed(&copy, width))
        }
    }
}

/// Rows of an embedding table: `[tokens]` u32 → `[tokens, k]` f32.
///
/// # Errors
/// Ids that are not a u32 vector. An id outside of the table is an error of the evaluation.
pub fn embedding(weights: &Weights, ids: &Array) -> Result<Array, Error> {
    fits(ids.ndim() == 1 && ids.dtype() == mlx_rs::Dtype::Uint32, || {
        format!("an embedding of {:?} {:?}", ids.shape(), ids.dtype())
    })?;
    let weights = weights.clone();
    let shape = [ids.dim(0), weights.layout.k as i32];
    apply_one(c"mettle::embedding", &[ids], f32_output(&shape), move |inputs, output| {
        let ids = inputs[0].gather::<u32>();
        pack::embedding(&weights.layout, weights.bytes(), &ids, RowsMut::packed(output.slice(), weights.layout.k));
    })
}

/// Rows of features as heads of `dim` each.
pub(crate) fn heads(rows: Rows, dim: usize) -> Heads {
    let Rows { data, count, stride, width } = rows;
    Heads { data, tokens: count, heads: width / dim, dim, token_stride: stride, head_stride: dim }
}

/// silu(gate) * up, both of one shape.
///
/// # Errors
/// Shapes that differ.
pub fn silu_mul(gate: &Array, up: &Array) -> Result<Array, Error> {
    let shape = gate.shape().to_vec();
    fits(shape == up.shape() && !shape.is_empty(), || format!("silu_mul of {shape:?} and {:?}", up.shape()))?;
    apply_one(c"mettle::silu_mul", &[gate, up], f32_output(&shape), |inputs, output| {
        let width = *inputs[0].shape().last().expect("checked above") as usize;
        with_rows(&inputs[0], 1, |g| {
            with_rows(&inputs[1], 1, |up| gate::gated(Activation::Silu, g, up, RowsMut::packed(output.slice(), width)))
        });
    })
}
