//! Dot products of packed weights and int8 activations, eight outputs at a time, and the unpacking of weights to bytes.

use std::arch::x86_64::*;

use super::super::{Dot32, kind};
use crate::kernels::float::E2M1;

/// # Safety
/// As [`dot_small`].
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
pub(super) unsafe fn dot_vnni<const R: usize, const KIND: u8>(weights: *const u8, rows: Dot32) -> [__m256; R] {
    let mut dots = [_mm256_setzero_si256(); R];
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        add_vnni::<R, KIND, 0>(&mut dots, weights, rows);
        add_vnni::<R, KIND, 1>(&mut dots, weights, rows);
        if kind::inputs(KIND) == 32 {
            add_vnni::<R, KIND, 2>(&mut dots, weights, rows);
            add_vnni::<R, KIND, 3>(&mut dots, weights, rows);
        }
    }
    dots.map(|dots| _mm256_cvtepi32_ps(dots))
}

/// Adds the products of eight inputs.
///
/// # Safety
/// As [`dot_small`], which has this pair.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn add_vnni<const R: usize, const KIND: u8, const PAIR: usize>(
    dots: &mut [__m256i; R],
    weights: *const u8,
    rows: Dot32,
) {
    // SAFETY: the caller's promise.
    let (low, high) = unsafe { pair_of::<KIND, PAIR>(weights) };
    for (r, dot) in dots.iter_mut().enumerate() {
        // SAFETY: within the row's activations.
        let (x, y) = unsafe { (row_quad::<KIND>(rows, r, 2 * PAIR), row_quad::<KIND>(rows, r, 2 * PAIR + 1)) };
        *dot = _mm256_dpbusd_avx_epi32(_mm256_dpbusd_avx_epi32(*dot, low, x), high, y);
    }
}

/// Weights of at most 63: the 16-bit sums of as many pair products as fit, eight of at most 2 * 15 * 127, four of at most
/// 2 * 31 * 127 or two of at most 2 * 63 * 127, do not overflow.
///
/// # Safety
/// The weights of eight outputs lie 64 bytes apart from `weights` on, as many activations in each row.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn dot_small<const R: usize, const KIND: u8>(weights: *const u8, rows: Dot32) -> [__m256; R] {
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        match KIND {
            kind::SIX | kind::MIDDLE_BYTES | kind::MIDDLE_BYTES_16 => {
                let mut dots = [_mm256_setzero_si256(); R];
                add_wide::<R, KIND, 0>(&mut dots, weights, rows);
                add_wide::<R, KIND, 1>(&mut dots, weights, rows);
                if kind::inputs(KIND) == 32 {
                    add_wide::<R, KIND, 2>(&mut dots, weights, rows);
                    add_wide::<R, KIND, 3>(&mut dots, weights, rows);
                }
                dots.map(|dots| _mm256_cvtepi32_ps(dots))
            }
            kind::FIVE | kind::E2M1 => {
                let (mut first, mut last) = ([_mm256_setzero_si256(); R], [_mm256_setzero_si256(); R]);
                add_pair::<R, KIND, 0>(&mut first, weights, rows);
                add_pair::<R, KIND, 1>(&mut first, weights, rows);
                add_pair::<R, KIND, 2>(&mut last, weights, rows);
                add_pair::<R, KIND, 3>(&mut last, weights, rows);
                let mut dots = [_mm256_setzero_ps(); R];
                for r in 0..R {
                    dots[r] = _mm256_cvtepi32_ps(_mm256_add_epi32(widened(first[r]), widened(last[r])));
                }
                dots
            }
            _ => {
                let mut pairs = [_mm256_setzero_si256(); R];
                add_pair::<R, KIND, 0>(&mut pairs, weights, rows);
                add_pair::<R, KIND, 1>(&mut pairs, weights, rows);
                if kind::inputs(KIND) == 32 {
                    add_pair::<R, KIND, 2>(&mut pairs, weights, rows);
                    add_pair::<R, KIND, 3>(&mut pairs, weights, rows);
                }
                pairs.map(|pairs| _mm256_cvtepi32_ps(widened(pairs)))
            }
        }
    }
}

/// The sums of two 16-bit numbers each.
#[inline]
#[target_feature(enable = "avx2")]
fn widened(pairs: __m256i) -> __m256i {
    _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
}

/// Adds the products of eight inputs to 16-bit sums.
///
/// # Safety
/// As [`dot_small`], which has this pair.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add_pair<const R: usize, const KIND: u8, const PAIR: usize>(
    sums: &mut [__m256i; R],
    weights: *const u8,
    rows: Dot32,
) {
    // SAFETY: the caller's promise.
    let (low, high) = unsafe { pair_of::<KIND, PAIR>(weights) };
    for (r, sums) in sums.iter_mut().enumerate() {
        // SAFETY: within the row's activations.
        let (x, y) = unsafe { (row_quad::<KIND>(rows, r, 2 * PAIR), row_quad::<KIND>(rows, r, 2 * PAIR + 1)) };
        *sums = _mm256_add_epi16(*sums, _mm256_maddubs_epi16(low, x));
        *sums = _mm256_add_epi16(*sums, _mm256_maddubs_epi16(high, y));
    }
}

/// Adds the products of eight inputs to 32-bit sums.
///
/// # Safety
/// As [`dot_small`], which has this pair.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add_wide<const R: usize, const KIND: u8, const PAIR: usize>(
    sums: &mut [__m256i; R],
    weights: *const u8,
    rows: Dot32,
) {
    let mut pairs = [_mm256_setzero_si256(); R];
    // SAFETY: the caller's promise.
    unsafe { add_pair::<R, KIND, PAIR>(&mut pairs, weights, rows) };
    for (sums, pairs) in sums.iter_mut().zip(pairs) {
        *sums = _mm256_add_epi32(*sums, widened(pairs));
    }
}

/// Eight weights of eight outputs as bytes: four inputs, and the four after them.
///
/// # Safety
/// The kind's bytes of these outputs can be read, and it has this pair.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pair_of<const KIND: u8, const PAIR: usize>(weights: *const u8) -> (__m256i, __m256i) {
    // SAFETY: within the kind's bytes, as the caller promises.
    unsafe {
        let line = |index: usize| _mm256_loadu_si256(weights.add(64 * index).cast());
        let small = |nibbles: (__m256i, __m256i), plane: __m256i, bits: u32, at: u32| {
            let part = |quad: usize| {
                let mask = _mm256_set1_epi8((((1 << bits) - 1) << at) as i8);
                _mm256_and_si256(moved(plane, (quad * bits as usize % 8) as u32, at), mask)
            };
            (_mm256_or_si256(nibbles.0, part(2 * PAIR)), _mm256_or_si256(nibbles.1, part(2 * PAIR + 1)))
        };
        let none = (_mm256_setzero_si256(), _mm256_setzero_si256());
        match KIND {
            kind::NIBBLES => nibbles(line(PAIR)),
            kind::TWO => small(none, line(PAIR / 2), 2, 0),
            kind::THREE => small(small(none, line(PAIR / 2), 2, 0), line(2), 1, 2),
            kind::FIVE => small(nibbles(line(PAIR)), line(4), 1, 4),
            kind::SIX => small(nibbles(line(PAIR)), line(4 + PAIR / 2), 2, 4),
            kind::E2M1 | kind::E2M1_16 => {
                let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(E2M1.as_ptr().cast()));
                let (low, high) = nibbles(line(PAIR));
                (_mm256_shuffle_epi8(table, low), _mm256_shuffle_epi8(table, high))
            }
            _ => (line(2 * PAIR), line(2 * PAIR + 1)),
        }
    }
}

/// The bits at `from` of each byte at `to`, others around them.
#[inline]
#[target_feature(enable = "avx2")]
fn moved(bytes: __m256i, from: u32, to: u32) -> __m256i {
    match from as i32 - to as i32 {
        0 => bytes,
        by @ 1.. => _mm256_srl_epi16(bytes, _mm_cvtsi32_si128(by)),
        by => _mm256_sll_epi16(bytes, _mm_cvtsi32_si128(-by)),
    }
}

/// Unpacks eight outputs.
///
/// # Safety
/// The kind's bytes of these outputs can be read, and 32 of every 64 written for each quad.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn unpack<const KIND: u8>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        let put = |pair: usize, (low, high): (__m256i, __m256i)| {
            _mm256_storeu_si256(to.add(128 * pair).cast(), low);
            _mm256_storeu_si256(to.add(128 * pair + 64).cast(), high);
        };
        put(0, pair_of::<KIND, 0>(from));
        put(1, pair_of::<KIND, 1>(from));
        if kind::inputs(KIND) == 32 {
            put(2, pair_of::<KIND, 2>(from));
            put(3, pair_of::<KIND, 3>(from));
        }
    }
}

/// Weights of at most 255: 128 is taken off and the sign moved to the activation, so that a pair product is at most
/// 2 * 128 * 127 and does not overflow; 128 times the activations' sum is added back.
///
/// # Safety
/// As [`dot_small`], with a sum for each row.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn dot_bytes<const R: usize>(weights: *const u8, rows: Dot32) -> [__m256; R] {
    let mut dots = [_mm256_setzero_si256(); R];
    for quad in 0..8 {
        // SAFETY: within the 512 bytes the caller promises.
        let w = unsafe { _mm256_loadu_si256(weights.add(64 * quad).cast()) };
        let w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
        let magnitude = _mm256_abs_epi8(w);
        for (r, dot) in dots.iter_mut().enumerate() {
            // SAFETY: within the row's 32 activations.
            let x = unsafe { row_quad::<{ kind::BYTES }>(rows, r, quad) };
            let pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, w));
            *dot = _mm256_add_epi32(*dot, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
    }
    let mut out = [_mm256_setzero_ps(); R];
    for r in 0..R {
        // SAFETY: the caller promises a sum for each row.
        let sum = unsafe { *rows.sums.add(r) };
        out[r] = _mm256_cvtepi32_ps(_mm256_add_epi32(dots[r], _mm256_set1_epi32(sum << 7)));
    }
    out
}

/// # Safety
/// Row `r` holds this quad.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn row_quad<const KIND: u8>(rows: Dot32, r: usize, quad: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_set1_epi32(rows.x.add(r * kind::inputs(KIND) + 4 * quad).cast::<i32>().read_unaligned()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(bytes: __m256i) -> (__m256i, __m256i) {
    let mask = _mm256_set1_epi8(15);
    (_mm256_and_si256(bytes, mask), _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask))
}
