//! Layer norm (Ba et al. 2016).

use mlx_rs::{Array, fast};

use crate::mlx::{Backend, Error, quant::dtype, weights::Weights};

/// Takes the mean off each row, divides by the standard deviation, scales and shifts.
pub enum LayerNorm {
    /// For our CPU kernels.
    Cpu(mlx_cpu::LayerNorm),
    /// For MLX's own ops.
    Mlx {
        /// `[dim]`
        weight: Array,
        /// `[dim]`
        bias: Array,
        /// Added to the variance.
        eps: f32,
    },
}

impl LayerNorm {
    /// `weight` and `bias`, of `dim` numbers each.
    pub fn load(at: &Weights, dim: usize, eps: f32) -> Result<LayerNorm, Error> {
        let (weight, bias) = (at.numbers("weight", dim)?, at.numbers("bias", dim)?);
        Ok(match at.backend() {
            Backend::Cpu { .. } => {
                LayerNorm::Cpu(mlx_cpu::LayerNorm { weight: Some(weight.into()), bias: Some(bias.into()), eps })
            }
            Backend::Mlx { activations } => {
                let array = |numbers: &[f32]| Array::from_slice(numbers, &[dim as i32]).as_dtype(dtype(activations));
                LayerNorm::Mlx { weight: array(&weight)?, bias: array(&bias)?, eps }
            }
        })
    }

    /// `[tokens, dim]` → the same.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        Ok(match self {
            LayerNorm::Cpu(norm) => mlx_cpu::layer_norm(norm, x)?,
            LayerNorm::Mlx { weight, bias, eps } => fast::layer_norm(x, Some(weight), Some(bias), *eps)?,
        })
    }
}
