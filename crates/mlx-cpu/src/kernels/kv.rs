//! Pages of keys and values: fixed runs of positions that attention reads in place.
//!
//! A page of P positions (a multiple of 16) holds for each kv head its keys, then its values. Keys lie with the position
//! last, [dim][P], so that 16 scores are computed side by side; values as [P][wide], `wide` being dim rounded up to
//! whole vectors. In 8 and 4 bits, 32 neighbouring features of a position share a scale and a bias, f16, that follow
//! the numbers as [groups][scale, bias][P]: a position is quantized once, when it is written, and never again.
//!
//! Only these kernels look inside; whoever copies a page copies all of it. A new page must be initialised (to zeros,
//! say), not merely allocated.

mod read;
#[cfg(test)]
pub(super) mod tests;
mod write;

pub(super) use read::{Rows, Run, keys, scratch_len, values};
pub(super) use write::write;

use super::simd::LANES;

/// How a page stores a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    F32,
    F16,
    BF16,
    /// scale * q + bias, q from -127 to 127.
    Int8,
    /// scale * q + bias, q from 0 to 15.
    Int4,
}

/// Features that share a scale and a bias.
pub(super) const GROUP: usize = 32;

/// What a page looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub format: Format,
    /// Positions of a page, a multiple of 16.
    pub positions: usize,
    pub kv_heads: usize,
    /// Features a head.
    pub dim: usize,
}

impl Layout {
    /// How many bytes a page holds.
    ///
    /// # Panics
    /// If there are no pages of such a shape.
    pub fn bytes(&self) -> usize {
        let Layout { positions, kv_heads, dim, .. } = *self;
        assert!(positions.is_multiple_of(LANES) && positions > 0, "pages of {positions} positions");
        assert!(kv_heads > 0 && dim > 0, "pages of {kv_heads} heads of {dim}");
        kv_heads * (self.keys() + self.values())
    }

    /// Features of a value, up to whole vectors.
    #[inline(always)]
    pub(super) fn wide(&self) -> usize {
        self.dim.next_multiple_of(LANES)
    }

    /// Bytes of a position's value.
    #[inline(always)]
    fn value(&self) -> usize {
        match self.format {
            Format::F32 => 4 * self.wide(),
            Format::F16 | Format::BF16 => 2 * self.wide(),
            Format::Int8 => self.wide(),
            // A vector of bytes holds two of features.
            Format::Int4 => self.dim.next_multiple_of(2 * LANES) / 2,
        }
    }

    /// Bytes of the keys' numbers.
    #[inline(always)]
    fn key_numbers(&self) -> usize {
        match self.format {
            Format::F32 => 4 * self.dim * self.positions,
            Format::F16 | Format::BF16 => 2 * self.dim * self.positions,
            Format::Int8 => self.dim * self.positions,
            // A byte holds two neighbouring features.
            Format::Int4 => self.dim.div_ceil(2) * self.positions,
        }
    }

    #[inline(always)]
    fn groups(&self) -> usize {
        match self.format {
            Format::Int8 | Format::Int4 => self.dim.div_ceil(GROUP),
            _ => 0,
        }
    }

    /// Bytes of a head's keys.
    #[inline(always)]
    fn keys(&self) -> usize {
        self.key_numbers() + 4 * self.groups() * self.positions
    }

    /// Bytes of a head's values.
    #[inline(always)]
    fn values(&self) -> usize {
        (self.value() + 4 * self.groups()) * self.positions
    }

    /// Where a head's keys and its values are in a page.
    #[inline(always)]
    fn parts(&self, head: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let start = head * (self.keys() + self.values());
        let middle = start + self.keys();
        (start..middle, middle..middle + self.values())
    }
}
