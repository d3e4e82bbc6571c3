//! Buffers that a thread keeps for its next kernel, so that a kernel does not pay for fresh pages each time.

use std::{
    cell::RefCell,
    mem::size_of,
    ops::{Deref, DerefMut},
};

/// 64 bytes that start at a multiple of 64.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Numbers whose every bit pattern is valid.
///
/// # Safety
/// The type is plain data without padding and aligned to at most 64 bytes.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: plain numbers.
unsafe impl Plain for u8 {}
// SAFETY: plain numbers.
unsafe impl Plain for i8 {}
// SAFETY: plain numbers.
unsafe impl Plain for u32 {}
// SAFETY: plain numbers.
unsafe impl Plain for i32 {}
// SAFETY: plain numbers.
unsafe impl Plain for f32 {}

/// A buffer of `len` numbers, aligned to 64 bytes, with whatever was left in it. It returns to its thread when dropped.
pub(crate) struct Scratch<T: Plain> {
    lines: Vec<Line>,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Plain> Scratch<T> {
    /// Room for `len` values, which are whatever was left there.
    pub fn new(len: usize) -> Self {
        let needed = (len * size_of::<T>()).div_ceil(64);
        let taken = FREE.with_borrow_mut(|free| best(free, needed).map(|index| free.swap_remove(index)));
        let mut lines = taken.unwrap_or_default();
        if lines.len() < needed {
            lines.clear();
            lines.resize(needed, Line([0; 64]));
        }
        Scratch { lines, len, of: std::marker::PhantomData }
    }
}

/// The smallest buffer that is large enough, else the largest: kernels ask for the same few sizes again and again, and
/// the last one freed would in time grow to the largest of them each.
fn best(free: &[Vec<Line>], needed: usize) -> Option<usize> {
    let sizes = || free.iter().map(Vec::len).enumerate();
    let fits = sizes().filter(|(_, size)| *size >= needed).min_by_key(|(_, size)| *size);
    fits.or_else(|| sizes().max_by_key(|(_, size)| *size)).map(|(index, _)| index)
}

impl<T: Plain> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold `len` numbers, are aligned enough and initialised, and any bits are valid.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl<T: Plain> Drop for Scratch<T> {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        // A thread may end while it holds scratch; then the memory is just freed.
        let _ = FREE.try_with(|free| free.borrow_mut().push(lines));
    }
}
