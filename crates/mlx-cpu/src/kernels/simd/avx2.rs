//! AVX2 with FMA and F16C: 16 lanes are two registers; int8 products go by way of 16-bit pairs, or with AVX-VNNI by one
//! instruction.

mod dot;

use std::arch::x86_64::*;

use dot::{dot_bytes, dot_small, dot_vnni, unpack};

use super::{Dot32, E4M3_BITS, Kernel, LANES, Simd, kind};

/// Proof that the processor has AVX2, FMA and F16C, and AVX-VNNI too if `VNNI`.
#[derive(Clone, Copy)]
pub(crate) struct Avx2<const VNNI: bool>(());

impl<const VNNI: bool> Avx2<VNNI> {
    /// # Safety
    /// The processor has the features this type stands for.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Avx2(())
    }
}

/// The lower and the upper eight lanes.
#[derive(Clone, Copy)]
pub(crate) struct V<T>(T, T);

/// An intrinsic on both halves.
macro_rules! both {
    ($f:ident, $($a:expr),*) => {
        // SAFETY: no memory is touched, and the token proves that the processor has the instruction.
        unsafe { V($f($($a.0),*), $f($($a.1),*)) }
    };
}

impl<const VNNI: bool> Simd for Avx2<VNNI> {
    type F = V<__m256>;
    type I = V<__m256i>;
    const DECODE_ROWS: usize = 4;
    const INT_TILE: (usize, usize) = (4, 1);
    const FLOAT_TILE: (usize, usize) = (6, 1);
    const SCORE_TILE: (usize, usize) = (6, 1);

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: the token proves that the processor has the features.
        unsafe { if VNNI { enter_vnni(kernel) } else { enter(kernel) } }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> V<__m256> {
        // SAFETY: as in `both`.
        let half = unsafe { _mm256_set1_ps(x) };
        V(half, half)
    }
    #[inline(always)]
    fn add(self, a: V<__m256>, b: V<__m256>) -> V<__m256> {
        both!(_mm256_add_ps, a, b)
    }
    #[inline(always)]
    fn sub(self, a: V<__m256>, b: V<__m256>) -> V<__m256> {
        both!(_mm256_sub_ps, a, b)
    }
    #[inline(always)]
    fn mul(self, a: V<__m256>, b: V<__m256>) -> V<__m256> {
        both!(_mm256_mul_ps, a, b)
    }
    #[inline(always)]
    fn div(self, a: V<__m256>, b: V<__m256>) -> V<__m256> {
        both!(_mm256_div_ps, a, b)
    }
    #[inline(always)]
    fn fma(self, a: V<__m256>, b: V<__m256>, c: V<__m256>) -> V<__m256> {
        both!(_mm256_fmadd_ps, a, b, c)
    }
    #[inline(always)]
    fn max(self, a: V<__m256>, b: V<__m256>) -> V<__m256> {
        both!(_mm256_max_ps, a, b)
    }
    #[inline(always)]
    fn abs(self, a: V<__m256>) -> V<__m256> {
        let sign = self.splat(-0.0);
        both!(_mm256_andnot_ps, sign, a)
    }
    #[inline(always)]
    fn select_lt(self, a: V<__m256>, b: V<__m256>, x: V<__m256>, y: V<__m256>) -> V<__m256> {
        // SAFETY: as in `both`.
        unsafe {
            V(
                _mm256_blendv_ps(y.0, x.0, _mm256_cmp_ps::<_CMP_LT_OQ>(a.0, b.0)),
                _mm256_blendv_ps(y.1, x.1, _mm256_cmp_ps::<_CMP_LT_OQ>(a.1, b.1)),
            )
        }
    }
    #[inline(always)]
    fn sum(self, a: V<__m256>) -> f32 {
        // SAFETY: as in `both`.
        unsafe {
            let a = _mm256_add_ps(a.0, a.1);
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
        }
    }
    #[inline(always)]
    fn largest(self, a: V<__m256>) -> f32 {
        // SAFETY: as in `both`.
        unsafe {
            let a = _mm256_max_ps(a.0, a.1);
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)))
        }
    }
    #[inline(always)]
    fn half_pow2(self, t: V<__m256>) -> V<__m256> {
        both!(half_pow2, t)
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> V<__m256> {
        // SAFETY: the caller promises 16 values.
        unsafe { V(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, a: V<__m256>) {
        // SAFETY: the caller promises room for 16 values.
        unsafe {
            _mm256_storeu_ps(to, a.0);
            _mm256_storeu_ps(to.add(8), a.1);
        }
    }
    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, count: usize) -> V<__m256> {
        let mut lanes = [0.0; LANES];
        // SAFETY: the caller promises `count` values, at most 16.
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
            self.load(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, a: V<__m256>, count: usize) {
        let mut lanes = [0.0; LANES];
        // SAFETY: the caller promises room for `count` values, at most 16.
        unsafe {
            self.store(lanes.as_mut_ptr(), a);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
        }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> V<__m256> {
        // SAFETY: the caller promises 16 values.
        unsafe {
            V(_mm256_cvtph_ps(_mm_loadu_si128(from.cast())), _mm256_cvtph_ps(_mm_loadu_si128(from.add(8).cast())))
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> V<__m256> {
        // SAFETY: the caller promises 16 values.
        unsafe { V(widen_bf16(_mm_loadu_si128(from.cast())), widen_bf16(_mm_loadu_si128(from.add(8).cast()))) }
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, a: V<__m256>) {
        // SAFETY: the caller promises room for 16 values.
        unsafe {
            _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a.0));
            _mm_storeu_si128(to.add(8).cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a.1));
        }
    }
    #[inline(always)]
    unsafe fn store_i8(self, to: *mut i8, a: V<__m256>) -> i32 {
        // SAFETY: the caller promises room for 16 values.
        unsafe {
            let (low, high) = (_mm256_cvtps_epi32(a.0), _mm256_cvtps_epi32(a.1));
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(to.cast(), bytes);
            let sum = _mm256_add_epi32(low, high);
            let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
            _mm_cvtsi128_si32(sum).wrapping_add(_mm_extract_epi32::<1>(sum))
        }
    }
    #[inline(always)]
    unsafe fn load_i8(self, from: *const i8) -> V<__m256i> {
        // SAFETY: the caller promises 16 bytes.
        unsafe {
            let bytes = _mm_loadu_si128(from.cast());
            V(_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128::<8>(bytes)))
        }
    }
    #[inline(always)]
    unsafe fn load_u32(self, from: *const u8) -> V<__m256i> {
        // SAFETY: the caller promises 64 bytes.
        unsafe { V(_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())) }
    }
    #[inline(always)]
    fn bits_to_f32<const SHIFT: u32>(self, a: V<__m256i>, mask: u32) -> V<__m256> {
        // SAFETY: as in `both`.
        unsafe { V(bits_to_f32::<SHIFT>(a.0, mask), bits_to_f32::<SHIFT>(a.1, mask)) }
    }
    #[inline(always)]
    unsafe fn load_e8m0(self, from: *const u8) -> V<__m256> {
        // SAFETY: the caller promises 16 bytes.
        unsafe { V(e8m0(_mm_loadl_epi64(from.cast())), e8m0(_mm_loadl_epi64(from.add(8).cast()))) }
    }
    #[inline(always)]
    unsafe fn load_e4m3(self, from: *const u8) -> V<__m256> {
        // SAFETY: the caller promises 16 bytes.
        unsafe { V(e4m3(_mm_loadl_epi64(from.cast())), e4m3(_mm_loadl_epi64(from.add(8).cast()))) }
    }
    #[inline(always)]
    unsafe fn unpack<const KIND: u8>(self, from: *const u8, to: *mut u8) {
        for half in [0, 32] {
            // SAFETY: the caller promises the kind's bytes to read and 64 to write for each quad.
            unsafe { unpack::<KIND>(from.add(half), to.add(half)) }
        }
    }
    #[inline(always)]
    fn dot_step(self, sums: V<__m256i>, weights: V<__m256i>, x: V<__m256i>) -> V<__m256i> {
        // SAFETY: as in `both`.
        unsafe {
            V(
                _mm256_add_epi16(sums.0, _mm256_maddubs_epi16(weights.0, x.0)),
                _mm256_add_epi16(sums.1, _mm256_maddubs_epi16(weights.1, x.1)),
            )
        }
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
    ) -> [[V<__m256>; C]; R] {
        let mut dots = [[V(self.zero().0, self.zero().0); C]; R];
        for c in 0..C {
            // SAFETY: the caller's promise; the upper eight outputs begin 32 bytes into every 64.
            let (low, high) = unsafe {
                match KIND {
                    _ if VNNI => (dot_vnni::<R, KIND>(weights[c], rows), dot_vnni::<R, KIND>(weights[c].add(32), rows)),
                    kind::BYTES => (dot_bytes::<R>(weights[c], rows), dot_bytes::<R>(weights[c].add(32), rows)),
                    _ => (dot_small::<R, KIND>(weights[c], rows), dot_small::<R, KIND>(weights[c].add(32), rows)),
                }
            };
            for r in 0..R {
                dots[r][c] = V(low[r], high[r]);
            }
        }
        dots
    }
}

#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
fn enter<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Avx2::<false>(()))
}

#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
fn enter_vnni<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Avx2::<true>(()))
}

/// Powers of two of eight bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn e8m0(bytes: __m128i) -> __m256 {
    let exponent = _mm256_slli_epi32::<23>(_mm256_cvtepu8_epi32(bytes));
    _mm256_castsi256_ps(_mm256_max_epi32(exponent, _mm256_set1_epi32(1 << 22)))
}

/// Eight codes as numbers.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e4m3(bytes: __m128i) -> __m256 {
    let codes = _mm_slli_epi16::<7>(_mm_cvtepi8_epi16(bytes));
    let halves = _mm256_cvtph_ps(_mm_and_si128(codes, _mm_set1_epi16(E4M3_BITS)));
    _mm256_mul_ps(halves, _mm256_set1_ps(256.0))
}

#[inline]
#[target_feature(enable = "avx2")]
fn half_pow2(t: __m256) -> __m256 {
    let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(t));
    _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(126 << 23)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_bf16(values: __m128i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(values)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn bits_to_f32<const SHIFT: u32>(a: __m256i, mask: u32) -> __m256 {
    let shifted = _mm256_srl_epi32(a, _mm_cvtsi32_si128(SHIFT as i32));
    _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(mask as i32)))
}
