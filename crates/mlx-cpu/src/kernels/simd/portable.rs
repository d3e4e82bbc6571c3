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
        match cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            true => lanes(|i| a.0[i].mul_add(b.0[i], c.0[i])),
            false => lanes(|i| a.0[i] * b.0[i] + c.0[i]),
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
    unsafe fn split_nibbles(self, from: *const u8, to: *mut u8) {
        for i in 0..64 {
            // SAFETY: the caller promises 64 bytes to read and 128 to write.
            unsafe {
                *to.add(i) = *from.add(i) & 15;
                *to.add(64 + i) = *from.add(i) >> 4;
            }
        }
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
                // SAFETY: the caller promises 32 weights of 16 outputs, and 32 activations a row.
                let products = unsafe {
                    match KIND {
                        kind::BYTES => products::<i32, KIND>(weights[c], rows, r),
                        // Eight products of at most 15 * 127 fit.
                        _ => products::<i16, KIND>(weights[c], rows, r),
                    }
                };
                dots[r][c] = lanes(|lane| products[4 * lane..][..4].iter().sum::<i32>() as f32);
            }
        }
        dots
    }
}

/// For each byte of a line, the sum of its eight products with a row.
///
/// # Safety
/// 32 weights of 16 outputs can be read, and 32 activations in row `r`.
#[inline(always)]
unsafe fn products<T: Copy + From<i16> + Into<i32> + std::ops::AddAssign, const KIND: u8>(
    weights: *const u8,
    rows: Dot32,
    r: usize,
) -> [i32; 64] {
    let mut sums = [T::from(0); 64];
    for quad in 0..8 {
        // SAFETY: the caller's promise; quad < 8.
        let (w, x) = unsafe { (quad_of::<KIND>(weights, quad), row_quad(rows, r, quad)) };
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
/// 32 weights of 16 outputs can be read.
#[inline(always)]
unsafe fn quad_of<const KIND: u8>(weights: *const u8, quad: usize) -> [u8; 64] {
    // SAFETY: quad < 8, so the 64 bytes lie within the caller's 256 or 512.
    unsafe {
        if KIND != kind::NIBBLES {
            return weights.add(quad * 64).cast::<[u8; 64]>().read();
        }
        let mut bytes = weights.add(quad / 2 * 64).cast::<[u8; 64]>().read();
        let shift = quad % 2 * 4;
        for byte in &mut bytes {
            *byte = *byte >> shift & 15;
        }
        bytes
    }
}

/// # Safety
/// Row `r` holds 32 activations.
#[inline(always)]
unsafe fn row_quad(rows: Dot32, r: usize, quad: usize) -> [i8; 4] {
    // SAFETY: quad < 8, so the four values lie within the row's 32.
    unsafe { rows.x.add(r * rows.stride + 4 * quad).cast::<[i8; 4]>().read() }
}
