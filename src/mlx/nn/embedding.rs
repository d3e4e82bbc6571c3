//! The token table, and the output head that many models tie to it.

use mlx_rs::{Array, ops, ops::indexing::take_axis};

use super::{
    Linear,
    stored::{MlxForm, MlxWeights, Quantised, Stored},
};
use crate::mlx::{
    Backend, Error,
    quant::{Data, Float, Matrix},
};

/// A table of `[vocabulary, dim]`, quantised or not.
pub struct Embedding {
    table: Stored,
}

impl Embedding {
    /// A table that lies here already.
    pub fn of(table: Stored) -> Embedding {
        Embedding { table }
    }

    /// A table of plain numbers of this shape, rows one after the other.
    pub fn of_floats(values: &[f32], [rows, dim]: [usize; 2], backend: Backend) -> Result<Embedding, Error> {
        let values = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let matrix = Matrix { n: rows, k: dim, data: Data::Dense { float: Float::F32, values } };
        Ok(Embedding { table: Stored::new(&matrix, backend)? })
    }

    /// `[tokens]` ids → `[tokens, dim]`.
    pub fn forward(&self, tokens: &Array) -> Result<Array, Error> {
        match &self.table {
            Stored::Cpu { weights, .. } => Ok(mlx_cpu::embedding(weights, tokens)?),
            Stored::Mlx(MlxWeights { form: MlxForm::Dense(weights), .. }) => Ok(take_axis(weights, tokens, 0)?),
            Stored::Mlx(MlxWeights { form: MlxForm::Affine(table), activations }) => {
                let Quantised { weights, scales, biases, group, bits } = table;
                let rows = |table: &Array| take_axis(table, tokens, 0);
                let rows = ops::dequantize(rows(weights)?, rows(scales)?, &rows(biases)?, *group, *bits)?;
                Ok(rows.as_dtype(*activations)?)
            }
        }
    }

    /// The output head that computes logits with this very table.
    pub fn head(&self) -> Result<Linear, Error> {
        Linear::of(self.table.clone(), None)
    }
}
