//! Normalisation over the last axis: rms_norm, with what models do right after it, and layer_norm.

use super::{
    level::{Kernel, level},
    math, pool,
    rows::{Heads, HeadsMut, SharedHeads, chunk},
    simd::{LANES, Simd},
};

/// Vectors a task normalises.
const VECTORS: usize = 16;

/// rms_norm(x) * weight * silu(gate) + add, each factor and term where it is given.
#[derive(Clone, Copy)]
pub struct RmsNorm<'a> {
    /// [tokens, heads, dim]; each vector is normalised by itself.
    pub x: Heads<'a>,
    /// [dim]
    pub weight: Option<&'a [f32]>,
    /// Added to the mean of the squares.
    pub eps: f32,
    /// As `x`.
    pub gate: Option<Heads<'a>>,
    /// As `x`.
    pub add: Option<Heads<'a>>,
}

/// Computes [`RmsNorm`] into `out`, shaped as `x`.
///
/// # Panics
/// If the shapes do not fit.
pub fn rms_norm(op: &RmsNorm, out: HeadsMut) {
    let shape = [op.x.tokens, op.x.heads, op.x.dim];
    op.x.check("rms_norm");
    for other in [op.gate, op.add].into_iter().flatten() {
        assert_eq!([other.tokens, other.heads, other.dim], shape, "rms_norm: the gate's or the residual's shape");
        other.check("rms_norm: the gate or the residual");
    }
    assert!(op.weight.is_none_or(|weight| weight.len() == op.x.dim), "rms_norm: the weight's length");
    let out = out.share(shape, "rms_norm");
    each_vector(shape, |vector| RmsNormVectors { op, out: &out, vectors: vector });
}

/// Runs the kernel that `make` gives for each range of vectors.
fn each_vector<K: Kernel<Out = ()>>(shape: [usize; 3], make: impl Fn(std::ops::Range<usize>) -> K + Sync) {
    let level = level();
    let vectors = shape[0] * shape[1];
    pool::run_worth(vectors * shape[2], vectors.div_ceil(VECTORS), |task| {
        level.run(make(chunk(task, VECTORS, vectors)));
    });
}

struct RmsNormVectors<'a> {
    op: &'a RmsNorm<'a>,
    out: &'a SharedHeads<'a>,
    vectors: std::ops::Range<usize>,
}

impl Kernel for RmsNormVectors<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let heads = self.op.x.heads;
        for index in self.vectors.clone() {
            let (token, head) = (index / heads, index % heads);
            let x = self.op.x.vector(token, head);
            // SAFETY: each vector is one task's.
            let out = unsafe { self.out.vector(token, head) };
            let mean = sum_of_squares(s, x, 0.0) / x.len() as f32;
            let factor = s.splat(1.0 / (mean + self.op.eps).sqrt());
            let gate = self.op.gate.map(|gate| gate.vector(token, head));
            let add = self.op.add.map(|add| add.vector(token, head));
            for (start, out) in (0..).step_by(LANES).zip(out.chunks_mut(LANES)) {
                let range = start..start + out.len();
                let mut y = s.mul(read(s, &x[range.clone()]), factor);
                if let Some(weight) = self.op.weight {
                    y = s.mul(y, read(s, &weight[range.clone()]));
                }
                if let Some(gate) = gate {
                    let gate = read(s, &gate[range.clone()]);
                    y = s.mul(y, s.mul(gate, math::sigmoid(s, gate)));
                }
                if let Some(add) = add {
                    y = s.add(y, read(s, &add[range]));
                }
                write(s, out, y);
            }
        }
    }
}

/// rms_norm(x) * weight of one vector, to the bits of [`rms_norm`].
#[inline(always)]
pub(super) fn rms_norm_one<S: Simd>(s: S, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let mean = sum_of_squares(s, x, 0.0) / x.len() as f32;
    let factor = s.splat(1.0 / (mean + eps).sqrt());
    for ((x, weight), out) in x.chunks(LANES).zip(weight.chunks(LANES)).zip(out.chunks_mut(LANES)) {
        write(s, out, s.mul(s.mul(read(s, x), factor), read(s, weight)));
    }
}

/// layer_norm(x) * weight + bias.
#[derive(Clone, Copy)]
pub struct LayerNorm<'a> {
    /// [tokens, heads, dim]; each vector is normalised by itself.
    pub x: Heads<'a>,
    /// [dim]
    pub weight: Option<&'a [f32]>,
    /// [dim]
    pub bias: Option<&'a [f32]>,
    /// Added to the variance.
    pub eps: f32,
}

/// Computes [`LayerNorm`] into `out`, shaped as `x`.
///
/// # Panics
/// If the shapes do not fit.
pub fn layer_norm(op: &LayerNorm, out: HeadsMut) {
    let shape = [op.x.tokens, op.x.heads, op.x.dim];
    op.x.check("layer_norm");
    for other in [op.weight, op.bias].into_iter().flatten() {
        assert_eq!(other.len(), op.x.dim, "layer_norm: the weight's or the bias's length");
    }
    let out = out.share(shape, "layer_norm");
    each_vector(shape, |vectors| LayerNormVectors { op, out: &out, vectors });
}

struct LayerNormVectors<'a> {
    op: &'a LayerNorm<'a>,
    out: &'a SharedHeads<'a>,
    vectors: std::ops::Range<usize>,
}

impl Kernel for LayerNormVectors<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let heads = self.op.x.heads;
        for index in self.vectors.clone() {
            let (token, head) = (index / heads, index % heads);
            let x = self.op.x.vector(token, head);
            // SAFETY: each vector is one task's.
            let out = unsafe { self.out.vector(token, head) };
            let mean = sum(s, x) / x.len() as f32;
            let variance = sum_of_squares(s, x, mean) / x.len() as f32;
            let factor = s.splat(1.0 / (variance + self.op.eps).sqrt());
            for (start, out) in (0..).step_by(LANES).zip(out.chunks_mut(LANES)) {
                let range = start..start + out.len();
                let mut y = s.mul(s.sub(read(s, &x[range.clone()]), s.splat(mean)), factor);
                if let Some(weight) = self.op.weight {
                    y = s.mul(y, read(s, &weight[range.clone()]));
                }
                if let Some(bias) = self.op.bias {
                    y = s.add(y, read(s, &bias[range]));
                }
                write(s, out, y);
            }
        }
    }
}

/// Up to 16 values; the quick way where there are 16.
#[inline(always)]
pub(super) fn read<S: Simd>(s: S, x: &[f32]) -> S::F {
    if x.len() >= LANES { s.read(x) } else { s.read_part(x) }
}

/// Up to 16 values; the quick way where there are 16.
#[inline(always)]
pub(super) fn write<S: Simd>(s: S, x: &mut [f32], value: S::F) {
    if x.len() >= LANES { s.write(x, value) } else { s.write_part(x, value) }
}

/// Σ (x - mean)², in four sums of every fourth vector.
#[inline(always)]
fn sum_of_squares<S: Simd>(s: S, x: &[f32], mean: f32) -> f32 {
    let mut sums = [s.zero(); 4];
    let means = s.splat(mean);
    let mut fours = x.chunks_exact(4 * LANES);
    for four in &mut fours {
        for i in 0..4 {
            let x = s.sub(s.read(&four[i * LANES..]), means);
            sums[i] = s.fma(x, x, sums[i]);
        }
    }
    let mut rest = fours.remainder().chunks_exact(LANES);
    for one in &mut rest {
        let x = s.sub(s.read(one), means);
        sums[0] = s.fma(x, x, sums[0]);
    }
    let mut total = s.sum(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])));
    for x in rest.remainder() {
        total += (x - mean) * (x - mean);
    }
    total
}

#[inline(always)]
fn sum<S: Simd>(s: S, x: &[f32]) -> f32 {
    let mut sums = s.zero();
    for x in x.chunks(LANES) {
        sums = s.add(sums, read(s, x));
    }
    s.sum(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{
        level::{levels, with_level},
        testing::{Random, close, same_bits, with_threads},
    };

    fn reference(x: &[f32], mean: f64, eps: f64) -> Vec<f64> {
        let square = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / x.len() as f64;
        x.iter().map(|x| (f64::from(*x) - mean) / (square + eps).sqrt()).collect()
    }

    #[test]
    fn rms_norm_agrees_with_f64() {
        let mut random = Random::new(21);
        for dim in [1, 7, 16, 64, 100, 576, 1003] {
            let (tokens, heads) = (1 + random.below(9), 1 + random.below(5));
            let (token_stride, head_stride) = (heads * (dim + 2) + 3, dim + 2);
            let data = random.vec(tokens * token_stride);
            let x = Heads { data: &data, tokens, heads, dim, token_stride, head_stride };
            let others = random.vec(3 * tokens * heads * dim);
            let (weight, rest) = (&others[..dim], &others[dim..]);
            let gate = Heads::packed(&rest[..tokens * heads * dim], heads, dim);
            let add = Heads::packed(&rest[tokens * heads * dim..][..tokens * heads * dim], heads, dim);
            for (gate, add) in [(None, None), (Some(gate), None), (None, Some(add)), (Some(gate), Some(add))] {
                let op = RmsNorm { x, weight: gate.is_none().then_some(weight), eps: 1e-5, gate, add };
                let mut want = Vec::new();
                for (token, head) in (0..tokens).flat_map(|token| (0..heads).map(move |head| (token, head))) {
                    for (i, y) in reference(x.vector(token, head), 0.0, 1e-5).into_iter().enumerate() {
                        let gate = gate.map_or(1.0, |gate| {
                            let gate = f64::from(gate.vector(token, head)[i]);
                            gate / (1.0 + (-gate).exp())
                        });
                        let weight = op.weight.map_or(1.0, |weight| f64::from(weight[i]));
                        want.push(y * weight * gate + add.map_or(0.0, |add| f64::from(add.vector(token, head)[i])));
                    }
                }
                for level in levels() {
                    let mut out = vec![0.0; want.len()];
                    with_level(level, || rms_norm(&op, HeadsMut::packed(&mut out, heads, dim)));
                    close(&out, &want, 1e-6, &format!("rms_norm of {dim} at {level:?}"));
                }
            }
        }
    }

    #[test]
    fn layer_norm_agrees_with_f64() {
        let mut random = Random::new(22);
        for dim in [5, 32, 250, 768] {
            let data: Vec<f32> = random.vec(6 * dim).iter().map(|x| x + 2.0).collect();
            let others = random.vec(2 * dim);
            let (weight, bias) = others.split_at(dim);
            let op = LayerNorm { x: Heads::packed(&data, 2, dim), weight: Some(weight), bias: Some(bias), eps: 1e-6 };
            let mut want = Vec::new();
            for x in data.chunks(dim) {
                let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / dim as f64;
                let normed = reference(x, mean, 1e-6).into_iter().enumerate();
                want.extend(normed.map(|(i, y)| y * f64::from(weight[i]) + f64::from(bias[i])));
            }
            for level in levels() {
                let mut out = vec![0.0; want.len()];
                with_level(level, || layer_norm(&op, HeadsMut::packed(&mut out, 2, dim)));
                close(&out, &want, 2e-6, &format!("layer_norm of {dim} at {level:?}"));
            }
        }
    }

    #[test]
    fn threads_do_not_change_the_bits() {
        let data = Random::new(23).vec(300 * 576);
        let op = RmsNorm { x: Heads::packed(&data, 1, 576), weight: None, eps: 1e-6, gate: None, add: None };
        let run = |threads| {
            let mut out = vec![0.0; data.len()];
            with_threads(threads, || rms_norm(&op, HeadsMut::packed(&mut out, 1, 576)));
            out
        };
        same_bits(&run(1), &run(3), "rms_norm");
    }
}
