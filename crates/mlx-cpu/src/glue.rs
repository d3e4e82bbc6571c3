//! Joins kernels and graph: every function adds one node. Shapes are checked here, while the graph is built, so that
//! a mistake is an error of the call and not of a later evaluation.

use mlx_rs::Array;

use crate::{
    Error, Weights,
    kernels::{
        gate::{self, Activation},
        matmul::{self as product, Mode},
        norm, pack,
        rows::{Heads, HeadsMut, Rows, RowsMut},
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

/// `x Wᵀ (+ residual)`: `[m, k]` → `[m, n]`, f32.
///
/// # Errors
/// Shapes that do not fit, activations that are not f32.
pub fn matmul(weights: &Weights, x: &Array, residual: Option<&Array>, mode: Mode) -> Result<Array, Error> {
    let (m, k) = (x.dim(0), x.dim(1));
    fits(x.ndim() == 2 && k as usize == weights.layout.k && weights.matrices == 1, || {
        let Weights { layout, matrices, .. } = weights;
        format!("a matmul of {:?} by {matrices} [{}, {}]", x.shape(), layout.n, layout.k)
    })?;
    let weights = weights.clone();
    let shape = [m, weights.layout.n as i32];
    if let Some(residual) = residual {
        fits(residual.shape() == shape, || format!("a residual of {:?} for {shape:?}", residual.shape()))?;
    }
    let inputs: Vec<&Array> = [x].into_iter().chain(residual).collect();
    apply_one(c"mettle::matmul", &inputs, f32_output(&shape), move |inputs, output| {
        let width = weights.layout.n;
        with_rows(&inputs[0], 1, |x| {
            let compute = |add: Option<Rows>, out: &mut [f32]| {
                let op = product::Matmul { packed: &weights.layout, data: weights.bytes(), x, add, mode };
                product::matmul(&op, RowsMut::packed(out, width));
            };
            match inputs.get(1) {
                Some(residual) => with_rows(residual, 1, |add| compute(Some(add), output.slice())),
                None => compute(None, output.slice()),
            }
        });
    })
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

/// Normalises every `dim` neighbouring features of `[tokens, features]` by their root mean square.
///
/// # Errors
/// Shapes that do not fit.
pub fn rms_norm(x: &Array, weight: Option<&Array>, dim: usize, eps: f32) -> Result<Array, Error> {
    let features = *x.shape().last().unwrap_or(&0) as usize;
    let whole = dim > 0 && features.is_multiple_of(dim) && weight.is_none_or(|weight| weight.shape() == [dim as i32]);
    fits(whole, || format!("an rms_norm of {:?} by {dim}", x.shape()))?;
    let shape = x.shape().to_vec();
    let inputs: Vec<&Array> = [x].into_iter().chain(weight).collect();
    apply_one(c"mettle::rms_norm", &inputs, f32_output(&shape), move |inputs, output| {
        let weight = inputs.get(1).map(|weight| weight.gather::<f32>());
        with_rows(&inputs[0], 1, |x| {
            let op = norm::RmsNorm { x: heads(x, dim), weight: weight.as_deref(), eps, gate: None, add: None };
            norm::rms_norm(&op, HeadsMut::packed(output.slice(), x.width / dim, dim));
        });
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
