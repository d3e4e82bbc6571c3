//! y = x Wᵀ + b. Quantised or not, packed for our kernels or in MLX's own form: nobody outside sees which.

use mlx_rs::{Array, ops};

use crate::mlx::{
    Backend, Error,
    array::from_bytes,
    quant::{Data, Float, Matrix},
    weights::{Weights, affine_arrays},
};

/// A linear layer.
pub enum Linear {
    /// For our CPU kernels: one stream of blocks of outputs.
    Cpu(mlx_cpu::Linear),
    Affine {
        weights: Array,
        scales: Array,
        biases: Array,
        group: i32,
        bits: i32,
        bias: Option<Array>, // [outputs]
    },
    Dense {
        weight: Array,       // [outputs, inputs]
        bias: Option<Array>, // [outputs]
    },
}

impl Linear {
    /// `weight` (quantised or not) and, where the checkpoint has one, `bias`.
    pub fn load(at: &Weights, inputs: usize, outputs: usize) -> Result<Linear, Error> {
        Joined::load(&[(at.clone(), outputs)], inputs).map(|mut joined| joined.linears.remove(0))
    }

    fn new(matrix: Matrix, bias: Option<Vec<f32>>, backend: Backend) -> Result<Linear, Error> {
        let Matrix { n, k, data } = &matrix;
        let activations = match backend {
            Backend::Cpu { mode, .. } => {
                let bias = bias.map(Into::into);
                return Ok(Linear::Cpu(mlx_cpu::Linear { weights: pack(&matrix, 1)?, bias, mode }));
            }
            Backend::Mlx { activations } => activations,
        };
        let array = |bias: Vec<f32>| Array::from_slice(&bias, &[*n as i32]).as_dtype(activations.mlx());
        let bias = bias.map(array).transpose()?;
        match data {
            Data::Affine(affine) => {
                let [weights, scales, biases] = affine_arrays(affine, [*n, *k], activations)?;
                let (group, bits) = (affine.group as i32, affine.bits as i32);
                Ok(Linear::Affine { weights, scales, biases, group, bits, bias })
            }
            Data::Dense { float, values } => {
                let weight = from_bytes(values, &[*n as i32, *k as i32], float.mlx())?;
                Ok(Linear::Dense { weight: weight.as_dtype(activations.mlx())?, bias })
            }
            Data::SmallFloats(_) => unreachable!("for_mlx left none"),
        }
    }

    /// What our CPU kernels run; `None` elsewhere.
    pub fn kernel(&self) -> Option<&mlx_cpu::Linear> {
        match self {
            Linear::Cpu(linear) => Some(linear),
            _ => None,
        }
    }

    /// `[tokens, inputs]` → `[tokens, outputs]`.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        let (y, bias) = match self {
            Linear::Cpu(linear) => return Ok(mlx_cpu::linear(linear, x, None)?),
            Linear::Affine { weights, scales, biases, group, bits, bias } => {
                let y = ops::quantized_matmul(x, weights, scales, biases, true, *group, *bits)?;
                (y.as_dtype(x.dtype())?, bias)
            }
            Linear::Dense { weight, bias } => (x.matmul(weight.t())?, bias),
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
    pub fn load(parts: &[(Weights, usize)], inputs: usize) -> Result<Joined, Error> {
        let matrices =
            parts.iter().map(|(at, outputs)| at.matrix(*outputs, inputs)).collect::<Result<Vec<Matrix>, Error>>()?;
        Joined::from_matrices(parts, matrices)
    }

    /// As [`Joined::load`], for weights that were read (and perhaps reordered) already.
    pub fn from_matrices(parts: &[(Weights, usize)], matrices: Vec<Matrix>) -> Result<Joined, Error> {
        let backend = parts[0].0.backend();
        let widths = parts.iter().map(|(_, outputs)| *outputs).collect();
        let biases = parts
            .iter()
            .map(|(at, outputs)| at.has("bias").then(|| at.numbers("bias", *outputs)).transpose())
            .collect::<Result<Vec<_>, Error>>()?;
        let alike = matrices.windows(2).all(|pair| pair[0].same_form(&pair[1]))
            && biases.iter().all(|bias| bias.is_some() == biases[0].is_some());
        if !alike {
            let each = matrices.into_iter().zip(biases).map(|(matrix, bias)| Linear::new(matrix, bias, backend));
            return Ok(Joined { linears: each.collect::<Result<_, Error>>()?, widths });
        }
        let bias = biases.into_iter().collect::<Option<Vec<_>>>().map(|biases| biases.concat());
        let matrix = matrices.into_iter().reduce(Matrix::stack).expect("a linear has a weight");
        Ok(Joined { linears: vec![Linear::new(matrix, bias, backend)?], widths })
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
