//! Reading pages: a head's keys or values over a run of positions, as f32 side by side. They are decoded once for all
//! queries that look at them, into scratch that stays in the first-level cache.

use super::{Format, GROUP, Layout};
use crate::kernels::{
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// Rows of f32 that start `stride` numbers apart.
#[derive(Clone, Copy)]
pub struct Rows {
    pub from: *const f32,
    pub stride: usize,
}

/// A run of positions of one head of a page.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub layout: &'a Layout,
    pub page: &'a [u8],
    /// What is read after this page: it is asked of memory on the way.
    pub next: &'a [u8],
    pub head: usize,
    pub at: usize,
    pub count: usize,
}

/// Numbers of f32 that [`keys`] and [`values`] decode a page of one head to.
pub fn scratch_len(layout: &Layout) -> usize {
    layout.positions * layout.wide()
}

/// The keys of a run, `at` and `count` multiples of 16: [dim] rows of `count`.
#[inline(always)]
pub fn keys<S: Simd>(s: S, run: &Run, scratch: &mut Scratch<f32>) -> Rows {
    let Run { layout, at, count, .. } = *run;
    let (part, _) = layout.parts(run.head);
    assert!(at.is_multiple_of(LANES) && count.is_multiple_of(LANES), "whole vectors of positions");
    assert!(at + count <= layout.positions && scratch.len() >= scratch_len(layout), "a run inside its page");
    let parts = [&run.page[part.clone()], &run.next[part]].map(<[u8]>::as_ptr);
    let to = scratch.as_mut_ptr();
    // SAFETY: the parts hold the head's keys as the layout says, the scratch as many; the run lies inside.
    unsafe {
        match layout.format {
            Format::F32 => return Rows { from: parts[0].cast::<f32>().add(at), stride: layout.positions },
            Format::F16 => float_keys(s, run, parts, to, |s, from| s.load_f16(from)),
            Format::BF16 => float_keys(s, run, parts, to, |s, from| s.load_bf16(from)),
            Format::Int8 => scaled_keys(s, run, parts, to, int8),
            Format::Int4 => scaled_keys(s, run, parts, to, int4),
        }
    }
    Rows { from: to, stride: layout.positions }
}

/// The values of a run: `count` rows of the layout's `wide`.
#[inline(always)]
pub fn values<S: Simd>(s: S, run: &Run, scratch: &mut Scratch<f32>) -> Rows {
    let Run { layout, at, count, .. } = *run;
    let (_, part) = layout.parts(run.head);
    assert!(at + count <= layout.positions && scratch.len() >= scratch_len(layout), "a run inside its page");
    let parts = [&run.page[part.clone()], &run.next[part]].map(<[u8]>::as_ptr);
    let to = scratch.as_mut_ptr();
    let stride = layout.wide();
    // SAFETY: the parts hold the head's values as the layout says, the scratch as many; the run lies inside.
    unsafe {
        match layout.format {
            Format::F32 => {
                return Rows { from: parts[0].cast::<f32>().add(at * stride), stride };
            }
            Format::F16 => float_values(s, run, parts, to, |s, from| s.load_f16(from)),
            Format::BF16 => float_values(s, run, parts, to, |s, from| s.load_bf16(from)),
            Format::Int8 => scaled_values(s, run, parts, to, int8),
            Format::Int4 => scaled_values(s, run, parts, to, int4),
        }
    }
    Rows { from: to, stride }
}

/// Decodes `vectors` vectors of 16 bits a number that lie side by side, and asks for as many of the next page.
///
/// # Safety
/// They are there, and room for them; `next` need not be anyone's.
#[inline(always)]
unsafe fn floats<S: Simd>(
    s: S,
    vectors: usize,
    [from, next]: [*const u8; 2],
    to: *mut f32,
    load: impl Fn(S, *const u16) -> S::F,
) {
    let (mut from, mut next, mut to) = (from.cast::<u16>(), next, to);
    // SAFETY: the caller's promise.
    unsafe {
        for _ in 0..vectors / 2 {
            s.prefetch(next);
            s.store(to, load(s, from));
            s.store(to.add(LANES), load(s, from.add(LANES)));
            (from, next, to) = (from.add(2 * LANES), next.wrapping_add(4 * LANES), to.add(2 * LANES));
        }
        if vectors % 2 == 1 {
            s.prefetch(next);
            s.store(to, load(s, from));
        }
    }
}

/// # Safety
/// `parts` are a head's keys of the run's page and of the next, `to` takes `dim` rows of a page's positions. So it is
/// for all four.
#[inline(always)]
unsafe fn float_keys<S: Simd>(
    s: S,
    run: &Run,
    parts: [*const u8; 2],
    to: *mut f32,
    load: impl Fn(S, *const u16) -> S::F,
) {
    let Layout { positions, dim, .. } = *run.layout;
    // SAFETY: the caller's promise; a whole page's rows follow each other without a gap.
    unsafe {
        if run.count == positions {
            return floats(s, dim * positions / LANES, parts, to, load);
        }
        for i in 0..dim {
            let parts = parts.map(|part| part.wrapping_add(2 * (i * positions + run.at)));
            floats(s, run.count / LANES, parts, to.add(i * positions), &load);
        }
    }
}

/// # Safety
/// As above, with rows of `wide` features, as many as the run has positions.
#[inline(always)]
unsafe fn float_values<S: Simd>(
    s: S,
    run: &Run,
    parts: [*const u8; 2],
    to: *mut f32,
    load: impl Fn(S, *const u16) -> S::F,
) {
    let wide = run.layout.wide();
    let parts = parts.map(|part| part.wrapping_add(2 * run.at * wide));
    // SAFETY: the caller's promise; values follow each other without a gap.
    unsafe { floats(s, run.count * wide / LANES, parts, to, load) }
}

/// 16 bytes as 16 numbers, in units of their scales.
#[inline(always)]
fn int8<S: Simd>(s: S, bytes: S::I) -> (S::F, Option<S::F>) {
    (s.bits_to_f32::<0>(bytes, u32::MAX), None)
}

/// 16 bytes as twice 16 numbers, in units of their scales.
#[inline(always)]
fn int4<S: Simd>(s: S, bytes: S::I) -> (S::F, Option<S::F>) {
    (s.bits_to_f32::<0>(bytes, 15), Some(s.bits_to_f32::<4>(bytes, 15)))
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn scaled_keys<S: Simd>(
    s: S,
    run: &Run,
    [from, next]: [*const u8; 2],
    to: *mut f32,
    split: impl Fn(S, S::I) -> (S::F, Option<S::F>),
) {
    let Layout { positions, dim, .. } = *run.layout;
    let scales = from.wrapping_add(run.layout.key_numbers());
    for v in (0..run.count).step_by(LANES) {
        let column = run.at + v;
        let (mut from, mut next, mut to) = (from.wrapping_add(column), next.wrapping_add(column), to.wrapping_add(v));
        for group in 0..dim.div_ceil(GROUP) {
            let mut left = GROUP.min(dim - group * GROUP);
            // SAFETY: the caller's promise: scales, then biases of the group; so many rows of it, one or two a byte.
            unsafe {
                let at = scales.add(2 * (2 * group * positions + column)).cast::<u16>();
                let (scale, bias) = (s.load_f16(at), s.load_f16(at.add(positions)));
                while left > 0 {
                    s.prefetch(next);
                    let (first, second) = split(s, s.load_i8(from.cast()));
                    s.store(to, s.fma(first, scale, bias));
                    left -= 1;
                    to = to.wrapping_add(positions);
                    if let Some(second) = second.filter(|_| left > 0) {
                        s.store(to, s.fma(second, scale, bias));
                        left -= 1;
                        to = to.wrapping_add(positions);
                    }
                    (from, next) = (from.wrapping_add(positions), next.wrapping_add(positions));
                }
            }
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn scaled_values<S: Simd>(
    s: S,
    run: &Run,
    [from, next]: [*const u8; 2],
    to: *mut f32,
    split: impl Fn(S, S::I) -> (S::F, Option<S::F>),
) {
    let Layout { positions, .. } = *run.layout;
    let (wide, value, groups) = (run.layout.wide(), run.layout.value(), run.layout.groups());
    // [groups][scale, bias][positions]
    let mut scales = Scratch::<f32>::new(2 * groups * positions);
    for i in (0..2 * groups * positions).step_by(LANES) {
        // SAFETY: so many scales and biases follow the numbers of all positions.
        unsafe { s.store(scales[i..].as_mut_ptr(), s.load_f16(from.add(value * positions + 2 * i).cast())) };
    }
    let scales = scales.as_ptr();
    let mut to = to;
    for position in run.at..run.at + run.count {
        let (mut from, mut next) = (from.wrapping_add(position * value), next.wrapping_add(position * value));
        for group in 0..groups {
            // SAFETY: the caller's promise: the position's scales; whole vectors of its value, one or two for 16 bytes.
            unsafe {
                let at = scales.add(2 * group * positions + position);
                let (scale, bias) = (s.splat(*at), s.splat(*at.add(positions)));
                s.prefetch(next);
                let mut left = GROUP.min(wide - group * GROUP);
                while left > 0 {
                    let (first, second) = split(s, s.load_i8(from.cast()));
                    s.store(to, s.fma(first, scale, bias));
                    left -= LANES;
                    to = to.wrapping_add(LANES);
                    if let Some(second) = second.filter(|_| left > 0) {
                        s.store(to, s.fma(second, scale, bias));
                        left -= LANES;
                        to = to.wrapping_add(LANES);
                    }
                    (from, next) = (from.wrapping_add(LANES), next.wrapping_add(LANES));
                }
            }
        }
    }
}
