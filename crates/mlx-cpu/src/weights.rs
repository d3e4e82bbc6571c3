//! Packed weights: made once at load, shared by every op that reads them. They are not MLX arrays, because kernels
//! want them on cache lines.

use std::sync::Arc;

use crate::{
    Error,
    kernels::pack::{self, BLOCK, Float, Micro, Packed},
    memory::Piece,
};

/// A weight matrix in the kernels' own layout, or a stack of them: the experts of a mixture. Clones share the bytes.
#[derive(Clone)]
pub struct Weights {
    /// Of one matrix.
    pub(crate) layout: Packed,
    pub(crate) matrices: usize,
    piece: Arc<Piece>,
}

/// Affine weights as MLX's checkpoints hold them: one matrix or several, one after the other.
#[derive(Clone, Copy)]
pub struct Affine<'a> {
    /// Outputs: rows.
    pub n: usize,
    /// Inputs: columns.
    pub k: usize,
    /// Bits of a number.
    pub bits: usize,
    /// Inputs that share a scale and a bias.
    pub group: usize,
    /// What scales and biases are.
    pub float: Float,
    /// `n` rows, each a little-endian stream of `k` numbers of `bits`.
    pub weights: &'a [u8],
    /// `[n, k / group]`
    pub scales: &'a [u8],
    /// `[n, k / group]`
    pub biases: &'a [u8],
}

/// MLX's small floats as its checkpoints hold them: one matrix or several, one after the other.
#[derive(Clone, Copy)]
pub struct SmallFloats<'a> {
    /// Outputs: rows.
    pub n: usize,
    /// Inputs: columns.
    pub k: usize,
    /// What they are.
    pub format: Micro,
    /// `n` rows, each a little-endian stream of `k` codes.
    pub weights: &'a [u8],
    /// `[n, k / group]` bytes
    pub scales: &'a [u8],
}

/// Plain numbers: one matrix or several, one after the other.
#[derive(Clone, Copy)]
pub struct Dense<'a> {
    /// Outputs: rows.
    pub n: usize,
    /// Inputs: columns.
    pub k: usize,
    /// What the numbers are.
    pub float: Float,
    /// `[n, k]` little-endian numbers.
    pub values: &'a [u8],
}

/// Weights as a checkpoint holds them, before they are packed.
#[derive(Clone, Copy)]
pub enum Unpacked<'a> {
    /// Integers with a scale and a bias a group.
    Affine(Affine<'a>),
    /// Small floats with a scale a group.
    SmallFloats(SmallFloats<'a>),
    /// Plain numbers.
    Dense(Dense<'a>),
}

impl Unpacked<'_> {
    /// The packed form of one matrix.
    fn layout(&self) -> Result<Packed, Error> {
        match *self {
            Unpacked::Affine(Affine { n, k, bits, group, float, .. }) => {
                Packed::affine(n, k, bits, group, float).map_err(Error)
            }
            Unpacked::SmallFloats(SmallFloats { n, k, format, .. }) => Packed::micro(n, k, format).map_err(Error),
            Unpacked::Dense(Dense { n, k, float, .. }) => Ok(Packed::dense(n, k, float)),
        }
    }

    /// Packs all matrices into `out`, one after the other.
    fn pack(&self, layout: &Packed, out: &mut [u8]) {
        let matrices = out.chunks_exact_mut(layout.bytes()).enumerate();
        match *self {
            Unpacked::Affine(Affine { n, k, bits, group, float, weights, scales, biases }) => {
                let words = words(weights);
                for (matrix, to) in matrices {
                    let mlx = pack::Affine {
                        bits,
                        weights: part(&words, n * k * bits / 32, matrix),
                        scales: part(scales, n * k / group * float.bytes(), matrix),
                        biases: part(biases, n * k / group * float.bytes(), matrix),
                    };
                    pack::pack_affine(layout, &mlx, to);
                }
            }
            Unpacked::SmallFloats(SmallFloats { n, k, format, weights, scales }) => {
                let words = words(weights);
                for (matrix, to) in matrices {
                    let scales = part(scales, n * k / format.group(), matrix);
                    pack::pack_micro(layout, part(&words, n * k * format.bits() / 32, matrix), scales, to);
                }
            }
            Unpacked::Dense(Dense { n, k, float, values }) => {
                for (matrix, to) in matrices {
                    pack::pack_dense(layout, part(values, n * k * float.bytes(), matrix), to);
                }
            }
        }
    }
}

impl Weights {
    /// Packs a matrix, or a stack of `matrices`.
    ///
    /// # Errors
    /// Bits or groups no kernel reads, inputs that are not whole groups.
    pub fn new(source: &Unpacked, matrices: usize) -> Result<Weights, Error> {
        let layout = source.layout()?;
        let mut piece = Piece::new(matrices * layout.bytes());
        source.pack(&layout, piece.bytes_mut());
        Ok(Weights { layout, matrices, piece: Arc::new(piece) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.piece.bytes()
    }
}

/// A matrix that is packed some rows at a time, from the top.
pub struct Growing {
    /// Of the whole matrix.
    layout: Packed,
    rows: usize,
    piece: Piece,
}

impl Growing {
    /// Every part but the last has a multiple of so many rows.
    pub const ROWS: usize = BLOCK;

    /// A matrix of `n` outputs whose first rows are `part`.
    ///
    /// # Errors
    /// As [`Weights::new`].
    pub fn new(n: usize, part: &Unpacked) -> Result<Growing, Error> {
        let layout = Packed { n, ..part.layout()? };
        let mut growing = Growing { layout, rows: 0, piece: Piece::new(layout.bytes()) };
        growing.push(part)?;
        Ok(growing)
    }

    /// Packs the next rows.
    ///
    /// # Errors
    /// Rows of another form than those before, or more than there is room for.
    pub fn push(&mut self, part: &Unpacked) -> Result<(), Error> {
        let layout = part.layout()?;
        let end = self.rows + layout.n;
        let fits = Packed { n: self.layout.n, ..layout } == self.layout
            && self.rows.is_multiple_of(Growing::ROWS)
            && end <= self.layout.n;
        if !fits {
            return Err(Error(format!("rows {}..{end} as {layout:?} do not go into {:?}", self.rows, self.layout)));
        }
        let start = self.rows / BLOCK * layout.block_bytes();
        part.pack(&layout, &mut self.piece.bytes_mut()[start..start + layout.bytes()]);
        self.rows = end;
        Ok(())
    }

    /// The whole matrix, or as many as it is a stack of.
    ///
    /// # Errors
    /// Rows are missing, or those of each of `matrices` are no multiple of [`Growing::ROWS`].
    pub fn finish(self, matrices: usize) -> Result<Weights, Error> {
        let Growing { layout, rows, piece } = self;
        if rows < layout.n {
            return Err(Error(format!("{rows} of {} rows", layout.n)));
        }
        let n = layout.n / matrices;
        if matrices > 1 && (!n.is_multiple_of(Growing::ROWS) || n * matrices != layout.n) {
            return Err(Error(format!("{} rows are no stack of {matrices}", layout.n)));
        }
        Ok(Weights { layout: Packed { n, ..layout }, matrices, piece: Arc::new(piece) })
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

/// The part of `all` that belongs to matrix `index`.
fn part<T>(all: &[T], each: usize, index: usize) -> &[T] {
    &all[index * each..][..each]
}
