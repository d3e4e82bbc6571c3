//! Rotary position embedding (Su et al. 2021, arXiv 2104.09864), over all or the first values of a head.

use super::{
    level::{Kernel, level},
    math, pool,
    rows::{Heads, HeadsMut, SharedHeads, chunk},
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// Tokens a task rotates.
const TOKENS: usize = 4;

/// Which values of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Value i with value i + dims / 2.
    Halves,
    /// Value 2 i with value 2 i + 1.
    Neighbours,
}

/// A rotation of pair i of a head by positions[token] * inv_freq[i].
#[derive(Clone, Copy)]
pub struct Rope<'a> {
    pub x: Heads<'a>,
    /// [tokens]
    pub positions: &'a [i32],
    /// [dims / 2], for the first dims values of a head; the others are copied.
    pub inv_freq: &'a [f32],
    pub pairing: Pairing,
    /// What rotated values are multiplied by (yarn's attention factor; else 1).
    pub scale: f32,
}

/// Computes [`Rope`] into `out`, shaped as `x`.
///
/// # Panics
/// If the shapes do not fit.
pub fn rope(op: &Rope, out: HeadsMut) {
    let x = op.x;
    x.check("rope");
    assert_eq!(op.positions.len(), x.tokens, "rope: positions of tokens");
    assert!(2 * op.inv_freq.len() <= x.dim, "rope: more rotated values than a head has");
    let out = out.share([x.tokens, x.heads, x.dim], "rope");
    let level = level();
    let work = x.tokens * (x.heads * x.dim + 16 * op.inv_freq.len());
    pool::run_worth(work, x.tokens.div_ceil(TOKENS), |task| {
        level.run(Tokens { op, out: &out, tokens: chunk(task, TOKENS, x.tokens) });
    });
}

struct Tokens<'a> {
    op: &'a Rope<'a>,
    out: &'a SharedHeads<'a>,
    tokens: std::ops::Range<usize>,
}

impl Kernel for Tokens<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let half = self.op.inv_freq.len();
        let padded = half.next_multiple_of(LANES);
        let mut table = Scratch::<f32>::new(2 * padded);
        let (sin, cos) = table.split_at_mut(padded);
        for token in self.tokens.clone() {
            angles(self.op, token, sin, cos);
            for head in 0..self.op.x.heads {
                let x = self.op.x.vector(token, head);
                // SAFETY: each token is one task's.
                let out = unsafe { self.out.vector(token, head) };
                match self.op.pairing {
                    Pairing::Halves => halves(s, x, &sin[..half], &cos[..half], out),
                    Pairing::Neighbours => neighbours(x, &sin[..half], &cos[..half], out),
                }
                out[2 * half..].copy_from_slice(&x[2 * half..]);
            }
        }
    }
}

/// The scaled sines and cosines of a token's angles; `sin` and `cos` hold whole vectors.
#[inline(always)]
fn angles(op: &Rope, token: usize, sin: &mut [f32], cos: &mut [f32]) {
    let position = op.positions[token] as f32;
    let (sin, _) = sin.as_chunks_mut::<LANES>();
    let (cos, _) = cos.as_chunks_mut::<LANES>();
    for (freqs, (sin, cos)) in op.inv_freq.chunks(LANES).zip(sin.iter_mut().zip(cos)) {
        let mut thetas = [0.0; LANES];
        for (theta, freq) in thetas.iter_mut().zip(freqs) {
            *theta = position * freq;
        }
        math::sin_cos(&thetas, sin, cos);
        for i in 0..LANES {
            sin[i] *= op.scale;
            cos[i] *= op.scale;
        }
    }
}

#[inline(always)]
fn halves<S: Simd>(s: S, x: &[f32], sin: &[f32], cos: &[f32], out: &mut [f32]) {
    let half = sin.len();
    let (out_low, out_high) = out.split_at_mut(half);
    let whole = half / LANES * LANES;
    for i in (0..whole).step_by(LANES) {
        let (a, b) = (s.read(&x[i..]), s.read(&x[half + i..]));
        let (sin, cos) = (s.read(&sin[i..]), s.read(&cos[i..]));
        s.write(&mut out_low[i..], s.sub(s.mul(a, cos), s.mul(b, sin)));
        s.write(&mut out_high[i..], s.add(s.mul(a, sin), s.mul(b, cos)));
    }
    for i in whole..half {
        out_low[i] = x[i] * cos[i] - x[half + i] * sin[i];
        out_high[i] = x[i] * sin[i] + x[half + i] * cos[i];
    }
}

#[inline(always)]
fn neighbours(x: &[f32], sin: &[f32], cos: &[f32], out: &mut [f32]) {
    let (x, _) = x.as_chunks::<2>();
    let (out, _) = out.as_chunks_mut::<2>();
    for ((out, x), (sin, cos)) in out.iter_mut().zip(x).zip(sin.iter().zip(cos)) {
        *out = [x[0] * cos - x[1] * sin, x[0] * sin + x[1] * cos];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{
        level::{levels, with_level},
        testing::{Random, close},
    };

    #[test]
    fn rotations_agree_with_f64() {
        let mut random = Random::new(41);
        for (dim, dims) in [(64, 64), (128, 128), (80, 20), (96, 90), (256, 64), (10, 6)] {
            let (tokens, heads) = (1 + random.below(20), 1 + random.below(6));
            let (head_stride, token_stride) = (dim + 1, heads * (dim + 1) + 5);
            let data = random.vec(tokens * token_stride);
            let x = Heads { data: &data, tokens, heads, dim, token_stride, head_stride };
            let positions: Vec<i32> = (0..tokens).map(|_| random.below(100_000) as i32).collect();
            let inv_freq: Vec<f32> = (0..dims / 2).map(|i| 10_000f32.powf(-2.0 * i as f32 / dims as f32)).collect();
            for pairing in [Pairing::Halves, Pairing::Neighbours] {
                let op = Rope { x, positions: &positions, inv_freq: &inv_freq, pairing, scale: 1.2 };
                let mut want = Vec::new();
                for (token, head) in (0..tokens).flat_map(|token| (0..heads).map(move |head| (token, head))) {
                    let x = x.vector(token, head);
                    let mut y: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
                    for i in 0..dims / 2 {
                        let (a, b) = match pairing {
                            Pairing::Halves => (i, i + dims / 2),
                            Pairing::Neighbours => (2 * i, 2 * i + 1),
                        };
                        let (sin, cos) = f64::from(positions[token] as f32 * inv_freq[i]).sin_cos();
                        y[a] = 1.2 * (f64::from(x[a]) * cos - f64::from(x[b]) * sin);
                        y[b] = 1.2 * (f64::from(x[a]) * sin + f64::from(x[b]) * cos);
                    }
                    want.extend(y);
                }
                for level in levels() {
                    let mut out = vec![0.0; want.len()];
                    with_level(level, || rope(&op, HeadsMut::packed(&mut out, heads, dim)));
                    close(&out, &want, 5e-7, &format!("{pairing:?} of {dims} of {dim} at {level:?}"));
                }
            }
        }
    }
}
