//! The token table, and the output head that many models tie to it.

use mlx_rs::{Array, Dtype, ops, ops::indexing::take_axis};

use super::{
    Linear,
    stored::{Quantised, Stored},
};
use crate::mlx::{Backend, Error, weights::Weights};

/// A table of `[vocabulary, dim]`, quantised or not.
pub struct Embedding {
    table: Stored,
    /// What MLX's ops make of it.
    activations: Dtype,
}

impl Embedding {
    pub fn load(at: &Weights, vocabulary: usize, dim: usize) -> Result<Embedding, Error> {
        let backend = at.backend();
        let activations = match backend {
            Backend::Cpu { .. } => Dtype::Float32,
            Backend::Mlx { activations } => activations.mlx(),
        };
        Ok(Embedding { table: Stored::new(&at.matrix(vocabulary, dim)?, backend)?, activations })
    }

    /// `[tokens]` ids → `[tokens, dim]`.
    pub fn forward(&self, tokens: &Array) -> Result<Array, Error> {
        Ok(match &self.table {
            Stored::Cpu { weights, .. } => mlx_cpu::embedding(weights, tokens)?,
            Stored::Affine(Quantised { weights, scales, biases, group, bits }) => {
                let rows = |table: &Array| take_axis(table, tokens, 0);
                let (weights, scales, biases) = (rows(weights)?, rows(scales)?, rows(biases)?);
                ops::dequantize(&weights, &scales, &biases, *group, *bits)?.as_dtype(self.activations)?
            }
            Stored::Dense(weights) => take_axis(weights, tokens, 0)?,
        })
    }

    /// The output head at `at`, or the one that computes logits with this very table: where the config says that the
    /// two are tied, or says nothing and there is no head. A stored copy of a tied head stays unread.
    pub fn head(&self, at: &Weights, tied: Option<bool>, dim: usize, vocabulary: usize) -> Result<Linear, Error> {
        if tied.unwrap_or(!at.has("weight")) {
            at.ignore();
            return Ok(Linear::of(self.table.clone()));
        }
        Linear::load(at, dim, vocabulary)
    }
}
