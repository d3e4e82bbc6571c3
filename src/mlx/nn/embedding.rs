//! The token table, and the output head that many models tie to it.

use mlx_rs::{Array, ops, ops::indexing::take_axis};

use super::{Linear, linear::pack};
use crate::mlx::{
    Backend, Error,
    array::from_bytes,
    quant::{Data, Float},
    weights::{Weights, affine_arrays},
};

/// A table of `[vocabulary, dim]`, quantised or not.
pub struct Embedding {
    form: Form,
}

#[derive(Clone)]
enum Form {
    Packed { weights: mlx_cpu::Weights, mode: mlx_cpu::Mode },
    Affine { weights: Array, scales: Array, biases: Array, group: i32, bits: i32, activations: Float },
    Dense { weight: Array },
}

impl Embedding {
    pub fn load(at: &Weights, vocabulary: usize, dim: usize) -> Result<Embedding, Error> {
        let matrix = at.matrix(vocabulary, dim)?;
        let form = match (at.backend(), &matrix.data) {
            (Backend::Cpu { mode, .. }, _) => Form::Packed { weights: pack(&matrix, 1)?, mode },
            (Backend::Mlx { activations }, Data::Affine(affine)) => {
                let [weights, scales, biases] = affine_arrays(affine, [vocabulary, dim], activations)?;
                let (group, bits) = (affine.group as i32, affine.bits as i32);
                Form::Affine { weights, scales, biases, group, bits, activations }
            }
            (Backend::Mlx { activations }, Data::Dense { float, values }) => {
                let weight = from_bytes(values, &[vocabulary as i32, dim as i32], float.mlx())?;
                Form::Dense { weight: weight.as_dtype(activations.mlx())? }
            }
            (Backend::Mlx { .. }, Data::SmallFloats(_)) => unreachable!("for_mlx left none"),
        };
        Ok(Embedding { form })
    }

    /// `[tokens]` ids → `[tokens, dim]`.
    pub fn forward(&self, tokens: &Array) -> Result<Array, Error> {
        Ok(match &self.form {
            Form::Packed { weights, .. } => mlx_cpu::embedding(weights, tokens)?,
            Form::Affine { weights, scales, biases, group, bits, activations } => {
                let rows = |table: &Array| take_axis(table, tokens, 0);
                let (weights, scales, biases) = (rows(weights)?, rows(scales)?, rows(biases)?);
                ops::dequantize(&weights, &scales, &biases, *group, *bits)?.as_dtype(activations.mlx())?
            }
            Form::Dense { weight } => take_axis(weight, tokens, 0)?,
        })
    }

    /// The output head at `at`, or the one that computes logits with this very table: where the config says that the
    /// two are tied, or says nothing and there is no head. A stored copy of a tied head stays unread.
    pub fn head(&self, at: &Weights, tied: Option<bool>, dim: usize, vocabulary: usize) -> Result<Linear, Error> {
        if tied.unwrap_or(!at.has("weight")) {
            at.ignore();
            return Ok(self.tied_head());
        }
        Linear::load(at, dim, vocabulary)
    }

    fn tied_head(&self) -> Linear {
        match self.form.clone() {
            Form::Packed { weights, mode } => Linear::Cpu(mlx_cpu::Linear { weights, bias: None, mode }),
            Form::Affine { weights, scales, biases, group, bits, .. } => {
                Linear::Affine { weights, scales, biases, group, bits, bias: None }
            }
            Form::Dense { weight } => Linear::Dense { weight, bias: None },
        }
    }
}
