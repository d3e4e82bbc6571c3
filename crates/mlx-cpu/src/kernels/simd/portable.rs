//! The level every processor has: loops over arrays that the compiler vectorises.

use super::{Dot32, Kernel, LANES, Simd, kind};
use crate::kernels::float;

/// The token of the portable level.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// 16 lanes.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct V<T>([T; LANES]);

#[inline(always)]
fn lanes<T>(f: impl Fn(usize) -> T) -> V<T> {
    V(std::array::from_fn(f))
}

impl Portable {
    #[inline(always)]
    fn fold(mut a: V<f32>, f: impl Fn(f32, f32) -> f32) -> f32 {
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                a.0[i] = f(a.0[i], a.0[i + half]);
            }
        }
        a.0[0]
    }
}

impl Simd for Portable {
    type F = V<f32>;
    type I = V<u32>;
    const DECODE_ROWS: usize = 4;
    const INT_TILE: (usize, usize) = (4, 1);
    const FLOAT_TILE: (usize, usize) = (4, 1);
    const SCORE_TILE: (usize, usize) = (2, 1);

    #[inline(never)]
    fn call<K: Kernel>(self, kernel: K) -> K::Out {
        kernel.run(self)
    }
    #[inline(always)]
    fn splat(self, x: f32) -> V<f32> {
        V([x; LANES])
    }
    #[inline(always)]
    fn add(self, a: V<f32>, b: V<f32>) -> V<f32> {
        lanes(|i| a.0[i] + b.0[i])
    }
    #[inline(always)]
    fn sub(self, a: V<f32>, b: V<f32>) -> V<f32> {
        lanes(|i| a.0[i] - b.0[i])
    }
    #[inline(always)]
    fn mul(self, a: V<f32>, b: V<f32>) -> V<f32> {
        lanes(|i| a.0[i] * b.0[i])
    }
    #[inline(always)]
    fn div(self, a: V<f32>, b: V<f32>) -> V<f32> {
        lanes(|i| a.0[i] / b.0[i])
    }
    #[inline(always)]
    fn fma(self, a: V<f32>, b: V<f32>, c: V<f32>) -> V<f32> {
        // Without the instruction, a fused multiply-add would be a call of a library function.
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            lanes(|i| a.0[i].mul_add(b.0[i], c.0[i]))
        } else {
            lanes(|i| a.0[i] * b.0[i] + c.0[i])
        }
    }
    #[inline(always)]
    fn max(self, a: V<f32>, b: V<f32>) -> V<f32> {
        lanes(|i| if a.0[i] > b.0[i] { a.0[i] } else { b.0[i] })
    }
    #[inline(always)]
    fn abs(self, a: V<f32>) -> V<f32> {
        lanes(|i| a.0[i].abs())
    }
    #[inline(always)]
    fn select_lt(self, a: V<f32>, b: V<f32>, x: V<f32>, y: V<f32>) -> V<f32> {
        lanes(|i| if a.0[i] < b.0[i] { x.0[i] } else { y.0[i] })
    }
    #[inline(always)]
    fn sum(self, a: V<f32>) -> f32 {
        Self::fold(a, |a, b| a + b)
    }
    #[inline(always)]
    fn largest(self, a: V<f32>) -> f32 {
        Self::fold(a, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn half_pow2(self, t: V<f32>) -> V<f32> {
        lanes(|i| f32::from_bits((t.0[i].to_bits() << 23).wrapping_add(126 << 23)))
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> V<f32> {
        // SAFETY: the caller promises 16 values; unaligned reads are asked for.
        V(unsafe { from.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, a: V<f32>) {
        // SAFETY: the caller promises room for 16 values; unaligned writes are asked for.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(a.0) }
    }
    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, count: usize) -> V<f32> {
        // SAFETY: the caller promises `count` values.
        lanes(|i| if i < count { unsafe { *from.add(i) } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, a: V<f32>, count: usize) {
        for (i, value) in a.0.into_iter().enumerate().take(count) {
            // SAFETY: the caller promises room for `count` values.
            unsafe { *to.add(i) = value }
        }
    }
    #[inline(always)]
    unsafe fn load_f16(self, from: *const u16) -> V<f32> {
        // SAFETY: the caller promises 16 values.
        lanes(|i| float::f16_to_f32(unsafe { from.add(i).read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn load_bf16(self, from: *const u16) -> V<f32> {
        // SAFETY: the caller promises 16 values.
        lanes(|i| float::bf16_to_f32(unsafe { from.add(i).read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16, a: V<f32>) {
        for (i, value) in a.0.into_iter().enumerate() {
            // SAFETY: the caller promises room for 16 values.
            unsafe { to.add(i).write_unaligned(float::f32_to_f16(value)) }
        }
    }
    #[inline(always)]
    unsafe fn store_i8(self, to: *mut i8, a: V<f32>) -> i32 {
        let mut sum = 0;
        for (i, value) in a.0.into_iter().enumerate() {
            let rounded = ((value + 12_582_912.0) - 12_582_912.0) as i8;
            sum += i32::from(rounded);
            // SAFETY: the caller promises room for 16 values.
            unsafe { *to.add(i) = rounded }
        }
        sum
    }
    #[inline(always)]
    unsafe fn load_i8(self, from: *const i8) -> V<u32> {
        // SAFETY: the caller promises 16 bytes.
        lanes(|i| i32::from(unsafe { *from.add(i) }) as u32)
    }
    #[inline(always)]
    unsafe fn load_u32(self, from: *const u8) -> V<u32> {
        // SAFETY: the caller promises 64 bytes.
        lanes(|i| u32::from_le(unsafe { from.cast::<u32>().add(i).read_unaligned() }))
    }
    #[inline(always)]
    fn bits_to_f32<const SHIFT: u32>(self, a: V<u32>, mask: u32) -> V<f32> {
        lanes(|i| ((a.0[i] >> SHIFT) & mask) as i32 as f32)
    }
    #[inline(always)]
    unsafe fn load_e8m0(self, from: *const u8) -> V<f32> {
        // SAFETY: the caller promises 16 bytes.
        lanes(|i| float::e8m0(unsafe { *from.add(i) }))
    }
    #[inline(always)]
    unsafe fn load_e4m3(self, from: *const u8) -> V<f32> {
        // SAFETY: the caller promises 16 bytes.
        lanes(|i| float::e4m3(unsafe { *from.add(i) }))
    }
    #[inline(always)]
    unsafe fn unpack<const KIND: u8>(self, from: *const u8, to: *mut u8) {
        for quad in 0..kind::inputs(KIND) / 4 {
            // SAFETY: the caller promises the kind's bytes to read and 64 to write for each quad.
            unsafe { to.add(64 * quad).cast::<[u8; 64]>().write(quad_of::<KIND>(from, quad)) }
        }
    }
    #[inline(always)]
    fn dot_step(self, sums: V<u32>, weights: V<u32>, x: V<u32>) -> V<u32> {
        let mut sums = sums;
        for shift in [0, 8, 16, 24] {
            for i in 0..LANES {
                let (w, x) = (weights.0[i] >> shift & 255, (x.0[i] >> shift) as i8);
                sums.0[i] = sums.0[i].wrapping_add_signed(i32::from(w as i16 * i16::from(x)));
            }
        }
        sums
    }
    #[inline(always)]
    fn prefetch(self, _: *const u8) {}
    #[inline(always)]
    unsafe fn dot32<const R: usize, const C: usize, const KIND: u8>(
        self,
        weights: [*const u8; C],
        rows: Dot32,
    ) -> [[V<f32>; C]; R] {
        let mut dots = [[self.zero(); C]; R];
        for c in 0..C {
            for r in 0..R {
                // SAFETY: the caller promises the weights of 16 outputs, and as many activations a row.
                let products = unsafe {
                    match KIND {
                        kind::BYTES | kind::SIX | kind::MIDDLE_BYTES => products::<i32, KIND>(weights[c], rows, r),
                        // Eight products of at most 31 * 127 fit, and four of at most 63 * 127.
                        _ => products::<i16, KIND>(weights[c], rows, r),
                    }
                };
                dots[r][c] = lanes(|lane| products[4 * lane..][..4].iter().sum::<i32>() as f32);
            }
        }
        dots
    }
}

/// For each byte of a line, the sum of its products with a row, one a quad.
///
/// # Safety
/// The weights of 16 outputs can be read, and as many activations in row `r`.
#[inline(always)]
unsafe fn products<T: Copy + From<i16> + Into<i32> + std::ops::AddAssign, const KIND: u8>(
    weights: *const u8,
    rows: Dot32,
    r: usize,
) -> [i32; 64] {
    let mut sums = [T::from(0); 64];
    for quad in 0..kind::inputs(KIND) / 4 {
        // SAFETY: the caller's promise; the quad is one of the kind's.
        let (w, x) = unsafe { (quad_of::<KIND>(weights, quad), row_quad::<KIND>(rows, r, quad)) };
        let x: [i16; 16] = std::array::from_fn(|i| i16::from(x[i % 4]));
        for part in 0..4 {
            for i in 0..16 {
                // At most 255 * 127, which fits.
                sums[16 * part + i] += T::from(i16::from(w[16 * part + i]) * x[i]);
            }
        }
    }
    let mut out = [0; 64];
    for i in 0..64 {
        out[i] = sums[i].into();
    }
    out
}

/// Four weights of each lane, as bytes.
///
/// # Safety
/// The kind's bytes can be read, and it has this quad.
#[inline(always)]
unsafe fn quad_of<const KIND: u8>(weights: *const u8, quad: usize) -> [u8; 64] {
    // SAFETY: within the kind's bytes, as the caller promises.
    let line = |index: usize| unsafe { weights.add(index * 64).cast::<[u8; 64]>().read() };
    let plane = |first: usize, bits: usize| {
        let mut bytes = line(first + quad * bits / 8);
        let (shift, mask) = (quad * bits % 8, (1 << bits) - 1);
        bytes.iter_mut().for_each(|byte| *byte = *byte >> shift & mask);
        bytes
    };
    let joined = |mut low: [u8; 64], high: [u8; 64], at: u32| {
        low.iter_mut().zip(high).for_each(|(low, high)| *low |= high << at);
        low
    };
    match KIND {
        kind::NIBBLES => plane(0, 4),
        kind::TWO => plane(0, 2),
        kind::THREE => joined(plane(0, 2), plane(2, 1), 2),
        kind::FIVE => joined(plane(0, 4), plane(4, 1), 4),
        kind::SIX => joined(plane(0, 4), plane(4, 2), 4),
        kind::E2M1 | kind::E2M1_16 => plane(0, 4).map(|code| float::E2M1[usize::from(code)]),
        _ => line(quad),
    }
}

/// # Safety
/// Row `r` holds this quad.
#[inline(always)]
unsafe fn row_quad<const KIND: u8>(rows: Dot32, r: usize, quad: usize) -> [i8; 4] {
    // SAFETY: the caller's promise.
    unsafe { rows.x.add(r * kind::inputs(KIND) + 4 * quad).cast::<[i8; 4]>().read() }
}
