//! A mixture's experts as nodes of the graph: the choice, the products, the sum.

use mlx_rs::Array;

use crate::{
    Error, Weights,
    glue::{f32_output, fits, with_rows},
    kernels::{
        matmul::{self as product, Mode},
        moe,
        rows::RowsMut,
    },
    op::{Dtype, Output, apply, apply_one},
};

/// The `top` likeliest experts of each token, `[tokens, top]` u32, and their probabilities, `[tokens, top]` f32, out of
/// `[tokens, experts]` logits; `normed` has a token's probabilities sum to one.
///
/// # Errors
/// Shapes that do not fit.
pub fn route(logits: &Array, top: usize, normed: bool) -> Result<[Array; 2], Error> {
    let experts = *logits.shape().last().unwrap_or(&0);
    fits(logits.ndim() == 2 && (1..=experts as usize).contains(&top), || {
        format!("the best {top} experts of logits {:?}", logits.shape())
    })?;
    let shape = [logits.dim(0), top as i32];
    let ids = Output { shape: &shape, dtype: Dtype::U32, donor: None };
    let outputs = [ids, f32_output(&shape)];
    let made = apply(c"mettle::route", &[logits], &outputs, move |inputs, outputs| {
        let [ids, scores] = outputs else { unreachable!("two outputs were asked for") };
        with_rows(&inputs[0], 1, |logits| {
            let op = moe::Route { logits, top, normed };
            moe::route(&op, RowsMut::packed(ids.slice(), top), RowsMut::packed(scores.slice(), top));
        });
    })?;
    Ok(made.try_into().unwrap_or_else(|_| unreachable!("two outputs were asked for")))
}

/// Each row times the matrix of a stack that it chose: `[tokens, k]` or `[tokens * top, k]` by `[tokens, top]` u32 →
/// `[tokens * top, n]`.
///
/// # Errors
/// Shapes that do not fit. An id outside of the stack is an error of the evaluation.
pub fn gather_matmul(weights: &Weights, x: &Array, ids: &Array, mode: Mode) -> Result<Array, Error> {
    let layout = weights.layout;
    let products = ids.shape().iter().product::<i32>();
    let whole = ids.ndim() == 2
        && x.ndim() == 2
        && x.dim(1) as usize == layout.k
        && [ids.dim(0), products].contains(&x.dim(0))
        && ids.dtype() == mlx_rs::Dtype::Uint32;
    fits(whole, || {
        format!(
            "{:?} times {:?} {:?} of {} matrices [{}, {}]",
            x.shape(),
            ids.shape(),
            ids.dtype(),
            weights.matrices,
            layout.n,
            layout.k
        )
    })?;
    let weights = weights.clone();
    let shape = [products, layout.n as i32];
    apply_one(c"mettle::gather_matmul", &[x, ids], f32_output(&shape), move |inputs, output| {
        let matrices = inputs[1].gather::<u32>();
        with_rows(&inputs[0], 1, |x| {
            let op = product::Gather { packed: &weights.layout, data: weights.bytes(), x, matrices: &matrices, mode };
            product::gather(&op, RowsMut::packed(output.slice(), weights.layout.n));
        });
    })
}

/// `residual + Σ score * answer`: answers `[tokens * top, n]`, scores `[tokens, top]`, residual `[tokens, n]`.
///
/// # Errors
/// Shapes that do not fit.
pub fn combine(answers: &Array, scores: &Array, residual: &Array) -> Result<Array, Error> {
    let shape = residual.shape().to_vec();
    let whole = scores.ndim() == 2
        && shape.len() == 2
        && scores.dim(0) == shape[0]
        && answers.shape() == [scores.dim(0) * scores.dim(1), shape[1]];
    fits(whole, || format!("answers {:?} of {:?} experts onto {shape:?}", answers.shape(), scores.shape()))?;
    apply_one(c"mettle::combine", &[answers, scores, residual], f32_output(&shape), |inputs, output| {
        let width = inputs[2].shape()[1] as usize;
        with_rows(&inputs[0], 1, |answers| {
            with_rows(&inputs[1], 1, |scores| {
                with_rows(&inputs[2], 1, |add| {
                    moe::combine(answers, scores, add, RowsMut::packed(output.slice(), width));
                });
            });
        });
    })
}
