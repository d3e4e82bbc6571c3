//! y = x Wᵀ + b. Quantised or not, packed for our kernels or in MLX's own form: nobody outside sees which.

use mlx_rs::{Array, ops};

use super::{
    pieces,
    stored::{MlxForm, MlxWeights, Quantised, Stored},
};
use crate::mlx::{Error, weights::Weights};

/// A linear layer.
pub enum Linear {
    /// For our CPU kernels: one stream of blocks of outputs.
    Cpu(mlx_cpu::Linear),
    /// For MLX's own ops.
    Mlx {
        /// `[outputs, inputs]`
        weights: MlxWeights,
        /// `[outputs]`
        bias: Option<Array>,
    },
}

impl Linear {
    /// `weight` (quantised or not) and, where the checkpoint has one, `bias`.
    pub async fn load(at: &Weights<'_>, inputs: usize, outputs: usize) -> Result<Linear, Error> {
        let bias = at.bias(outputs)?;
        Linear::of(pieces::load_one(at, outputs, inputs).await?, bias)
    }

    /// A layer over weights that lie here already, with as many biases as outputs or none.
    pub fn of(weights: Stored, bias: Option<Vec<f32>>) -> Result<Linear, Error> {
        Ok(match weights {
            Stored::Cpu { weights, mode } => Linear::Cpu(mlx_cpu::Linear { weights, bias: bias.map(Into::into), mode }),
            Stored::Mlx(weights) => {
                let array =
                    |bias: Vec<f32>| Array::from_slice(&bias, &[bias.len() as i32]).as_dtype(weights.activations);
                let bias = bias.map(array).transpose()?;
                Linear::Mlx { weights, bias }
            }
        })
    }

    /// What our CPU kernels run; `None` elsewhere.
    pub fn kernel(&self) -> Option<&mlx_cpu::Linear> {
        match self {
            Linear::Cpu(linear) => Some(linear),
            Linear::Mlx { .. } => None,
        }
    }

    /// `[tokens, inputs]` → `[tokens, outputs]`.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        let (weights, bias) = match self {
            Linear::Cpu(linear) => return Ok(mlx_cpu::linear(linear, x, None)?),
            Linear::Mlx { weights, bias } => (weights, bias),
        };
        let y = match &weights.form {
            MlxForm::Affine(Quantised { weights, scales, biases, group, bits }) => {
                ops::quantized_matmul(x, weights, scales, biases, true, *group, *bits)?.as_dtype(x.dtype())?
            }
            MlxForm::Dense(weights) => x.matmul(weights.t())?,
        };
        match bias {
            Some(bias) => Ok(y.add(bias)?),
            None => Ok(y),
        }
    }

    /// `residual + forward(x)`, in one pass where the backend can.
    pub fn forward_onto(&self, x: &Array, residual: &Array) -> Result<Array, Error> {
        match self {
            Linear::Cpu(linear) => Ok(mlx_cpu::linear(linear, x, Some(residual))?),
            _ => Ok(residual.add(self.forward(x)?)?),
        }
    }
}

/// Linears over the same input: stacked into one, if their weights have the same form, else one each. One is faster, as
/// the input is quantised once and there are fewer ops.
pub struct Joined {
    linears: Vec<Linear>,
    /// Outputs of each part, in order.
    widths: Vec<usize>,
}

impl Joined {
    /// The parts' places and outputs.
    pub async fn load(parts: &[(Weights<'_>, usize)], inputs: usize) -> Result<Joined, Error> {
        let widths = parts.iter().map(|(_, outputs)| *outputs).collect();
        let biases = parts.iter().map(|(at, outputs)| at.bias(*outputs)).collect::<Result<Vec<_>, Error>>()?;
        if biases.iter().all(|bias| bias.is_some() == biases[0].is_some())
            && let Some(weights) = pieces::load(parts, inputs).await?
        {
            let bias = biases.into_iter().collect::<Option<Vec<_>>>().map(|biases| biases.concat());
            return Ok(Joined { linears: vec![Linear::of(weights, bias)?], widths });
        }
        let mut linears = Vec::with_capacity(parts.len());
        for ((at, outputs), bias) in parts.iter().zip(biases) {
            linears.push(Linear::of(pieces::load_one(at, *outputs, inputs).await?, bias)?);
        }
        Ok(Joined { linears, widths })
    }

    /// `[tokens, inputs]` → `[tokens, outputs]` of each part.
    pub fn forward(&self, x: &Array) -> Result<Vec<Array>, Error> {
        if self.linears.len() == self.widths.len() {
            return self.linears.iter().map(|linear| linear.forward(x)).collect();
        }
        let ends = self.widths.iter().scan(0, |end, width| {
            *end += *width as i32;
            Some(*end)
        });
        let cuts: Vec<i32> = ends.take(self.widths.len() - 1).collect();
        Ok(self.linears[0].forward(x)?.split_at_indices(&cuts, 1)?)
    }

    /// What our CPU kernels run; `None` elsewhere.
    pub fn kernel(&self) -> Result<Option<mlx_cpu::Joined>, Error> {
        let linears: Option<Vec<mlx_cpu::Linear>> =
            self.linears.iter().map(|linear| linear.kernel().cloned()).collect();
        Ok(linears.map(|linears| mlx_cpu::Joined::new(linears, &self.widths)).transpose()?)
    }
}
