//! How a layer's weights lie in memory: packed for our kernels, or in MLX's own form, quantised or not.

use mlx_rs::{Array, Dtype, ops};

use crate::mlx::{
    Backend, Error,
    array::from_bytes,
    quant::{self, Affine, Data, Float, Matrix},
};

/// A matrix `[outputs, inputs]`, or a stack of them.
#[derive(Clone)]
pub enum Stored {
    /// Packed for our CPU kernels.
    Cpu {
        /// The packed numbers.
        weights: mlx_cpu::Weights,
        /// How products with them are computed.
        mode: mlx_cpu::Mode,
    },
    /// For MLX's own ops.
    Mlx(MlxWeights),
}

/// Weights as MLX's own ops read them.
#[derive(Clone)]
pub struct MlxWeights {
    /// The numbers.
    pub form: MlxForm,
    /// What activations are computed in.
    pub activations: Dtype,
}

/// The two forms that MLX's ops know.
#[derive(Clone)]
pub enum MlxForm {
    /// Quantised.
    Affine(Quantised),
    /// `[outputs, inputs]`, or `[matrices, outputs, inputs]`.
    Dense(Array),
}

/// MLX's affine form, each array with an axis more where there are several matrices.
#[derive(Clone)]
pub struct Quantised {
    /// `[outputs, inputs * bits / 32]` words.
    pub weights: Array,
    /// `[outputs, inputs / group]`
    pub scales: Array,
    /// `[outputs, inputs / group]`
    pub biases: Array,
    /// Inputs that share a scale and a bias.
    pub group: i32,
    /// Bits of a number.
    pub bits: i32,
}

impl Quantised {
    fn same_form(&self, other: &Quantised) -> bool {
        (self.group, self.bits, self.scales.dtype()) == (other.group, other.bits, other.scales.dtype())
    }
}

impl Stored {
    /// One matrix.
    pub fn new(matrix: &Matrix, backend: Backend) -> Result<Stored, Error> {
        Stored::of_rows(matrix, None, backend)
    }

    /// `matrices` of them, whose rows follow each other.
    pub fn stack(matrix: &Matrix, matrices: usize, backend: Backend) -> Result<Stored, Error> {
        Stored::of_rows(matrix, Some(matrices), backend)
    }

    fn of_rows(matrix: &Matrix, matrices: Option<usize>, backend: Backend) -> Result<Stored, Error> {
        match backend {
            Backend::Cpu { mode, .. } => Ok(Stored::Cpu { weights: pack(matrix, matrices.unwrap_or(1))?, mode }),
            Backend::Mlx { activations } => Ok(Stored::Mlx(MlxWeights::new(matrix, matrices, activations)?)),
        }
    }
}

impl MlxWeights {
    /// These parts, one below the other. `None` where their forms differ.
    pub(super) fn joined(parts: Vec<MlxWeights>) -> Result<Option<MlxWeights>, Error> {
        let join = |arrays: Vec<&Array>| ops::concatenate(&arrays, 0);
        let Some(MlxWeights { form, activations }) = parts.first() else { return Ok(None) };
        let form = match form {
            MlxForm::Dense(_) => {
                let arrays = parts.iter().map(|part| match &part.form {
                    MlxForm::Dense(weights) => Some(weights),
                    MlxForm::Affine(_) => None,
                });
                let Some(arrays) = arrays.collect() else { return Ok(None) };
                MlxForm::Dense(join(arrays)?)
            }
            MlxForm::Affine(first) => {
                let tables = parts.iter().map(|part| match &part.form {
                    MlxForm::Affine(table) if table.same_form(first) => Some(table),
                    _ => None,
                });
                let Some(tables) = tables.collect::<Option<Vec<&Quantised>>>() else { return Ok(None) };
                MlxForm::Affine(Quantised {
                    weights: join(tables.iter().map(|table| &table.weights).collect())?,
                    scales: join(tables.iter().map(|table| &table.scales).collect())?,
                    biases: join(tables.iter().map(|table| &table.biases).collect())?,
                    ..*first
                })
            }
        };
        Ok(Some(MlxWeights { form, activations: *activations }))
    }

    pub(super) fn new(matrix: &Matrix, matrices: Option<usize>, activations: Float) -> Result<MlxWeights, Error> {
        let apart = |array: Array| match matrices {
            None => Ok(array),
            Some(matrices) => array.reshape(&[matrices as i32, (matrix.n / matrices) as i32, -1]),
        };
        let dense = |bytes: &[u8], float: Float| -> Result<MlxForm, Error> {
            let weights = from_bytes(bytes, &[matrix.n as i32, matrix.k as i32], quant::dtype(float))?;
            Ok(MlxForm::Dense(apart(weights.as_dtype(quant::dtype(activations))?)?))
        };
        let form = match &matrix.data {
            Data::Affine(affine) => {
                let [weights, scales, biases] = affine_arrays(affine, [matrix.n, matrix.k], activations)?.map(apart);
                let Affine { group, bits, .. } = affine;
                MlxForm::Affine(Quantised {
                    weights: weights?,
                    scales: scales?,
                    biases: biases?,
                    group: *group as i32,
                    bits: *bits as i32,
                })
            }
            Data::Dense { float, values } => dense(values, *float)?,
            // mlx-rs 0.33 has MLX's ops say that every quantised matrix is affine, though mlx-c would let them say
            // more. So these become plain floats.
            Data::SmallFloats(floats) => {
                let numbers = floats.format.read(&floats.codes, &floats.scales);
                let values: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                dense(&values, Float::F32)?
            }
        };
        Ok(MlxWeights { form, activations: quant::dtype(activations) })
    }
}

/// Makes MLX's three arrays of an affine matrix: weights, scales, biases. Where activations are f32 the latter two are
/// as well, since MLX computes a look-up in their format.
fn affine_arrays(affine: &Affine, [n, k]: [usize; 2], activations: Float) -> Result<[Array; 3], Error> {
    let groups = [n as i32, (k / affine.group) as i32];
    let numbers = |bytes: &[u8]| -> Result<Array, Error> {
        let stored = from_bytes(bytes, &groups, quant::dtype(affine.float))?;
        Ok(if activations == Float::F32 { stored.as_dtype(Dtype::Float32)? } else { stored })
    };
    let words = [n as i32, (k * affine.bits / 32) as i32];
    Ok([from_bytes(&affine.weights, &words, Dtype::Uint32)?, numbers(&affine.scales)?, numbers(&affine.biases)?])
}

/// Packs a matrix for the CPU kernels, or a stack of `matrices`.
fn pack(matrix: &Matrix, matrices: usize) -> Result<mlx_cpu::Weights, Error> {
    Ok(mlx_cpu::Weights::new(&unpacked(matrix, matrices), matrices)?)
}

/// What our CPU kernels pack: a stack of `matrices`.
pub(super) fn unpacked(matrix: &Matrix, matrices: usize) -> mlx_cpu::Unpacked<'_> {
    let (n, k) = (matrix.n / matrices, matrix.k);
    match &matrix.data {
        Data::Dense { float, values } => mlx_cpu::Unpacked::Dense(mlx_cpu::Dense { n, k, float: *float, values }),
        Data::Affine(affine) => mlx_cpu::Unpacked::Affine(mlx_cpu::Affine {
            n,
            k,
            bits: affine.bits,
            group: affine.group,
            float: affine.float,
            weights: &affine.weights,
            scales: &affine.scales,
            biases: &affine.biases,
        }),
        Data::SmallFloats(floats) => mlx_cpu::Unpacked::SmallFloats(mlx_cpu::SmallFloats {
            n,
            k,
            format: floats.format,
            weights: &floats.codes,
            scales: &floats.scales,
        }),
    }
}
