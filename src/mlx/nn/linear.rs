//! y = x Wᵀ + b. Quantised or not, packed for our kernels or in MLX's own form: nobody outside sees which.

use mlx_rs::{Array, ops};

use crate::mlx::{
    Backend, Error,
    array::from_bytes,
    quant::{Data, Float, Matrix},
    weights::{Weights, affine_arrays},
};

/// A linear layer, or several that read the same input stacked into one.
pub struct Linear {
    form: Form,
    bias: Option<Array>, // [outputs]
}

enum Form {
    /// For our CPU kernels: one stream of blocks of outputs.
    Packed {
        weights: mlx_cpu::Weights,
        mode: mlx_cpu::Mode,
    },
    Affine {
        weights: Array,
        scales: Array,
        biases: Array,
        group: i32,
        bits: i32,
    },
    Dense {
        weight: Array,
    }, // [outputs, inputs]
}

impl Linear {
    /// `weight` (quantised or not) and, where the checkpoint has one, `bias`.
    pub fn load(at: &Weights, inputs: usize, outputs: usize) -> Result<Linear, Error> {
        Linear::joined(&[(at.clone(), outputs)], inputs).map(|mut linears| linears.remove(0))
    }

    /// Linears over the same input: one, if their weights have the same form, else one each, in order. One is
    /// faster, as the input is quantised once and there are fewer ops.
    pub fn joined(parts: &[(Weights, usize)], inputs: usize) -> Result<Vec<Linear>, Error> {
        let matrices =
            parts.iter().map(|(at, outputs)| at.matrix(*outputs, inputs)).collect::<Result<Vec<Matrix>, Error>>()?;
        Linear::from_matrices(parts, matrices)
    }

    /// As [`Linear::joined`], for weights that were read (and perhaps reordered) already.
    pub fn from_matrices(parts: &[(Weights, usize)], matrices: Vec<Matrix>) -> Result<Vec<Linear>, Error> {
        let backend = parts[0].0.backend();
        let biases = parts
            .iter()
            .map(|(at, outputs)| at.has("bias").then(|| at.vector("bias", *outputs)).transpose())
            .collect::<Result<Vec<_>, Error>>()?;
        let alike = matrices.windows(2).all(|pair| pair[0].same_form(&pair[1]))
            && biases.iter().all(|bias| bias.is_some() == biases[0].is_some());
        if !alike {
            return matrices
                .into_iter()
                .zip(biases)
                .map(|(matrix, bias)| Ok(Linear { form: Form::new(matrix, backend)?, bias }))
                .collect();
        }
        let bias = match biases.into_iter().collect::<Option<Vec<Array>>>() {
            Some(biases) if biases.len() > 1 => Some(ops::concatenate(&biases, 0)?),
            Some(mut biases) => biases.pop(),
            None => None,
        };
        let matrix = matrices.into_iter().reduce(Matrix::stack).expect("a linear has a weight");
        Ok(vec![Linear { form: Form::new(matrix, backend)?, bias }])
    }

    /// A head that shares its weight with an embedding.
    pub(super) fn packed(weights: mlx_cpu::Weights, mode: mlx_cpu::Mode) -> Linear {
        Linear { form: Form::Packed { weights, mode }, bias: None }
    }

    pub(super) fn affine(weights: Array, scales: Array, biases: Array, group: i32, bits: i32) -> Linear {
        Linear { form: Form::Affine { weights, scales, biases, group, bits }, bias: None }
    }

    pub(super) fn dense(weight: Array) -> Linear {
        Linear { form: Form::Dense { weight }, bias: None }
    }

    /// `[tokens, inputs]` → `[tokens, outputs]`.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        let y = self.form.product(x, None)?;
        match &self.bias {
            Some(bias) => Ok(y.add(bias)?),
            None => Ok(y),
        }
    }

    /// `residual + forward(x)`, in one pass where the backend can.
    pub fn forward_onto(&self, x: &Array, residual: &Array) -> Result<Array, Error> {
        let y = self.form.product(x, Some(residual))?;
        match &self.bias {
            Some(bias) => Ok(y.add(bias)?),
            None => Ok(y),
        }
    }
}

impl Form {
    fn new(matrix: Matrix, backend: Backend) -> Result<Form, Error> {
        let Matrix { n, k, data } = &matrix;
        match (backend, data) {
            (Backend::Cpu { mode }, _) => Ok(Form::Packed { weights: pack(&matrix, 1)?, mode }),
            (Backend::Mlx { activations }, Data::Affine(affine)) => {
                let [weights, scales, biases] = affine_arrays(affine, [*n, *k], activations)?;
                Ok(Form::Affine { weights, scales, biases, group: affine.group as i32, bits: affine.bits as i32 })
            }
            (Backend::Mlx { activations }, Data::Dense { float, values }) => {
                let weight = from_bytes(values, &[*n as i32, *k as i32], float.mlx())?;
                Ok(Form::Dense { weight: weight.as_dtype(activations.mlx())? })
            }
            (Backend::Mlx { .. }, Data::SmallFloats(_)) => unreachable!("for_mlx left none"),
        }
    }

    fn product(&self, x: &Array, residual: Option<&Array>) -> Result<Array, Error> {
        let y = match self {
            Form::Packed { weights, mode } => return Ok(mlx_cpu::matmul(weights, x, residual, *mode)?),
            Form::Affine { weights, scales, biases, group, bits } => {
                ops::quantized_matmul(x, weights, scales, biases, true, *group, *bits)?.as_dtype(x.dtype())?
            }
            Form::Dense { weight } => x.matmul(weight.t())?,
        };
        match residual {
            Some(residual) => Ok(residual.add(y)?),
            None => Ok(y),
        }
    }
}

/// Packs a matrix for the CPU kernels, or a stack of `matrices`.
pub(super) fn pack(matrix: &Matrix, matrices: usize) -> Result<mlx_cpu::Weights, Error> {
    let float = |float: &Float| match float {
        Float::F32 => mlx_cpu::Float::F32,
        Float::F16 => mlx_cpu::Float::F16,
        Float::BF16 => mlx_cpu::Float::BF16,
    };
    let (n, k) = (matrix.n / matrices, matrix.k);
    Ok(match &matrix.data {
        Data::Dense { float: stored, values } => mlx_cpu::Weights::dense(n, k, float(stored), values),
        Data::Affine(affine) => mlx_cpu::Weights::affine(&mlx_cpu::Affine {
            n,
            k,
            bits: affine.bits,
            group: affine.group,
            float: float(&affine.float),
            weights: &affine.weights,
            scales: &affine.scales,
            biases: &affine.biases,
        })?,
        Data::SmallFloats(floats) => mlx_cpu::Weights::small_floats(&mlx_cpu::SmallFloats {
            n,
            k,
            format: floats.format,
            weights: &floats.codes,
            scales: &floats.scales,
        })?,
    })
}
