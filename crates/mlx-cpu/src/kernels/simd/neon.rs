//! NEON: 16 lanes are four registers. Int8 products go by way of 16 bits, or with the dot-product instructions of
//! ARMv8.2 by one instruction; those and conversions of half precision are not stable intrinsics in Rust yet, so they are
//! written as assembly.

mod dot;

use std::arch::{aarch64::*, asm};

use super::{Dot32, E4M3_BITS, Kernel, LANES, Simd};
use dot::{dot, dot_plain, dot4, unpack};

/// Widening multiplications only.
pub(crate) const PLAIN: u8 = 0;
/// SDOT: four int8 products a lane, both factors signed.
pub(crate) const DOTPROD: u8 = 1;
/// USDOT as well: unsigned weights times signed activations.
pub(crate) const I8MM: u8 = 2;

/// Proof that the processor has the dot products `DOT` names. NEON is part of the target.
#[derive(Clone, Copy)]
pub(crate) struct Neon<const DOT: u8>(());

impl<const DOT: u8> Neon<DOT> {
    /// # Safety
    /// The processor has the instructions this type stands for.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Neon(())
    }
}

type F = [float32x4_t; 4];

/// An expression for each of the four registers.
macro_rules! each {
    ($i:ident => $expression:expr) => {
        // SAFETY: no memory is touched, and NEON is part of the target.
        unsafe {
            [
                {
                    let $i = 0;
                    $expression
                },
                {
                    let $i = 1;
                    $expression
                },
                {
                    let $i = 2;
                    $expression
                },
                {
                    let $i = 3;
                    $expression
                },
            ]
        }
    };
}

impl<const DOT: u8> Simd for Neon<DOT> {
    type F = F;
    type I = [uint32x4_t; 4];
    const DECODE_ROWS: usize = 4;
    const INT_TILE: (usize, usize) = (4, 1);
    const FLOAT_TILE: (usize, usize) = (6, 1);
    const SCORE_TILE: (usize, usize) = (4, 1);

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: the token proves that the processor has the features.
        unsafe {
            match DOT {
                PLAIN => enter_plain(kernel),
                DOTPROD => enter_dotprod(kernel),
                _ => enter_i8mm(kernel),
            }
        }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> F {
        each!(_i => vdupq_n_f32(x))
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        each!(i => vaddq_f32(a[i], b[i]))
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        each!(i => vsubq_f32(a[i], b[i]))
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        each!(i => vmulq_f32(a[i], b[i]))
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        each!(i => vdivq_f32(a[i], b[i]))
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        each!(i => vfmaq_f32(c[i], a[i], b[i]))
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        std::array::from_fn(|i| larger(a[i], b[i]))
    }
    #[inline(always)]
    fn abs(self, a: F) -> F {
        each!(i => vabsq_f32(a[i]))
    }
    #[inline(always)]
    fn select_lt(self, a: F, b: F, x: F, y: F) -> F {
        each!(i => vbslq_f32(vcltq_f32(a[i], b[i]), x[i], y[i]))
    }
    #[inline(always)]
    fn sum(self, a: F) -> f32 {
        // SAFETY: as in `each`.
        unsafe {
            let a = vaddq_f32(vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3]));
            let a = vadd_f32(vget_low_f32(a), vget_high_f32(a));
            vget_lane_f32::<0>(a) + vget_lane_f32::<1>(a)
        }
    }
    #[inline(always)]
    fn largest(self, a: F) -> f32 {
        // SAFETY: as in `each`.
        unsafe {
            let a = larger(larger(a[0], a[2]), larger(a[1], a[3]));
            let a = larger(a, vextq_f32::<2>(a, a));
            vgetq_lane_f32::<0>(larger(a, vextq_f32::<1>(a, a)))
        }
    }
    #[inline(always)]
    fn half_pow2(self, t: F) -> F {
        each!(i => {
            let exponent = vshlq_n_u32::<23>(vreinterpretq_u32_f32(t[i]));
            vreinterpretq_f32_u32(vaddq_u32(exponent, vdupq_n_u32(126 << 23)))
        })
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> F {
        each!(i => vld1q_f32(from.add(4 * i)))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, a: F) {
        each!(i => vst1q_f32(to.add(4 * i), a[i]));
    }
    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, count: usize) -> F {
        let mut lanes = [0.0; LANES];
        // SAFETY: the caller promises `count` values, at most 16.
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
            self.load(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, a: F, count: usize) {
        let mut lanes = [0.0; LANES];
        // SAFETY: the caller promises room for `count` values, at most 16.
        unsafe {
            self.store(lanes.as_mut_ptr(), a);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
        }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> F {
        each!(i => widen_f16(vld1_u16(from.add(4 * i))))
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> F {
        each!(i => vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(from.add(4 * i)))))
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, a: F) {
        each!(i => vst1_u16(to.add(4 * i), narrow_f16(a[i])));
    }
    #[inline(always)]
    unsafe fn store_i8(self, to: *mut i8, a: F) -> i32 {
        let rounded = each!(i => vcvtnq_s32_f32(a[i]));
        // SAFETY: the caller promises room for 16 values.
        unsafe {
            let low = vcombine_s16(vmovn_s32(rounded[0]), vmovn_s32(rounded[1]));
            let high = vcombine_s16(vmovn_s32(rounded[2]), vmovn_s32(rounded[3]));
            vst1q_s8(to, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
            let pairs = [vaddq_s32(rounded[0], rounded[1]), vaddq_s32(rounded[2], rounded[3])];
            vaddvq_s32(vaddq_s32(pairs[0], pairs[1]))
        }
    }
    #[inline(always)]
    unsafe fn load_i8(self, from: *const i8) -> [uint32x4_t; 4] {
        // SAFETY: the caller promises 16 bytes.
        widen_i8(unsafe { vld1q_s8(from) })
    }
    #[inline(always)]
    unsafe fn load_u32(self, from: *const u8) -> [uint32x4_t; 4] {
        each!(i => vreinterpretq_u32_u8(vld1q_u8(from.add(16 * i))))
    }
    #[inline(always)]
    fn bits_to_f32<const SHIFT: u32>(self, a: [uint32x4_t; 4], mask: u32) -> F {
        each!(i => {
            let shifted = vshlq_u32(a[i], vdupq_n_s32(-(SHIFT as i32)));
            vcvtq_f32_s32(vreinterpretq_s32_u32(vandq_u32(shifted, vdupq_n_u32(mask))))
        })
    }
    #[inline(always)]
    unsafe fn load_e8m0(self, from: *const u8) -> F {
        // SAFETY: the caller promises 16 bytes.
        let bytes = widen_u8(unsafe { vld1q_u8(from) });
        each!(i => vreinterpretq_f32_u32(vmaxq_u32(vshlq_n_u32::<23>(bytes[i]), vdupq_n_u32(1 << 22))))
    }
    #[inline(always)]
    unsafe fn load_e4m3(self, from: *const u8) -> F {
        // SAFETY: the caller promises 16 bytes.
        let codes = unsafe { vld1q_s8(from.cast()) };
        // SAFETY: as in `each`.
        let [low, high] = unsafe {
            [vmovl_s8(vget_low_s8(codes)), vmovl_high_s8(codes)]
                .map(|codes| vreinterpretq_u16_s16(vandq_s16(vshlq_n_s16::<7>(codes), vdupq_n_s16(E4M3_BITS))))
        };
        // SAFETY: as in `each`.
        let halves = unsafe { [vget_low_u16(low), vget_high_u16(low), vget_low_u16(high), vget_high_u16(high)] };
        each!(i => vmulq_f32(widen_f16(halves[i]), vdupq_n_f32(256.0)))
    }
    #[inline(always)]
    unsafe fn unpack<const KIND: u8>(self, from: *const u8, to: *mut u8) {
        for part in [0, 16, 32, 48] {
            // SAFETY: the caller promises the kind's bytes to read and 64 to write for each quad.
            unsafe { unpack::<KIND>(from.add(part), to.add(part)) }
        }
    }
    #[inline(always)]
    fn dot_step(self, sums: [uint32x4_t; 4], weights: [uint32x4_t; 4], x: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
        each!(i => {
            let (w, x) = (vreinterpretq_u8_u32(weights[i]), vreinterpretq_s8_u32(x[i]));
            match DOT {
                PLAIN => {
                    let sums = vmlal_s8(vreinterpretq_s16_u32(sums[i]), vget_low_s8(vreinterpretq_s8_u8(w)), vget_low_s8(x));
                    vreinterpretq_u32_s16(vmlal_high_s8(sums, vreinterpretq_s8_u8(w), x))
                }
                _ => vreinterpretq_u32_s32(dot4::<DOT>(vreinterpretq_s32_u32(sums[i]), w, x)),
            }
        })
    }
    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: a hint, which no address makes fault.
        unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly)) }
    }
    #[inline(always)]
    unsafe fn dot32<const R: usize, const C: usize, const KIND: u8>(
        self,
        weights: [*const u8; C],
        rows: Dot32,
    ) -> [[F; C]; R] {
        let mut dots = [[self.zero(); C]; R];
        for c in 0..C {
            for (i, part) in [0, 16, 32, 48].into_iter().enumerate() {
                // SAFETY: the caller's promise; the next four outputs begin 16 bytes further into every 64. The token
                // proves that the processor has the instructions.
                let products = unsafe {
                    match DOT {
                        PLAIN => dot_plain::<R, KIND>(weights[c].add(part), rows),
                        _ => dot::<DOT, R, KIND>(weights[c].add(part), rows),
                    }
                };
                for r in 0..R {
                    // SAFETY: as in `each`.
                    dots[r][c][i] = unsafe { vcvtq_f32_s32(products[r]) };
                }
            }
        }
        dots
    }
}

#[inline(never)]
fn enter_plain<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Neon::<PLAIN>(()))
}

#[inline(never)]
#[target_feature(enable = "dotprod")]
fn enter_dotprod<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Neon::<DOTPROD>(()))
}

#[inline(never)]
#[target_feature(enable = "dotprod,i8mm")]
fn enter_i8mm<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Neon::<I8MM>(()))
}

/// 16 bytes, sign-extended.
#[inline(always)]
fn widen_i8(bytes: int8x16_t) -> [uint32x4_t; 4] {
    // SAFETY: as in `each`.
    unsafe {
        let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
        [vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)]
            .map(|four| vreinterpretq_u32_s32(four))
    }
}

/// 16 bytes.
#[inline(always)]
fn widen_u8(bytes: uint8x16_t) -> [uint32x4_t; 4] {
    // SAFETY: as in `each`.
    unsafe {
        let (low, high) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
        [vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low), vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)]
    }
}

/// The larger, `b` where either is not a number.
#[inline(always)]
fn larger(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    // SAFETY: as in `each`.
    unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) }
}

#[inline(always)]
fn widen_f16(values: uint16x4_t) -> float32x4_t {
    let wide;
    // SAFETY: registers only.
    unsafe {
        asm!("fcvtl {0:v}.4s, {1:v}.4h", lateout(vreg) wide, in(vreg) values, options(pure, nomem, nostack, preserves_flags))
    };
    wide
}

#[inline(always)]
fn narrow_f16(values: float32x4_t) -> uint16x4_t {
    let narrow;
    // SAFETY: registers only.
    unsafe {
        asm!("fcvtn {0:v}.4h, {1:v}.4s", lateout(vreg) narrow, in(vreg) values, options(pure, nomem, nostack, preserves_flags))
    };
    narrow
}
