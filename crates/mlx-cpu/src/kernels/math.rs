//! exp, sigmoid, tanh and sin/cos over vectors, written once for all levels.

use super::simd::{LANES, Simd};

/// Below this exp is 0: its reciprocal and products with it stay clear of subnormals.
const EXP_LOWEST: f32 = -86.5;
const EXP_HIGHEST: f32 = 88.72;

/// e^x to about 1 ulp; 0 below -86.5, infinite from 88.72 on, not a number for none.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to the integer n and leaves it in the low bits.
    let magic = s.splat(12_582_912.0);
    let t = s.fma(x, s.splat(std::f32::consts::LOG2_E), magic);
    let n = s.sub(t, magic);
    // ln 2 in two parts, the first with few enough bits that n times it is exact.
    let r = s.fma(n, s.splat(-0.693_145_75), x);
    let r = s.fma(n, s.splat(-1.428_606_8e-6), r);
    // (e^r - 1 - r) / r^2 interpolated at five Chebyshev nodes: 1e-8 relative.
    let mut p = s.splat(1.392_618_4e-3);
    for c in [8.363_179e-3, 4.166_655_5e-2, 0.166_665_77, 0.5, 1.0, 1.0] {
        p = s.fma(p, r, s.splat(c));
    }
    let y = s.mul(s.mul(p, s.half_pow2(t)), s.splat(2.0));
    let y = s.select_lt(x, s.splat(EXP_LOWEST), s.zero(), y);
    s.select_lt(s.splat(EXP_HIGHEST), x, s.splat(f32::INFINITY), y)
}

/// 1 / (1 + e^-x)
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.sub(s.zero(), x))))
}

/// tanh, to about 1e-7 absolute and, near zero, relative.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let magnitude = s.abs(x);
    // 1 - 2 / (e^2|x| + 1) loses its digits near zero: an odd polynomial (Taylor's) takes over below 0.35.
    let e = exp(s, s.add(magnitude, magnitude));
    let far = s.sub(s.splat(1.0), s.div(s.splat(2.0), s.add(e, s.splat(1.0))));
    let far = s.select_lt(x, s.zero(), s.sub(s.zero(), far), far);
    let x2 = s.mul(x, x);
    let mut p = s.splat(21_844.0 / 6_081_075.0);
    for c in [-1382.0 / 155_925.0, 62.0 / 2835.0, -17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0] {
        p = s.fma(p, x2, s.splat(c));
    }
    s.select_lt(magnitude, s.splat(0.35), s.mul(x, p), far)
}

/// Sine and cosine of each of `angles` (radians, below 2^30 in magnitude), to about 1e-7 absolute.
#[inline(always)]
pub(crate) fn sin_cos(angles: &[f32; LANES], sin: &mut [f32; LANES], cos: &mut [f32; LANES]) {
    for i in 0..LANES {
        // Reduced in f64: the products by the quarter turn keep their digits at any position a context reaches.
        let angle = f64::from(angles[i]);
        let magic = 6_755_399_441_055_744.0; // 1.5 * 2^52
        let shifted = angle * std::f64::consts::FRAC_2_PI + magic;
        let quarter = shifted.to_bits() as u32;
        let n = shifted - magic;
        let r = (angle - n * std::f64::consts::FRAC_PI_2) as f32;
        let r2 = r * r;
        let s = r + r * r2 * (-0.166_666_55 + r2 * (8.332_161e-3 + r2 * -1.951_529_6e-4));
        let c = 1.0 - 0.5 * r2 + r2 * r2 * (4.166_664_6e-2 + r2 * (-1.388_731_6e-3 + r2 * 2.443_315_7e-5));
        let (a, b) = if quarter & 1 == 0 { (s, c) } else { (c, s) };
        sin[i] = f32::from_bits(a.to_bits() ^ (quarter & 2) << 30);
        cos[i] = f32::from_bits(b.to_bits() ^ (quarter.wrapping_add(1) & 2) << 30);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::level::{Kernel, levels};

    struct Apply<'a>(&'a [f32], u8);

    impl Kernel for Apply<'_> {
        type Out = Vec<f32>;
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Vec<f32> {
            let mut out = vec![0.0; self.0.len()];
            for (x, out) in self.0.chunks(LANES).zip(out.chunks_mut(LANES)) {
                let x = s.read_part(x);
                let y = match self.1 {
                    0 => exp(s, x),
                    1 => sigmoid(s, x),
                    _ => tanh(s, x),
                };
                s.write_part(out, y);
            }
            out
        }
    }

    fn check(name: &str, which: u8, reference: fn(f64) -> f64, from: f32, to: f32, relative: f64) {
        let xs: Vec<f32> = (0..200_003).map(|i| from + (to - from) * (i as f32 / 200_002.0)).collect();
        for level in levels() {
            let got = level.run(Apply(&xs, which));
            for (x, got) in xs.iter().zip(got) {
                let want = reference(f64::from(*x));
                let error = (f64::from(got) - want).abs() / want.abs().max(1e-37);
                assert!(error <= relative, "{name}({x}) is {want}, got {got} at {level:?}");
            }
        }
    }

    #[test]
    fn functions_agree_with_f64() {
        check("exp", 0, f64::exp, -86.4, 88.7, 3e-7);
        check("exp", 0, f64::exp, -1.0, 1.0, 1.5e-7);
        check("sigmoid", 1, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 80.0, 4e-7);
        check("tanh", 2, f64::tanh, -20.0, 20.0, 3e-7);
        check("tanh", 2, f64::tanh, -0.5, 0.5, 4e-7);
    }

    #[test]
    fn exp_at_the_ends() {
        let xs = [f32::NEG_INFINITY, -1e9, -87.0, 0.0, 88.8, 1e9, f32::INFINITY, f32::NAN];
        for level in levels() {
            let got = level.run(Apply(&xs, 0));
            assert_eq!(got[..7], [0.0, 0.0, 0.0, 1.0, f32::INFINITY, f32::INFINITY, f32::INFINITY], "{level:?}");
            assert!(got[7].is_nan());
        }
    }

    #[test]
    fn sine_and_cosine_of_large_angles() {
        for i in 0..50_000 {
            let angles: [f32; LANES] = std::array::from_fn(|lane| (i * 16 + lane) as f32 * 1.37 - 60_000.0);
            let (mut sin, mut cos) = ([0.0; LANES], [0.0; LANES]);
            sin_cos(&angles, &mut sin, &mut cos);
            for lane in 0..LANES {
                let (s, c) = f64::from(angles[lane]).sin_cos();
                assert!((f64::from(sin[lane]) - s).abs() < 1.5e-7, "sin {}", angles[lane]);
                assert!((f64::from(cos[lane]) - c).abs() < 1.5e-7, "cos {}", angles[lane]);
            }
        }
    }
}
