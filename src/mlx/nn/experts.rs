//! Linear layers of which each row of the input uses the one it was routed to, stored as one stack.

use std::ops::Range;

use mlx_rs::{Array, Dtype, ops};

use super::{
    pieces,
    stored::{MlxForm, MlxWeights, Quantised, Stored},
};
use crate::mlx::{Error, on_cpu, quant::Matrix, weights::Weights};

/// As many linears over `inputs` as there are experts.
pub struct Experts {
    /// Where they are dense, each is transposed: `[experts, inputs, outputs]`.
    weights: Stored,
    inputs: usize,
}

/// The matrices of one projection of some experts: [experts * outputs, inputs]. `None` where they are quantised in
/// different ways.
fn read(at: &Weights, name: &str, all: [usize; 3], range: Range<usize>) -> Result<Option<Matrix>, Error> {
    let [experts, outputs, inputs] = all;
    let stacked = at.at("switch_mlp").at(name);
    if stacked.has("weight") {
        return stacked.rows(range).matrices(experts, outputs, inputs).map(Some);
    }
    // transformers stores each on its own.
    let mut stack: Option<Matrix> = None;
    for expert in range {
        let next = at.at("experts").at(expert).at(name).matrix(outputs, inputs)?;
        stack = match stack {
            None => Some(next),
            Some(stack) if stack.same_form(&next) => Some(stack.stack(next)),
            Some(_) => return Ok(None),
        };
    }
    Ok(stack)
}

impl Experts {
    /// The projection `name` of every expert, `shape` its outputs and inputs.
    pub async fn load(at: &Weights<'_>, name: &str, experts: usize, shape: [usize; 2]) -> Result<Experts, Error> {
        let all = [experts, shape[0], shape[1]];
        match pieces::load_stack(at, all, |range| read(at, name, all, range)).await? {
            Some(stored) => Experts::new(stored, shape[1]),
            None => Err(Error(format!("{}.{name}: not all experts are quantised alike", at.path()))),
        }
    }

    /// Two projections of every expert over the same input: one stack, each expert's `names[0]` above its `names[1]`, or
    /// two where their weights differ in form.
    pub async fn load_pair(
        at: &Weights<'_>,
        names: [&str; 2],
        experts: usize,
        shape: [usize; 2],
    ) -> Result<Vec<Experts>, Error> {
        let all = [experts, shape[0], shape[1]];
        let pair = |range: Range<usize>| {
            let [upper, lower] = names.map(|name| read(at, name, all, range.clone()));
            let (Some(upper), Some(lower)) = (upper?, lower?) else { return Ok(None) };
            Ok(upper.same_form(&lower).then(|| upper.stack_each(lower, range.len())))
        };
        if let Some(both) = pieces::load_stack(at, [experts, 2 * shape[0], shape[1]], pair).await? {
            return Ok(vec![Experts::new(both, shape[1])?]);
        }
        let upper = Experts::load(at, names[0], experts, shape).await?;
        Ok(vec![upper, Experts::load(at, names[1], experts, shape).await?])
    }

    fn new(stored: Stored, inputs: usize) -> Result<Experts, Error> {
        let weights = match stored {
            Stored::Mlx(MlxWeights { form: MlxForm::Dense(weights), activations }) => {
                // MLX's own gather on a CPU computes in f32 alone.
                let format = if on_cpu()? { Dtype::Float32 } else { weights.dtype() };
                let form = MlxForm::Dense(weights.as_dtype(format)?.transpose_axes(&[0, 2, 1])?);
                Stored::Mlx(MlxWeights { form, activations })
            }
            other => other,
        };
        Ok(Experts { weights, inputs })
    }

    /// `[tokens, inputs]`, or `[tokens * top, inputs]`, with the experts `[tokens, top]` → `[tokens * top, outputs]`.
    pub fn forward(&self, x: &Array, experts: &Array) -> Result<Array, Error> {
        let [tokens, top] = [experts.dim(0), experts.dim(1)];
        // [tokens, 1 or top, 1, inputs]
        let rows = || x.reshape(&[tokens, x.dim(0) / tokens, 1, self.inputs as i32]);
        let y = match &self.weights {
            Stored::Cpu { weights, mode } => return Ok(mlx_cpu::gather_matmul(weights, x, experts, *mode)?),
            Stored::Mlx(MlxWeights { form: MlxForm::Affine(table), .. }) => {
                let Quantised { weights, scales, biases, group, bits } = table;
                ops::gather_qmm(rows()?, weights, scales, biases, None, experts, true, *group, *bits, false)?
            }
            Stored::Mlx(MlxWeights { form: MlxForm::Dense(weights), .. }) => {
                ops::gather_mm(rows()?.as_dtype(weights.dtype())?, weights, None, experts, false)?
            }
        };
        Ok(y.reshape(&[tokens * top, -1])?.as_dtype(x.dtype())?)
    }
}
