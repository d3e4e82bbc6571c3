//! Norms as kernels run them, and as one node each.

use std::sync::Arc;

use mlx_rs::Array;

use crate::{
    Error,
    glue::{f32_output, fits, heads, with_rows},
    kernels::{
        norm as kernels,
        rows::{HeadsMut, Rows},
    },
    op::apply_one,
};

/// Normalises every `dim` neighbouring features by their root mean square and scales them.
#[derive(Clone)]
pub struct Norm {
    /// `[dim]`
    pub weight: Option<Arc<[f32]>>,
    pub dim: usize,
    /// Added to the mean of the squares.
    pub eps: f32,
}

impl Norm {
    /// Writes the normed rows to `out`, without gaps.
    pub(crate) fn run(&self, x: Rows, out: &mut [f32]) {
        let op = kernels::RmsNorm {
            x: heads(x, self.dim),
            weight: self.weight.as_deref(),
            eps: self.eps,
            gate: None,
            add: None,
        };
        kernels::rms_norm(&op, HeadsMut::packed(out, x.width / self.dim, self.dim));
    }
}

/// `[tokens, features]` → the same, features being a multiple of the norm's `dim`.
///
/// # Errors
/// Shapes that do not fit.
pub fn rms_norm(norm: &Norm, x: &Array) -> Result<Array, Error> {
    let features = *x.shape().last().unwrap_or(&0) as usize;
    let weight = norm.weight.as_ref().is_none_or(|weight| weight.len() == norm.dim);
    fits(norm.dim > 0 && features.is_multiple_of(norm.dim) && weight, || {
        format!("an rms_norm of {:?} by {}", x.shape(), norm.dim)
    })?;
    let norm = norm.clone();
    apply_one(c"mettle::rms_norm", &[x], f32_output(x.shape()), move |inputs, output| {
        with_rows(&inputs[0], 1, |x| norm.run(x, output.slice()));
    })
}

/// Takes the mean off each row, divides by the standard deviation, scales and shifts.
#[derive(Clone)]
pub struct LayerNorm {
    /// `[dim]`
    pub weight: Option<Arc<[f32]>>,
    /// `[dim]`
    pub bias: Option<Arc<[f32]>>,
    /// Added to the variance.
    pub eps: f32,
}

/// `[tokens, dim]` → the same.
///
/// # Errors
/// Shapes that do not fit.
pub fn layer_norm(norm: &LayerNorm, x: &Array) -> Result<Array, Error> {
    let dim = *x.shape().last().unwrap_or(&0) as usize;
    let whole = [&norm.weight, &norm.bias].into_iter().flatten().all(|vector| vector.len() == dim);
    fits(dim > 0 && whole, || format!("a layer_norm of {:?} with a weight or bias of another length", x.shape()))?;
    let norm = norm.clone();
    apply_one(c"mettle::layer_norm", &[x], f32_output(x.shape()), move |inputs, output| {
        with_rows(&inputs[0], 1, |x| {
            let (weight, bias) = (norm.weight.as_deref(), norm.bias.as_deref());
            let op = kernels::LayerNorm { x: heads(x, x.width), weight, bias, eps: norm.eps };
            kernels::layer_norm(&op, HeadsMut::packed(output.slice(), 1, x.width));
        });
    })
}
