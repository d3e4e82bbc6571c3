//! Linear layers of which each row of the input uses the one it was routed to, stored as one stack.

use mlx_rs::{Array, Dtype, ops};

use super::stored::{MlxForm, MlxWeights, Quantised, Stored};
use crate::mlx::{Backend, Error, on_cpu, quant::Matrix, weights::Weights};

/// As many linears over `inputs` as there are experts.
pub struct Experts {
    /// Where they are dense, each is transposed: `[experts, inputs, outputs]`.
    weights: Stored,
    inputs: usize,
}

/// The experts' matrices of one projection: [experts * outputs, inputs].
fn read(at: &Weights, name: &str, experts: usize, [outputs, inputs]: [usize; 2]) -> Result<Matrix, Error> {
    let stacked = at.at("switch_mlp").at(name);
    if stacked.has("weight") {
        return stacked.matrices(experts, outputs, inputs);
    }
    // transformers stores each on its own.
    let one = |expert: usize| at.at("experts").at(expert).at(name).matrix(outputs, inputs);
    (1..experts).try_fold(one(0)?, |stack, expert| {
        let next = one(expert)?;
        if stack.same_form(&next) {
            Ok(stack.stack(next))
        } else {
            Err(Error(format!("{}: expert {expert} is quantised unlike those before it", at.path())))
        }
    })
}

impl Experts {
    /// The projection `name` of every expert, `shape` its outputs and inputs.
    pub fn load(at: &Weights, name: &str, experts: usize, shape: [usize; 2]) -> Result<Experts, Error> {
        Experts::new(&read(at, name, experts, shape)?, experts, at.backend())
    }

    /// Two projections of every expert over the same input: one stack, each expert's `names[0]` above its `names[1]`, or
    /// two where their weights differ in form.
    pub fn load_pair(at: &Weights, names: [&str; 2], experts: usize, shape: [usize; 2]) -> Result<Vec<Experts>, Error> {
        let [first, second] = names.map(|name| read(at, name, experts, shape));
        let (first, second) = (first?, second?);
        let parts =
            if first.same_form(&second) { vec![first.stack_each(second, experts)] } else { vec![first, second] };
        parts.iter().map(|matrix| Experts::new(matrix, experts, at.backend())).collect()
    }

    fn new(matrix: &Matrix, experts: usize, backend: Backend) -> Result<Experts, Error> {
        let weights = match Stored::stack(matrix, experts, backend)? {
            Stored::Mlx(MlxWeights { form: MlxForm::Dense(weights), activations }) => {
                // MLX's own gather on a CPU computes in f32 alone.
                let format = if on_cpu()? { Dtype::Float32 } else { weights.dtype() };
                let form = MlxForm::Dense(weights.as_dtype(format)?.transpose_axes(&[0, 2, 1])?);
                Stored::Mlx(MlxWeights { form, activations })
            }
            other => other,
        };
        Ok(Experts { weights, inputs: matrix.k })
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
