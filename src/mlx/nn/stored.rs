//! How a layer's weights lie in memory: packed for our kernels, or in MLX's own form, quantised or not.

use mlx_rs::{Array, Dtype};

use crate::mlx::{
    Backend, Error,
    array::from_bytes,
    quant::{Affine, Data, Float, Matrix},
};

/// A matrix `[outputs, inputs]`, or a stack of them.
#[derive(Clone)]
pub enum Stored {
    Cpu {
        weights: mlx_cpu::Weights,
        mode: mlx_cpu::Mode,
    },
    Affine(Quantised),
    /// `[outputs, inputs]`, or `[matrices, outputs, inputs]`.
    Dense(Array),
}

/// MLX's affine form, each array with an axis more where there are several matrices.
#[derive(Clone)]
pub struct Quantised {
    pub weights: Array,
    pub scales: Array,
    pub biases: Array,
    pub group: i32,
    pub bits: i32,
}

impl Stored {
    /// One matrix.
    pub fn new(matrix: &Matrix, backend: Backend) -> Result<Stored, Error> {
        Stored::made(matrix, None, backend)
    }

    /// `matrices` of them, whose rows follow each other.
    pub fn stack(matrix: &Matrix, matrices: usize, backend: Backend) -> Result<Stored, Error> {
        Stored::made(matrix, Some(matrices), backend)
    }

    fn made(matrix: &Matrix, matrices: Option<usize>, backend: Backend) -> Result<Stored, Error> {
        let activations = match backend {
            Backend::Cpu { mode, .. } => {
                return Ok(Stored::Cpu { weights: pack(matrix, matrices.unwrap_or(1))?, mode });
            }
            Backend::Mlx { activations } => activations,
        };
        let apart = |array: Array| match matrices {
            None => Ok(array),
            Some(matrices) => array.reshape(&[matrices as i32, (matrix.n / matrices) as i32, -1]),
        };
        Ok(match &matrix.data {
            Data::Affine(affine) => {
                let [weights, scales, biases] = affine_arrays(affine, [matrix.n, matrix.k], activations)?.map(apart);
                let (weights, scales, biases) = (weights?, scales?, biases?);
                let Affine { group, bits, .. } = affine;
                Stored::Affine(Quantised { weights, scales, biases, group: *group as i32, bits: *bits as i32 })
            }
            Data::Dense { float, values } => {
                let weights = from_bytes(values, &[matrix.n as i32, matrix.k as i32], float.mlx())?;
                Stored::Dense(apart(weights.as_dtype(activations.mlx())?)?)
            }
            Data::SmallFloats(_) => unreachable!("for_mlx left none"),
        })
    }
}

/// Makes MLX's three arrays of an affine matrix: weights, scales, biases. Where activations are f32 the latter two are
/// as well, since MLX computes a look-up in their format.
fn affine_arrays(affine: &Affine, [n, k]: [usize; 2], activations: Float) -> Result<[Array; 3], Error> {
    let groups = [n as i32, (k / affine.group) as i32];
    let numbers = |bytes: &[u8]| -> Result<Array, Error> {
        let stored = from_bytes(bytes, &groups, affine.float.mlx())?;
        Ok(if activations == Float::F32 { stored.as_dtype(Float::F32.mlx())? } else { stored })
    };
    let words = [n as i32, (k * affine.bits / 32) as i32];
    Ok([from_bytes(&affine.weights, &words, Dtype::Uint32)?, numbers(&affine.scales)?, numbers(&affine.biases)?])
}

/// Packs a matrix for the CPU kernels, or a stack of `matrices`.
fn pack(matrix: &Matrix, matrices: usize) -> Result<mlx_cpu::Weights, Error> {
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
