//! Packed weights: made once at load, shared by every op that reads them. They are not MLX arrays, because kernels
//! want them on cache lines.

use std::sync::Arc;

use crate::{
    Error,
    kernels::pack::{self, Float, Micro, Packed},
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
pub struct Affine<'a> {
    pub n: usize,
    pub k: usize,
    pub bits: usize,
    pub group: usize,
    pub float: Float,
    /// `n` rows, each a little-endian stream of `k` numbers of `bits`.
    pub weights: &'a [u8],
    /// `[n, k / group]`
    pub scales: &'a [u8],
    /// `[n, k / group]`
    pub biases: &'a [u8],
}

/// MLX's small floats as its checkpoints hold them: one matrix or several, one after the other.
pub struct SmallFloats<'a> {
    pub n: usize,
    pub k: usize,
    pub format: Micro,
    /// `n` rows, each a little-endian stream of `k` codes.
    pub weights: &'a [u8],
    /// `[n, k / group]` bytes
    pub scales: &'a [u8],
}

impl Weights {
    /// Packs quantised weights.
    ///
    /// # Errors
    /// Bits or groups no kernel reads.
    pub fn affine(source: &Affine) -> Result<Weights, Error> {
        let &Affine { n, k, bits, group, float, weights, scales, biases } = source;
        let layout = Packed::affine(n, k, bits, group, float).map_err(Error)?;
        let words = words(weights);
        Ok(Weights::filled(layout, words.len() / (n * k * bits / 32), |matrix, bytes| {
            let mlx = pack::Affine {
                bits,
                weights: part(&words, n * k * bits / 32, matrix),
                scales: part(scales, n * k / group * float.bytes(), matrix),
                biases: part(biases, n * k / group * float.bytes(), matrix),
            };
            pack::pack_affine(&layout, &mlx, bytes);
        }))
    }

    /// Packs small floats.
    ///
    /// # Errors
    /// Inputs that are not whole groups.
    pub fn small_floats(source: &SmallFloats) -> Result<Weights, Error> {
        let &SmallFloats { n, k, format, weights, scales } = source;
        let layout = Packed::micro(n, k, format).map_err(Error)?;
        let words = words(weights);
        let each = n * k * format.bits() / 32;
        Ok(Weights::filled(layout, words.len() / each, |matrix, bytes| {
            let scales = part(scales, n * k / format.group(), matrix);
            pack::pack_micro(&layout, part(&words, each, matrix), scales, bytes);
        }))
    }

    /// Packs `[n, k]` floats, one matrix or several.
    pub fn dense(n: usize, k: usize, float: Float, values: &[u8]) -> Weights {
        let layout = Packed::dense(n, k, float);
        let each = n * k * float.bytes();
        Weights::filled(layout, values.len() / each, |matrix, bytes| {
            pack::pack_dense(&layout, part(values, each, matrix), bytes);
        })
    }

    /// Has `fill` write each matrix.
    fn filled(layout: Packed, matrices: usize, fill: impl Fn(usize, &mut [u8])) -> Weights {
        let bytes = layout.bytes();
        let mut piece = Piece::new(matrices * bytes);
        piece.bytes_mut().chunks_exact_mut(bytes).enumerate().for_each(|(matrix, to)| fill(matrix, to));
        Weights { layout, matrices, piece: Arc::new(piece) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.piece.bytes()
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

/// The part of `all` that belongs to matrix `index`.
fn part<T>(all: &[T], each: usize, index: usize) -> &[T] {
    &all[index * each..][..each]
}
