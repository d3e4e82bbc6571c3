//! A weight matrix in host memory, in one of the forms that checkpoints hold: MLX's affine quantisation, its small floats
//! with shared scales, or plain floats. GGUF's blocks become one of these too, so everything after loading knows three
//! forms only.

pub use mlx_cpu::Float;

/// MLX's name of a format.
pub fn dtype(float: Float) -> mlx_rs::Dtype {
    match float {
        Float::F32 => mlx_rs::Dtype::Float32,
        Float::F16 => mlx_rs::Dtype::Float16,
        Float::BF16 => mlx_rs::Dtype::Bfloat16,
    }
}

/// `[n outputs, k inputs]`, rows one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Outputs: rows.
    pub n: usize,
    /// Inputs: columns.
    pub k: usize,
    /// The numbers.
    pub data: Data,
}

/// A matrix's numbers, in the form the checkpoint holds them.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// `values` are `n * k` little-endian numbers.
    Dense {
        /// What they are.
        float: Float,
        /// Their bytes.
        values: Vec<u8>,
    },
    /// Integers with a scale and a bias a group.
    Affine(Affine),
    /// Small floats with a scale a group.
    SmallFloats(SmallFloats),
}

/// MLX's affine quantisation: element = scale * q + bias, with a scale and a bias for every `group` inputs of a row.
/// `weights` is one little-endian stream of `bits`-wide numbers a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// Bits of a number.
    pub bits: usize,
    /// Inputs that share a scale and a bias.
    pub group: usize,
    /// What scales and biases are.
    pub float: Float,
    /// `[n, k * bits / 8]` bytes.
    pub weights: Vec<u8>,
    /// `[n, k / group]` numbers.
    pub scales: Vec<u8>,
    /// `[n, k / group]` numbers.
    pub biases: Vec<u8>,
}

/// MLX's mxfp4, nvfp4 and mxfp8: `codes` is one little-endian stream a row, `scales` a byte a group.
#[derive(Debug, Clone, PartialEq)]
pub struct SmallFloats {
    /// What the codes stand for.
    pub format: mlx_cpu::Micro,
    /// `[n, k * bits / 8]` bytes.
    pub codes: Vec<u8>,
    pub scales: Vec<u8>,
}

impl Matrix {
    /// Whether the two can be stacked: the same inputs in the same form.
    pub fn same_form(&self, other: &Matrix) -> bool {
        self.k == other.k
            && match (&self.data, &other.data) {
                (Data::Dense { float: a, .. }, Data::Dense { float: b, .. }) => a == b,
                (Data::Affine(a), Data::Affine(b)) => (a.bits, a.group, a.float) == (b.bits, b.group, b.float),
                (Data::SmallFloats(a), Data::SmallFloats(b)) => a.format == b.format,
                _ => false,
            }
    }

    /// Puts `below`'s outputs after this one's. Both have the [`Matrix::same_form`].
    pub fn stack(mut self, below: Matrix) -> Matrix {
        assert!(self.same_form(&below), "stacking matrices of different forms is a bug");
        self.n += below.n;
        match (&mut self.data, below.data) {
            (Data::Dense { values, .. }, Data::Dense { values: more, .. }) => values.extend(more),
            (Data::Affine(affine), Data::Affine(more)) => {
                affine.weights.extend(more.weights);
                affine.scales.extend(more.scales);
                affine.biases.extend(more.biases);
            }
            (Data::SmallFloats(floats), Data::SmallFloats(more)) => {
                floats.codes.extend(more.codes);
                floats.scales.extend(more.scales);
            }
            _ => unreachable!("same_form holds"),
        }
        self
    }

    /// Of two stacks of `matrices` the stack of pairs: each matrix of this one and, below it, its like of the other.
    pub fn stack_each(self, below: Matrix, matrices: usize) -> Matrix {
        let (upper, lower, total) = (self.n / matrices, below.n / matrices, self.n);
        self.stack(below).rows_from(|row| match (row / (upper + lower), row % (upper + lower)) {
            (matrix, within) if within < upper => matrix * upper + within,
            (matrix, within) => total + matrix * lower + within - upper,
        })
    }

    /// The matrix whose row `i` is this one's row `source(i)`.
    pub fn rows_from(&self, source: impl Fn(usize) -> usize) -> Matrix {
        let reorder = |rows: &[u8]| {
            let width = rows.len() / self.n;
            (0..self.n).flat_map(|row| rows[source(row) * width..][..width].iter().copied()).collect::<Vec<u8>>()
        };
        let data = match &self.data {
            Data::Dense { float, values } => Data::Dense { float: *float, values: reorder(values) },
            Data::Affine(affine) => Data::Affine(Affine {
                weights: reorder(&affine.weights),
                scales: reorder(&affine.scales),
                biases: reorder(&affine.biases),
                ..*affine
            }),
            Data::SmallFloats(floats) => Data::SmallFloats(SmallFloats {
                format: floats.format,
                codes: reorder(&floats.codes),
                scales: reorder(&floats.scales),
            }),
        };
        Matrix { data, ..*self }
    }
}

/// Packs `bits`-wide numbers into one little-endian stream.
pub fn pack_bits(values: impl Iterator<Item = u8>, bits: usize) -> Vec<u8> {
    let (mut out, mut window, mut filled) = (Vec::new(), 0u32, 0);
    for value in values {
        window |= u32::from(value) << filled;
        filled += bits;
        while filled >= 8 {
            out.push(window as u8);
            window >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(window as u8);
    }
    out
}
