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
            Activation::Silu => apply(s, gate, up, out, silu),
            Activation::GeluTanh => apply(s, gate, up, out, gelu),
            Activation::Sigmoid => apply(s, gate, up, out, math::sigmoid),
        }
    }
}

#[inline(always)]
fn apply<S: Simd>(s: S, gate: &[f32], up: &[f32], out: &mut [f32], activation: impl Fn(S, S::F) -> S::F) {
    for ((gate, up), out) in gate.chunks(LANES).zip(up.chunks(LANES)).zip(out.chunks_mut(LANES)) {
        write(s, out, s.mul(activation(s, read(s, gate)), read(s, up)));
    }
}

#[inline(always)]
fn silu<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    s.div(x, s.add(one, math::exp(s, s.sub(s.zero(), x))))
}

#[inline(always)]
fn gelu<S: Simd>(s: S, x: S::F) -> S::F {
    // (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where the sum cancels.
    let inner = s.fma(s.mul(s.mul(x, x), x), s.splat(0.044_715), x);
    s.mul(x, math::sigmoid(s, s.mul(inner, s.splat(1.595_769))))
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
            Activation::GeluTanh => {
                x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()) / 2.0
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
