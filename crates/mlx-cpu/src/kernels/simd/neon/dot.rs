//! Packed weights as bytes, and their products with int8 activations, for four outputs at a time.

use std::arch::{aarch64::*, asm};

use super::I8MM;
use crate::kernels::{
    float::E2M1,
    simd::{Dot32, kind},
};

/// Eight weights of four outputs as bytes: four inputs, and the four after them.
///
/// # Safety
/// The kind's bytes of these outputs can be read, 16 of every 64 from `weights` on, and it has this pair.
#[inline(always)]
unsafe fn pair_of<const KIND: u8, const PAIR: usize>(weights: *const u8) -> [uint8x16_t; 2] {
    // SAFETY: within the kind's bytes, as the caller promises.
    unsafe {
        let line = |index: usize| vld1q_u8(weights.add(64 * index));
        let nibbles = |bytes: uint8x16_t| [vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes)];
        // The pair's bits in a plane, put at `at`.
        let plane = |bytes: uint8x16_t, bits: usize, at: usize| {
            [2 * PAIR, 2 * PAIR + 1].map(|quad| {
                let moved = vshlq_u8(bytes, vdupq_n_s8(at as i8 - (quad * bits % 8) as i8));
                vandq_u8(moved, vdupq_n_u8(((1 << bits) - 1) << at))
            })
        };
        let joined =
            |low: [uint8x16_t; 2], high: [uint8x16_t; 2]| [vorrq_u8(low[0], high[0]), vorrq_u8(low[1], high[1])];
        match KIND {
            kind::NIBBLES => nibbles(line(PAIR)),
            kind::TWO => plane(line(PAIR / 2), 2, 0),
            kind::THREE => joined(plane(line(PAIR / 2), 2, 0), plane(line(2), 1, 2)),
            kind::FIVE => joined(nibbles(line(PAIR)), plane(line(4), 1, 4)),
            kind::SIX => joined(nibbles(line(PAIR)), plane(line(4 + PAIR / 2), 2, 4)),
            kind::E2M1 | kind::E2M1_16 => nibbles(line(PAIR)).map(|codes| vqtbl1q_u8(vld1q_u8(E2M1.as_ptr()), codes)),
            _ => [line(2 * PAIR), line(2 * PAIR + 1)],
        }
    }
}

/// Unpacks four outputs.
///
/// # Safety
/// The kind's bytes of these outputs can be read, and 16 of every 64 written for each quad.
#[inline(always)]
pub(super) unsafe fn unpack<const KIND: u8>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        let put = |pair: usize, quads: [uint8x16_t; 2]| {
            vst1q_u8(to.add(128 * pair), quads[0]);
            vst1q_u8(to.add(128 * pair + 64), quads[1]);
        };
        put(0, pair_of::<KIND, 0>(from));
        put(1, pair_of::<KIND, 1>(from));
        if kind::inputs(KIND) == 32 {
            put(2, pair_of::<KIND, 2>(from));
            put(3, pair_of::<KIND, 3>(from));
        }
    }
}

/// [`pair_of`] for signed multiplications: 128 is taken off what may be larger than 127, and [`taken_off`] is added.
///
/// # Safety
/// As [`pair_of`].
#[inline(always)]
unsafe fn signed_pair_of<const KIND: u8, const PAIR: usize>(weights: *const u8) -> [uint8x16_t; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        let pair = pair_of::<KIND, PAIR>(weights);
        if KIND == kind::BYTES { pair.map(|quad| veorq_u8(quad, vdupq_n_u8(128))) } else { pair }
    }
}

/// 128 times the sum of each row's activations where [`signed_pair_of`] takes that off, else nothing.
///
/// # Safety
/// There is a sum for each row.
#[inline(always)]
unsafe fn taken_off<const R: usize, const KIND: u8>(rows: Dot32) -> [int32x4_t; R] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [vdupq_n_s32(0); R];
        if KIND == kind::BYTES {
            for r in 0..R {
                sums[r] = vdupq_n_s32(*rows.sums.add(r) << 7);
            }
        }
        sums
    }
}

/// Eight activations of a row: four over and over, and the four after them.
///
/// # Safety
/// Row `r` holds this pair.
#[inline(always)]
unsafe fn row_pair<const KIND: u8>(rows: Dot32, r: usize, pair: usize) -> [int8x16_t; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        let x = rows.x.add(r * kind::inputs(KIND) + 8 * pair).cast::<i32>();
        [x, x.add(1)].map(|x| vreinterpretq_s8_s32(vdupq_n_s32(x.read_unaligned())))
    }
}

/// Adds four products to each lane, by USDOT or by SDOT.
///
/// # Safety
/// The processor has the instruction.
#[inline(always)]
pub(super) unsafe fn dot4<const DOT: u8>(mut sums: int32x4_t, weights: uint8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: registers only; the caller's promise.
    unsafe {
        match DOT {
            I8MM => asm!("usdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sums, in(vreg) weights, in(vreg) x,
                options(pure, nomem, nostack, preserves_flags)),
            _ => asm!("sdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sums, in(vreg) weights, in(vreg) x,
                options(pure, nomem, nostack, preserves_flags)),
        }
    }
    sums
}

/// # Safety
/// The weights of four outputs lie 64 bytes apart from `weights` on, as many activations and a sum in each row; the
/// processor has the instruction of [`dot4`].
#[inline(always)]
pub(super) unsafe fn dot<const DOT: u8, const R: usize, const KIND: u8>(
    weights: *const u8,
    rows: Dot32,
) -> [int32x4_t; R] {
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        let mut dots = if DOT == I8MM { [vdupq_n_s32(0); R] } else { taken_off::<R, KIND>(rows) };
        add_dot::<DOT, R, KIND, 0>(&mut dots, weights, rows);
        add_dot::<DOT, R, KIND, 1>(&mut dots, weights, rows);
        if kind::inputs(KIND) == 32 {
            add_dot::<DOT, R, KIND, 2>(&mut dots, weights, rows);
            add_dot::<DOT, R, KIND, 3>(&mut dots, weights, rows);
        }
        dots
    }
}

/// Adds the products of eight inputs.
///
/// # Safety
/// As [`dot`], which has this pair.
#[inline(always)]
unsafe fn add_dot<const DOT: u8, const R: usize, const KIND: u8, const PAIR: usize>(
    dots: &mut [int32x4_t; R],
    weights: *const u8,
    rows: Dot32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let w = if DOT == I8MM { pair_of::<KIND, PAIR>(weights) } else { signed_pair_of::<KIND, PAIR>(weights) };
        for (r, dot) in dots.iter_mut().enumerate() {
            let x = row_pair::<KIND>(rows, r, PAIR);
            *dot = dot4::<DOT>(dot4::<DOT>(*dot, w[0], x[0]), w[1], x[1]);
        }
    }
}

/// Pairs of quads whose products fit 16 bits when they are added up: two of at most 128 * 127, four of at most 63 * 127,
/// eight of at most 31 * 127. All pairs of the kind, or a part of them.
const fn pairs_in_16_bits(kind: u8) -> usize {
    match kind {
        kind::BYTES => 1,
        kind::SIX | kind::MIDDLE_BYTES | kind::MIDDLE_BYTES_16 | kind::E2M1_16 => 2,
        _ => 4,
    }
}

/// Sums of a row's products with four outputs: of each output's and input's place in a quad in 16 bits, two outputs a
/// register; of two such places in 32.
#[derive(Clone, Copy)]
struct Products {
    narrow: [int16x8_t; 2],
    wide: [int32x4_t; 2],
}

/// # Safety
/// As [`dot`], without its instruction.
#[inline(always)]
pub(super) unsafe fn dot_plain<const R: usize, const KIND: u8>(weights: *const u8, rows: Dot32) -> [int32x4_t; R] {
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        let mut sums = [Products { narrow: [vdupq_n_s16(0); 2], wide: [vdupq_n_s32(0); 2] }; R];
        add_plain::<R, KIND, 0>(&mut sums, weights, rows);
        add_plain::<R, KIND, 1>(&mut sums, weights, rows);
        if kind::inputs(KIND) == 32 {
            add_plain::<R, KIND, 2>(&mut sums, weights, rows);
            add_plain::<R, KIND, 3>(&mut sums, weights, rows);
        }
        let mut dots = taken_off::<R, KIND>(rows);
        for r in 0..R {
            dots[r] = vaddq_s32(dots[r], vpaddq_s32(sums[r].wide[0], sums[r].wide[1]));
        }
        dots
    }
}

/// Adds the products of eight inputs.
///
/// # Safety
/// As [`dot_plain`], which has this pair.
#[inline(always)]
unsafe fn add_plain<const R: usize, const KIND: u8, const PAIR: usize>(
    sums: &mut [Products; R],
    weights: *const u8,
    rows: Dot32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let w = signed_pair_of::<KIND, PAIR>(weights).map(|quad| vreinterpretq_s8_u8(quad));
        for (r, Products { narrow, wide }) in sums.iter_mut().enumerate() {
            let x = row_pair::<KIND>(rows, r, PAIR);
            for (w, x) in w.into_iter().zip(x) {
                narrow[0] = vmlal_s8(narrow[0], vget_low_s8(w), vget_low_s8(x));
                narrow[1] = vmlal_high_s8(narrow[1], w, x);
            }
            if (PAIR + 1) % pairs_in_16_bits(KIND) == 0 {
                *wide = [vpadalq_s16(wide[0], narrow[0]), vpadalq_s16(wide[1], narrow[1])];
                *narrow = [vdupq_n_s16(0); 2];
            }
        }
    }
}
