//! Packed weights: made once at load, shared by every op that reads them. They are not MLX arrays, because kernels
//! want them on cache lines.

use std::sync::Arc;

use crate::{
    Error,
    kernels::pack::{self, Float, Packed},
};

/// A weight matrix in the kernels' own layout. Clones share the bytes.
#[derive(Clone)]
pub struct Weights {
    pub(crate) layout: Packed,
    lines: Arc<[Line]>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Affine weights as MLX's checkpoints hold them.
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

impl Weights {
    /// Packs quantised weights.
    ///
    /// # Errors
    /// Bits or groups no kernel reads.
    pub fn affine(source: &Affine) -> Result<Weights, Error> {
        let layout = Packed::affine(source.n, source.k, source.bits, source.group, source.float).map_err(Error)?;
        let words: Vec<u32> = source
            .weights
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        let mlx = pack::Affine { bits: source.bits, weights: &words, scales: source.scales, biases: source.biases };
        Ok(Weights::filled(layout, |bytes| pack::pack_affine(&layout, &mlx, bytes)))
    }

    /// Packs `[n, k]` floats.
    pub fn dense(n: usize, k: usize, float: Float, values: &[u8]) -> Weights {
        let layout = Packed::dense(n, k, float);
        Weights::filled(layout, |bytes| pack::pack_dense(&layout, values, bytes))
    }

    fn filled(layout: Packed, fill: impl FnOnce(&mut [u8])) -> Weights {
        let mut lines = vec![Line([0; 64]); layout.bytes().div_ceil(64)];
        // SAFETY: lines are plain bytes, side by side, and at least `bytes()` of them.
        fill(unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), layout.bytes()) });
        Weights { layout, lines: lines.into() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: as in `filled`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.layout.bytes()) }
    }
}
