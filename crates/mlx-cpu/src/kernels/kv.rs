//! Pages of keys and values: fixed runs of positions that attention reads in place.
//!
//! A page of P positions (a multiple of 16) holds [kv_heads][dim][P] keys, then [kv_heads][P][dim] values. Keys lie
//! with the position last, so that 16 scores are computed side by side. Only these kernels look inside; whoever copies
//! a page copies all of it. A new page must be initialised (to zeros, say), not merely allocated.

use half::f16;

use super::{
    level::{Kernel, level},
    pool,
    rows::Heads,
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// A page to read.
#[derive(Clone, Copy)]
pub enum Page<'a> {
    F16(&'a [f16]),
    F32(&'a [f32]),
}

/// A page to write.
pub enum PageMut<'a> {
    F16(&'a mut [f16]),
    F32(&'a mut [f32]),
}

impl Page<'_> {
    pub(super) fn is_half(&self) -> bool {
        matches!(self, Page::F16(_))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Page::F16(values) => values.len(),
            Page::F32(values) => values.len(),
        }
    }
}

/// How many numbers a page of `positions` positions holds.
///
/// # Panics
/// If `positions` is not a multiple of 16.
pub fn page_len(positions: usize, kv_heads: usize, dim: usize) -> usize {
    assert!(positions.is_multiple_of(LANES) && positions > 0, "pages of {positions} positions");
    2 * kv_heads * positions * dim
}

/// Writes keys and values, each [t, kv_heads, dim], to a page's positions from `at` on.
///
/// # Panics
/// If the shapes do not fit or the page ends before the last position.
pub fn kv_append(page: PageMut, k: Heads, v: Heads, at: usize) {
    k.check("keys");
    v.check("values");
    assert_eq!([k.tokens, k.heads, k.dim], [v.tokens, v.heads, v.dim], "the shapes of keys and values");
    match page {
        PageMut::F16(page) => append(page, k, v, at),
        PageMut::F32(page) => append(page, k, v, at),
    }
}

/// What a page holds.
trait Stored: Copy + Send + Sync {
    fn store<S: Simd>(s: S, from: &[f32], to: &mut [Self]);
}

impl Stored for f32 {
    #[inline(always)]
    fn store<S: Simd>(_: S, from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }
}

impl Stored for f16 {
    #[inline(always)]
    fn store<S: Simd>(s: S, from: &[f32], to: &mut [f16]) {
        let mut from = from.chunks_exact(LANES);
        let mut to = to.chunks_exact_mut(LANES);
        for (from, to) in (&mut from).zip(&mut to) {
            // SAFETY: 16 numbers are written; f16 is u16 inside.
            unsafe { s.store_f16(to.as_mut_ptr().cast(), s.read(from)) }
        }
        for (from, to) in from.remainder().iter().zip(to.into_remainder()) {
            *to = f16::from_bits(super::float::f32_to_f16(*from));
        }
    }
}

/// The address of a page, for tasks that write a head's part of it each.
struct Target<T>(*mut T);

// SAFETY: tasks write disjoint parts of plain numbers, behind a borrow that outlives them.
unsafe impl<T: Send> Sync for Target<T> {}

fn append<T: Stored>(page: &mut [T], k: Heads, v: Heads, at: usize) {
    let (heads, dim) = (k.heads, k.dim);
    let positions = page.len() / (2 * heads * dim).max(1);
    assert_eq!(page.len(), page_len(positions, heads, dim), "numbers of a page");
    assert!(at + k.tokens <= positions, "{} positions from {at} on in a page of {positions}", k.tokens);
    let level = level();
    let target = Target(page.as_mut_ptr());
    let size = positions * dim;
    pool::run_worth(4 * k.tokens * heads * dim, heads, |head| {
        let target = &target;
        // SAFETY: `page_len` numbers are there: `heads` parts of keys, then as many of values; each is one task's.
        let (keys, values) = unsafe {
            (
                std::slice::from_raw_parts_mut(target.0.add(head * size), size),
                std::slice::from_raw_parts_mut(target.0.add((heads + head) * size), size),
            )
        };
        level.run(Append { k, v, head, at, keys, values });
    });
}

struct Append<'a, T> {
    k: Heads<'a>,
    v: Heads<'a>,
    head: usize,
    at: usize,
    /// [dim, positions]
    keys: &'a mut [T],
    /// [positions, dim]
    values: &'a mut [T],
}

impl<T: Stored> Kernel for Append<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let dim = self.k.dim;
        let positions = self.keys.len() / dim;
        let mut bytes = Scratch::<u8>::new(dim * size_of::<T>());
        // SAFETY: the scratch is aligned to 64 bytes and as long; T is f32 or f16, for which any bits are valid.
        let key = unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<T>(), dim) };
        for token in 0..self.k.tokens {
            let position = self.at + token;
            T::store(s, self.v.vector(token, self.head), &mut self.values[position * dim..][..dim]);
            T::store(s, self.k.vector(token, self.head), key);
            for (value, column) in key.iter().zip(self.keys.chunks_exact_mut(positions)) {
                column[position] = *value;
            }
        }
    }
}
