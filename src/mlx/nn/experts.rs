//! Linear layers of which each row of the input uses the one it was routed to, stored as one stack.

use mlx_rs::{Array, ops};

use super::linear::pack;
use crate::mlx::{
    Backend, Error,
    array::from_bytes,
    on_cpu,
    quant::{Data, Float, Matrix},
    weights::{Weights, affine_arrays},
};

/// As many linears over `inputs` as there are experts.
pub struct Experts {
    form: Form,
    inputs: usize,
}

enum Form {
    Packed { weights: mlx_cpu::Weights, mode: mlx_cpu::Mode },
    Affine { weights: Array, scales: Array, biases: Array, group: i32, bits: i32 },
    Dense { weights: Array }, // [experts, inputs, outputs]
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
        match stack.same_form(&next) {
            true => Ok(stack.stack(next)),
            false => Err(Error(format!("{}: expert {expert} is quantised unlike those before it", at.path()))),
        }
    })
}

impl Experts {
    /// The projection `name` of every expert.
    pub fn load(at: &Weights, name: &str, experts: usize, outputs: usize, inputs: usize) -> Result<Experts, Error> {
        Experts::new(read(at, name, experts, [outputs, inputs])?, experts, at.backend())
    }

    /// Two projections of every expert over the same input: one stack, each expert's `names[0]` above its `names[1]`, or
    /// two where their weights differ in form.
    pub fn load_pair(
        at: &Weights,
        names: [&str; 2],
        experts: usize,
        outputs: usize,
        inputs: usize,
    ) -> Result<Vec<Experts>, Error> {
        let [first, second] = names.map(|name| read(at, name, experts, [outputs, inputs]));
        let (first, second) = (first?, second?);
        let parts = match first.same_form(&second) {
            true => vec![first.stack_each(second, experts)],
            false => vec![first, second],
        };
        parts.into_iter().map(|matrix| Experts::new(matrix, experts, at.backend())).collect()
    }

    fn new(matrix: Matrix, experts: usize, backend: Backend) -> Result<Experts, Error> {
        let shape = [experts as i32, (matrix.n / experts) as i32, matrix.k as i32];
        let form = match (backend, &matrix.data) {
            (Backend::Cpu { mode, .. }, _) => Form::Packed { weights: pack(&matrix, experts)?, mode },
            (Backend::Mlx { activations }, Data::Affine(affine)) => {
                let arrays = affine_arrays(affine, [matrix.n, matrix.k], activations)?;
                let stacked = |array: &Array| array.reshape(&[shape[0], shape[1], -1]);
                let [weights, scales, biases] = [stacked(&arrays[0])?, stacked(&arrays[1])?, stacked(&arrays[2])?];
                Form::Affine { weights, scales, biases, group: affine.group as i32, bits: affine.bits as i32 }
            }
            (Backend::Mlx { activations }, Data::Dense { float, values }) => {
                // MLX's own gather on a CPU computes in f32 alone.
                let format = if on_cpu()? { Float::F32 } else { activations };
                let weights = from_bytes(values, &shape, float.mlx())?.as_dtype(format.mlx())?;
                Form::Dense { weights: weights.transpose_axes(&[0, 2, 1])? }
            }
            (Backend::Mlx { .. }, Data::SmallFloats(_)) => unreachable!("for_mlx left none"),
        };
        Ok(Experts { form, inputs: matrix.k })
    }

    /// `[tokens, inputs]`, or `[tokens * top, inputs]`, with the experts `[tokens, top]` → `[tokens * top, outputs]`.
    pub fn forward(&self, x: &Array, experts: &Array) -> Result<Array, Error> {
        let [tokens, top] = [experts.dim(0), experts.dim(1)];
        // [tokens, 1 or top, 1, inputs]
        let rows = || x.reshape(&[tokens, x.dim(0) / tokens, 1, self.inputs as i32]);
        let y = match &self.form {
            Form::Packed { weights, mode } => return Ok(mlx_cpu::gather_matmul(weights, x, experts, *mode)?),
            Form::Affine { weights, scales, biases, group, bits } => {
                let (x, transposed) = (rows()?, true);
                ops::gather_qmm(&x, weights, scales, biases, None, experts, transposed, *group, *bits, false)?
            }
            Form::Dense { weights } => {
                ops::gather_mm(rows()?.as_dtype(weights.dtype())?, weights, None, experts, false)?
            }
        };
        Ok(y.reshape(&[tokens * top, -1])?.as_dtype(x.dtype())?)
    }
}
