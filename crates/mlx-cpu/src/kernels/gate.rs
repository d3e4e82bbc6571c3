//! Gated activations of feed-forward blocks: activation(gate) * up.

use super::{
    level::{Kernel, level},
    math,
    norm::{read, write},
    pool,
    rows::{Rows, RowsMut, SharedRows},
    simd::{LANES, Simd},
};

/// What the gate goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x * sigmoid(x)
    Silu,
    /// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x³))) / 2
    GeluTanh,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// x * (1 + erf(x / sqrt(2))) / 2
    Gelu,
}

/// Columns a task works on.
const COLUMNS: usize = 4096;

/// Computes activation(gate) * up into `out`; all three are [m, f]. Gate and up may lie in one [m, 2 f] buffer.
///
/// # Panics
/// If the shapes do not fit.
pub fn gated(activation: Activation, gate: Rows, up: Rows, out: RowsMut) {
    gate.check("gate");
    up.check("up");
    assert_eq!((gate.count, gate.width), (up.count, up.width), "the shapes of gate and up");
    let out = out.share(gate.count, gate.width, "gated activation");
    let level = level();
    let columns = gate.width.div_ceil(COLUMNS);
    // An exponential is worth about eight of the operations that the threshold counts.
    pool::run_worth(8 * gate.count * gate.width, gate.count * columns, |task| {
        let (row, start) = (task / columns, task % columns * COLUMNS);
        level.run(Gated { activation, gate, up, out: &out, row, start });
    });
}

/// Computes activation(x) into `out`; both are [m, f].
///
/// # Panics
/// If the shapes do not fit.
pub fn activated(activation: Activation, x: Rows, out: RowsMut) {
    x.check("activation");
    let out = out.share(x.count, x.width, "activation");
    let level = level();
    let columns = x.width.div_ceil(COLUMNS);
    pool::run_worth(8 * x.count * x.width, x.count * columns, |task| {
        let (row, start) = (task / columns, task % columns * COLUMNS);
        level.run(Activated { activation, x, out: &out, row, start });
    });
}

struct Activated<'a> {
    activation: Activation,
    x: Rows<'a>,
    out: &'a SharedRows<'a>,
    row: usize,
    start: usize,
}

impl Kernel for Activated<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = (self.x.width - self.start).min(COLUMNS);
        let x = &self.x.row(self.row)[self.start..][..width];
        // SAFETY: each part of a row is one task's.
        let out = unsafe { self.out.part(self.row, self.start, width) };
        match self.activation {
            Activation::Silu => each::<S, Silu>(s, x, out),
            Activation::GeluTanh => each::<S, GeluTanh>(s, x, out),
            Activation::Sigmoid => each::<S, Sigmoid>(s, x, out),
            Activation::Gelu => each::<S, Gelu>(s, x, out),
        }
    }
}

#[inline(always)]
fn each<S: Simd, C: Curve>(s: S, x: &[f32], out: &mut [f32]) {
    for (x, out) in x.chunks(LANES).zip(out.chunks_mut(LANES)) {
        write(s, out, C::at(s, read(s, x)));
    }
}

struct Gated<'a> {
    activation: Activation,
    gate: Rows<'a>,
    up: Rows<'a>,
    out: &'a SharedRows<'a>,
    row: usize,
    start: usize,
}

impl Kernel for Gated<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = (self.gate.width - self.start).min(COLUMNS);
        let gate = &self.gate.row(self.row)[self.start..][..width];
        let up = &self.up.row(self.row)[self.start..][..width];
        // SAFETY: each part of a row is one task's.
        let out = unsafe { self.out.part(self.row, self.start, width) };
        match self.activation {
            Activation::Silu => apply::<S, Silu>(s, gate, up, out),
            Activation::GeluTanh => apply::<S, GeluTanh>(s, gate, up, out),
            Activation::Sigmoid => apply::<S, Sigmoid>(s, gate, up, out),
            Activation::Gelu => apply::<S, Gelu>(s, gate, up, out),
        }
    }
}

#[inline(always)]
fn apply<S: Simd, C: Curve>(s: S, gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((gate, up), out) in gate.chunks(LANES).zip(up.chunks(LANES)).zip(out.chunks_mut(LANES)) {
        write(s, out, s.mul(C::at(s, read(s, gate)), read(s, up)));
    }
}

/// An activation as a type. As a function that is passed on it would be called through a shim that has no instruction set
/// of its own, and then each of its vector operations is a call.
trait Curve {
    fn at<S: Simd>(s: S, x: S::F) -> S::F;
}

struct Silu;

impl Curve for Silu {
    #[inline(always)]
    fn at<S: Simd>(s: S, x: S::F) -> S::F {
        let one = s.splat(1.0);
        s.div(x, s.add(one, math::exp(s, s.sub(s.zero(), x))))
    }
}

struct Sigmoid;

impl Curve for Sigmoid {
    #[inline(always)]
    fn at<S: Simd>(s: S, x: S::F) -> S::F {
        math::sigmoid(s, x)
    }
}

struct GeluTanh;

impl Curve for GeluTanh {
    #[inline(always)]
    fn at<S: Simd>(s: S, x: S::F) -> S::F {
        // (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where the sum cancels.
        let inner = s.fma(s.mul(s.mul(x, x), x), s.splat(0.044_715), x);
        s.mul(x, math::sigmoid(s, s.mul(inner, s.splat(1.595_769))))
    }
}

struct Gelu;

impl Curve for Gelu {
    /// The polynomial of Abramowitz and Stegun 7.1.26: half of 1 - erf for positive numbers, to 8e-8.
    #[inline(always)]
    fn at<S: Simd>(s: S, x: S::F) -> S::F {
        let one = s.splat(1.0);
        let z = s.mul(s.abs(x), s.splat(std::f32::consts::FRAC_1_SQRT_2));
        let t = s.div(one, s.fma(z, s.splat(0.327_591_1), one));
        let mut p = s.splat(1.061_405_4);
        for c in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
            p = s.fma(p, t, s.splat(c));
        }
        let tail = s.mul(s.mul(p, t), s.mul(math::exp(s, s.sub(s.zero(), s.mul(z, z))), s.splat(0.5)));
        s.mul(x, s.select_lt(x, s.zero(), tail, s.sub(one, tail)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{
        level::{levels, with_level},
        testing::Random,
    };

    fn reference(activation: Activation, x: f64) -> f64 {
        match activation {
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Gelu => x * (1.0 + erf(x / 2f64.sqrt())) / 2.0,
            Activation::GeluTanh => {
                x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()) / 2.0
            }
        }
    }

    /// Its Taylor series near zero, the continued fraction of its complement far from it.
    fn erf(x: f64) -> f64 {
        if x.abs() > 2.5 {
            let far = (1..=60).rev().fold(0.0, |f, n| f64::from(n) / 2.0 / (x.abs() + f));
            let complement = (-x * x).exp() / std::f64::consts::PI.sqrt() / (x.abs() + far);
            return x.signum() * (1.0 - complement);
        }
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn activations_agree_with_f64() {
        let mut random = Random::new(32);
        for (m, f) in [(1, 1), (3, 50), (2, 5000)] {
            let x: Vec<f32> = random.vec(m * f).iter().map(|x| x * 9.0).collect();
            for activation in [Activation::Silu, Activation::GeluTanh, Activation::Sigmoid, Activation::Gelu] {
                for level in levels() {
                    let mut out = vec![0.0; m * f];
                    with_level(level, || activated(activation, Rows::packed(&x, f), RowsMut::packed(&mut out, f)));
                    for (got, x) in out.into_iter().zip(&x) {
                        let want = reference(activation, f64::from(*x));
                        let error = (f64::from(got) - want).abs();
                        assert!(
                            error <= 1e-6 * want.abs() + 1e-6,
                            "{activation:?}({x}) at {level:?}: {got}, not {want}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn gated_activations_agree_with_f64() {
        let mut random = Random::new(31);
        for (m, f) in [(1, 1), (3, 50), (2, 1536), (7, 5000)] {
            let both: Vec<f32> = random.vec(m * 2 * f).iter().map(|x| x * 12.0).collect();
            let gate = Rows { data: &both, count: m, stride: 2 * f, width: f };
            let up = Rows { data: &both[f..], count: m, stride: 2 * f, width: f };
            for activation in [Activation::Silu, Activation::GeluTanh, Activation::Sigmoid] {
                for level in levels() {
                    let mut out = vec![0.0; m * f];
                    with_level(level, || gated(activation, gate, up, RowsMut::packed(&mut out, f)));
                    for (i, got) in out.into_iter().enumerate() {
                        let (gate, up) = (f64::from(gate.row(i / f)[i % f]), f64::from(up.row(i / f)[i % f]));
                        let want = reference(activation, gate) * up;
                        let error = (f64::from(got) - want).abs();
                        assert!(error <= 1e-6 * want.abs() + 3e-7, "{activation:?}({gate}) * {up} at {level:?}: {got}");
                    }
                }
            }
        }
    }

    #[test]
    fn large_gates_neither_overflow_nor_vanish() {
        let gate = [-200.0, -90.0, 90.0, 200.0];
        for level in levels() {
            let mut out = [1.0; 4];
            let rows = |data| Rows::packed(data, 4);
            with_level(level, || gated(Activation::Silu, rows(&gate), rows(&[1.0; 4]), RowsMut::packed(&mut out, 4)));
            assert_eq!(out, [0.0, 0.0, 90.0, 200.0], "{level:?}");
        }
    }
}
