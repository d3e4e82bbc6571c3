//! AVX-512: 16 lanes are one register, four int8 products a lane are one instruction.

use std::arch::x86_64::*;

use super::{Dot32, E4M3_BITS, Kernel, Simd, kind};
use crate::kernels::float::E2M1;

/// Proof that the processor has AVX-512 F, BW, VL and VNNI, and AVX2 with FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// # Safety
    /// The processor has the features this type stands for.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Avx512(())
    }
}

/// Intrinsics on registers alone.
macro_rules! registers {
    ($expression:expr) => {
        // SAFETY: no memory is touched, and the token proves that the processor has the instructions.
        unsafe { $expression }
    };
}

impl Simd for Avx512 {
    type F = __m512;
    type I = __m512i;
    const DECODE_ROWS: usize = 8;
    const INT_TILE: (usize, usize) = (6, 2);
    const FLOAT_TILE: (usize, usize) = (12, 2);
    const SCORE_TILE: (usize, usize) = (24, 4);

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter(kernel) }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        registers!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        registers!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        registers!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        registers!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        registers!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        registers!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        registers!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        registers!(_mm512_abs_ps(a))
    }
    #[inline(always)]
    fn select_lt(self, a: __m512, b: __m512, x: __m512, y: __m512) -> __m512 {
        registers!(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), y, x))
    }
    #[inline(always)]
    fn sum(self, a: __m512) -> f32 {
        registers!({
            let a = _mm256_add_ps(_mm512_castps512_ps256(a), upper(a));
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
        })
    }
    #[inline(always)]
    fn largest(self, a: __m512) -> f32 {
        registers!({
            let a = _mm256_max_ps(_mm512_castps512_ps256(a), upper(a));
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)))
        })
    }
    #[inline(always)]
    fn half_pow2(self, t: __m512) -> __m512 {
        registers!({
            let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(t));
            _mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(126 << 23)))
        })
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        // SAFETY: the caller promises 16 values.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, a: __m512) {
        // SAFETY: the caller promises room for 16 values.
        unsafe { _mm512_storeu_ps(to, a) }
    }
    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, count: usize) -> __m512 {
        // SAFETY: the mask lets only the promised `count` values be read.
        unsafe { _mm512_maskz_loadu_ps(first(count), from) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, a: __m512, count: usize) {
        // SAFETY: the mask lets only the promised `count` values be written.
        unsafe { _mm512_mask_storeu_ps(to, first(count), a) }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> __m512 {
        // SAFETY: the caller promises 16 values.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> __m512 {
        // SAFETY: the caller promises 16 values.
        unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast())))) }
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, a: __m512) {
        // SAFETY: the caller promises room for 16 values.
        unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a)) }
    }
    #[inline(always)]
    unsafe fn store_i8(self, to: *mut i8, a: __m512) -> i32 {
        // SAFETY: the caller promises room for 16 values.
        unsafe {
            let rounded = _mm512_cvtps_epi32(a);
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(rounded));
            _mm512_reduce_add_epi32(rounded)
        }
    }
    #[inline(always)]
    unsafe fn load_i8(self, from: *const i8) -> __m512i {
        // SAFETY: the caller promises 16 bytes.
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    unsafe fn store_i8x2(self, to: *mut i8, a: __m512, b: __m512) -> i32 {
        // SAFETY: the caller promises room for 32 values.
        unsafe {
            let (a, b) = (_mm512_cvtps_epi32(a), _mm512_cvtps_epi32(b));
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(a));
            _mm_storeu_si128(to.add(16).cast(), _mm512_cvtepi32_epi8(b));
            _mm512_reduce_add_epi32(_mm512_add_epi32(a, b))
        }
    }
    #[inline(always)]
    unsafe fn load_u32(self, from: *const u8) -> __m512i {
        // SAFETY: the caller promises 64 bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    fn bits_to_f32<const SHIFT: u32>(self, a: __m512i, mask: u32) -> __m512 {
        registers!(_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32::<SHIFT>(a), _mm512_set1_epi32(mask as i32))))
    }
    #[inline(always)]
    unsafe fn load_e8m0(self, from: *const u8) -> __m512 {
        // SAFETY: the caller promises 16 bytes.
        unsafe {
            let exponent = _mm512_slli_epi32::<23>(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())));
            _mm512_castsi512_ps(_mm512_max_epi32(exponent, _mm512_set1_epi32(1 << 22)))
        }
    }
    #[inline(always)]
    unsafe fn load_e4m3(self, from: *const u8) -> __m512 {
        // SAFETY: the caller promises 16 bytes.
        unsafe {
            let codes = _mm256_slli_epi16::<7>(_mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())));
            let halves = _mm512_cvtph_ps(_mm256_and_si256(codes, _mm256_set1_epi16(E4M3_BITS)));
            _mm512_mul_ps(halves, _mm512_set1_ps(256.0))
        }
    }
    #[inline(always)]
    unsafe fn unpack<const KIND: u8>(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller promises the kind's bytes to read and 64 to write for each quad.
        unsafe { unpack::<KIND>(from, to) }
    }
    #[inline(always)]
    fn dot_step(self, sums: __m512i, weights: __m512i, x: __m512i) -> __m512i {
        registers!(_mm512_dpbusd_epi32(sums, weights, x))
    }
    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: a hint, which no address makes fault.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
    #[inline(always)]
    unsafe fn dot32<const R: usize, const C: usize, const KIND: u8>(
        self,
        weights: [*const u8; C],
        rows: Dot32,
    ) -> [[__m512; C]; R] {
        // SAFETY: the caller's promise; the token proves that the processor has the instructions.
        unsafe { dot32::<R, C, KIND>(weights, rows) }
    }
}

/// # Safety
/// The weights of 16 outputs can be read in each block, and as many activations in each row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn dot32<const R: usize, const C: usize, const KIND: u8>(
    weights: [*const u8; C],
    rows: Dot32,
) -> [[__m512; C]; R] {
    let mut dots = [[_mm512_setzero_si512(); C]; R];
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        add_pair::<R, C, KIND, 0>(&mut dots, weights, rows);
        add_pair::<R, C, KIND, 1>(&mut dots, weights, rows);
        if kind::inputs(KIND) == 32 {
            add_pair::<R, C, KIND, 2>(&mut dots, weights, rows);
            add_pair::<R, C, KIND, 3>(&mut dots, weights, rows);
        }
    }
    let mut out = [[_mm512_setzero_ps(); C]; R];
    for r in 0..R {
        for c in 0..C {
            out[r][c] = _mm512_cvtepi32_ps(dots[r][c]);
        }
    }
    out
}

/// Adds the products of eight inputs.
///
/// # Safety
/// As [`dot32`], which has this pair.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn add_pair<const R: usize, const C: usize, const KIND: u8, const PAIR: usize>(
    dots: &mut [[__m512i; C]; R],
    weights: [*const u8; C],
    rows: Dot32,
) {
    let mut quads = [(_mm512_setzero_si512(), _mm512_setzero_si512()); C];
    for c in 0..C {
        // SAFETY: the caller's promise.
        quads[c] = unsafe { pair_of::<KIND, PAIR>(weights[c]) };
    }
    for r in 0..R {
        // SAFETY: within the row's activations.
        let (low, high) = unsafe {
            let x = rows.x.add(r * kind::inputs(KIND) + 8 * PAIR).cast::<i32>();
            (_mm512_set1_epi32(x.read_unaligned()), _mm512_set1_epi32(x.add(1).read_unaligned()))
        };
        for c in 0..C {
            dots[r][c] = _mm512_dpbusd_epi32(dots[r][c], quads[c].0, low);
            dots[r][c] = _mm512_dpbusd_epi32(dots[r][c], quads[c].1, high);
        }
    }
}

/// Eight weights of 16 outputs as bytes: four inputs, and the four after them.
///
/// # Safety
/// The kind's bytes can be read, and it has this pair.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pair_of<const KIND: u8, const PAIR: usize>(weights: *const u8) -> (__m512i, __m512i) {
    // SAFETY: within the kind's bytes, as the caller promises.
    unsafe {
        let line = |index: usize| _mm512_loadu_si512(weights.add(64 * index).cast());
        let small = |nibbles: (__m512i, __m512i), plane: __m512i, bits: u32, at: u32| {
            let part = |quad: usize| {
                let mask = _mm512_set1_epi8((((1 << bits) - 1) << at) as i8);
                _mm512_and_si512(moved(plane, (quad * bits as usize % 8) as u32, at), mask)
            };
            (_mm512_or_si512(nibbles.0, part(2 * PAIR)), _mm512_or_si512(nibbles.1, part(2 * PAIR + 1)))
        };
        let none = (_mm512_setzero_si512(), _mm512_setzero_si512());
        match KIND {
            kind::NIBBLES => nibbles(line(PAIR)),
            kind::TWO => small(none, line(PAIR / 2), 2, 0),
            kind::THREE => small(small(none, line(PAIR / 2), 2, 0), line(2), 1, 2),
            kind::FIVE => small(nibbles(line(PAIR)), line(4), 1, 4),
            kind::SIX => small(nibbles(line(PAIR)), line(4 + PAIR / 2), 2, 4),
            kind::E2M1 | kind::E2M1_16 => {
                let table = _mm512_broadcast_i32x4(_mm_loadu_si128(E2M1.as_ptr().cast()));
                let (low, high) = nibbles(line(PAIR));
                (_mm512_shuffle_epi8(table, low), _mm512_shuffle_epi8(table, high))
            }
            _ => (line(2 * PAIR), line(2 * PAIR + 1)),
        }
    }
}

/// The bits at `from` of each byte at `to`, others around them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn moved(bytes: __m512i, from: u32, to: u32) -> __m512i {
    match from as i32 - to as i32 {
        0 => bytes,
        by @ 1.. => _mm512_srl_epi16(bytes, _mm_cvtsi32_si128(by)),
        by => _mm512_sll_epi16(bytes, _mm_cvtsi32_si128(-by)),
    }
}

/// # Safety
/// The kind's bytes can be read, and 64 written for each quad.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn unpack<const KIND: u8>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise; a kind of 16 inputs has two pairs.
    unsafe {
        let put = |pair: usize, (low, high): (__m512i, __m512i)| {
            _mm512_storeu_si512(to.add(128 * pair).cast(), low);
            _mm512_storeu_si512(to.add(128 * pair + 64).cast(), high);
        };
        put(0, pair_of::<KIND, 0>(from));
        put(1, pair_of::<KIND, 1>(from));
        if kind::inputs(KIND) == 32 {
            put(2, pair_of::<KIND, 2>(from));
            put(3, pair_of::<KIND, 3>(from));
        }
    }
}

#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn enter<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Avx512(()))
}

#[inline(always)]
fn first(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}

#[inline]
#[target_feature(enable = "avx512f")]
fn upper(a: __m512) -> __m256 {
    _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(a)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn nibbles(bytes: __m512i) -> (__m512i, __m512i) {
    let mask = _mm512_set1_epi8(15);
    (_mm512_and_si512(bytes, mask), _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), mask))
}
