//! The selective state space of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060), one step a token: a scalar decay a head.

use std::ops::Range;

use super::{
    delta::{Recurrent, State},
    level::{Kernel, level},
    math,
    norm::{read, write},
    pool,
    rows::{Heads, HeadsMut, Rows, SharedHeads, chunk},
    simd::{LANES, Simd},
};

/// Rows of a state a task keeps in its cache over all tokens.
const STATE_ROWS: usize = 32;

/// For each token and head: S = e^(dt a) S + (dt x) bᵀ; out = S c + d x.
#[derive(Clone, Copy)]
pub struct Ssm<'a> {
    /// [tokens, heads, dim]
    pub x: Heads<'a>,
    /// [tokens, groups, size]; head h reads group h / (heads / groups).
    pub b: Heads<'a>,
    /// As `b`.
    pub c: Heads<'a>,
    /// [tokens, heads]: the step itself, after bias, softplus and limits.
    pub dt: Rows<'a>,
    /// [heads], negative.
    pub a: &'a [f32],
    /// [heads]
    pub d: Option<&'a [f32]>,
}

/// Computes [`Ssm`] into `out`, shaped as `x`, and carries the states, [heads, dim, size] each, forward.
///
/// # Panics
/// If the shapes do not fit.
pub fn ssm(op: &Ssm, sequences: &mut [Recurrent], out: HeadsMut) {
    let (x, b) = (op.x, op.b);
    let tokens: usize = sequences.iter().map(|sequence| sequence.tokens).sum();
    assert_eq!([op.c.tokens, op.c.heads, op.c.dim], [b.tokens, b.heads, b.dim], "state space: b and c");
    assert!([x.tokens, b.tokens, op.dt.count] == [tokens; 3], "state space: tokens");
    assert!(b.heads > 0 && x.heads.is_multiple_of(b.heads), "{} heads over {} groups", x.heads, b.heads);
    assert!(op.dt.width == x.heads && op.a.len() == x.heads, "state space: a step and a decay for each head");
    assert!(op.d.is_none_or(|d| d.len() == x.heads), "state space: a skip for each head");
    for (heads, what) in [(x, "inputs"), (b, "b"), (op.c, "c")] {
        heads.check(what);
    }
    op.dt.check("steps");
    let out = out.share([tokens, x.heads, x.dim], "state space");
    let parts = x.dim.div_ceil(STATE_ROWS);
    let mut spans = Vec::new();
    let mut first = 0;
    for sequence in sequences {
        assert_eq!(sequence.state.len(), x.heads * x.dim * b.dim, "numbers of a state");
        let tokens = first..first + sequence.tokens;
        first = tokens.end;
        spans.push((tokens, State::of(sequence)));
    }
    let level = level();
    pool::run_worth(3 * tokens * x.heads * x.dim * b.dim, spans.len() * x.heads * parts, |task| {
        let (tokens, state) = &spans[task / (x.heads * parts)];
        let head = task / parts % x.heads;
        let rows = chunk(task % parts, STATE_ROWS, x.dim);
        // SAFETY: these rows of this head are one task's.
        let state = unsafe { state.part((head * x.dim + rows.start) * b.dim, rows.len() * b.dim) };
        level.run(StateRows { op, tokens: tokens.clone(), head, rows, state, out: &out });
    });
}

struct StateRows<'a> {
    op: &'a Ssm<'a>,
    tokens: Range<usize>,
    head: usize,
    rows: Range<usize>,
    /// [rows, size]
    state: &'a mut [f32],
    out: &'a SharedHeads<'a>,
}

impl Kernel for StateRows<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (op, size) = (self.op, self.op.b.dim);
        let group = self.head / (op.x.heads / op.b.heads);
        for token in self.tokens.clone() {
            let (b, c) = (op.b.vector(token, group), op.c.vector(token, group));
            let dt = op.dt.row(token)[self.head];
            let decay = s.largest(math::exp(s, s.splat(dt * op.a[self.head])));
            let skip = op.d.map_or(0.0, |d| d[self.head]);
            let x = &op.x.vector(token, self.head)[self.rows.clone()];
            // SAFETY: these values of this head are one task's, for all tokens.
            let out = unsafe { self.out.part(token, self.head, self.rows.clone()) };
            for ((x, out), state) in x.iter().zip(out).zip(self.state.chunks_exact_mut(size)) {
                *out = step(s, state, b, c, decay, dt * x) + skip * x;
            }
        }
    }
}

/// One token for one row of the state, [size].
#[inline(always)]
fn step<S: Simd>(s: S, state: &mut [f32], b: &[f32], c: &[f32], decay: f32, x: f32) -> f32 {
    let mut sum = s.zero();
    for ((state, b), c) in state.chunks_mut(LANES).zip(b.chunks(LANES)).zip(c.chunks(LANES)) {
        let moved = s.fma(read(s, b), s.splat(x), s.mul(read(s, state), s.splat(decay)));
        write(s, state, moved);
        sum = s.fma(moved, read(s, c), sum);
    }
    s.sum(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{
        level::{levels, with_level},
        testing::{Random, close, same_bits, with_threads},
    };

    struct Case {
        shape: [usize; 4],
        /// x, b, c, dt
        data: [Vec<f32>; 4],
        a: Vec<f32>,
        d: Vec<f32>,
    }

    impl Case {
        fn new(random: &mut Random, tokens: usize, shape: [usize; 4]) -> Case {
            let [heads, groups, dim, size] = shape;
            let mut data = [heads * dim, groups * size, groups * size, heads].map(|width| random.vec(tokens * width));
            data[3].iter_mut().for_each(|dt| *dt = dt.abs() * 0.3);
            let a = random.vec(heads).iter().map(|a| -0.1 - 3.0 * a.abs()).collect();
            Case { shape, data, a, d: random.vec(heads) }
        }

        fn run(&self, tokens: Range<usize>, lengths: &[usize], states: &mut [Vec<f32>]) -> Vec<f32> {
            let [heads, groups, dim, size] = self.shape;
            let part = |index: usize, width: usize| &self.data[index][tokens.start * width..tokens.end * width];
            let op = Ssm {
                x: Heads::packed(part(0, heads * dim), heads, dim),
                b: Heads::packed(part(1, groups * size), groups, size),
                c: Heads::packed(part(2, groups * size), groups, size),
                dt: Rows::packed(part(3, heads), heads),
                a: &self.a,
                d: Some(&self.d),
            };
            let mut out = vec![0.0; tokens.len() * heads * dim];
            let mut sequences: Vec<Recurrent> =
                lengths.iter().zip(states).map(|(tokens, state)| Recurrent { tokens: *tokens, state }).collect();
            ssm(&op, &mut sequences, HeadsMut::packed(&mut out, heads, dim));
            out
        }

        fn reference(&self, tokens: Range<usize>, state: &mut [f64]) -> Vec<f64> {
            let [heads, groups, dim, size] = self.shape;
            let number = |index: usize, at: usize| f64::from(self.data[index][at]);
            let mut out = Vec::new();
            for (token, head) in tokens.flat_map(|token| (0..heads).map(move |head| (token, head))) {
                let at = (token * groups + head / (heads / groups)) * size;
                let dt = number(3, token * heads + head);
                for row in 0..dim {
                    let x = number(0, (token * heads + head) * dim + row);
                    let state = &mut state[(head * dim + row) * size..][..size];
                    let decay = (dt * f64::from(self.a[head])).exp();
                    (0..size).for_each(|i| state[i] = state[i] * decay + dt * x * number(1, at + i));
                    let y: f64 = (0..size).map(|i| state[i] * number(2, at + i)).sum();
                    out.push(y + f64::from(self.d[head]) * x);
                }
            }
            out
        }
    }

    #[test]
    fn the_state_space_agrees_with_f64() {
        let mut random = Random::new(71);
        for shape in [[1, 1, 3, 4], [4, 2, 64, 16], [3, 1, 70, 37], [8, 8, 33, 128]] {
            let case = Case::new(&mut random, 17, shape);
            let [heads, _, dim, size] = shape;
            let start: Vec<Vec<f32>> = (0..2).map(|_| random.vec(heads * dim * size)).collect();
            let mut wanted: Vec<Vec<f64>> = start.iter().map(|s| s.iter().map(|x| f64::from(*x)).collect()).collect();
            let mut want = case.reference(0..6, &mut wanted[0]);
            want.extend(case.reference(6..17, &mut wanted[1]));
            for level in levels() {
                let mut states = start.clone();
                let got = with_level(level, || case.run(0..17, &[6, 11], &mut states));
                close(&got, &want, 3e-6, &format!("{shape:?} at {level:?}"));
                for (got, want) in states.iter().zip(&wanted) {
                    close(got, want, 3e-6, &format!("state of {shape:?} at {level:?}"));
                }
            }
        }
    }

    #[test]
    fn chunks_and_threads_do_not_change_a_state_space() {
        let case = Case::new(&mut Random::new(72), 40, [4, 2, 64, 128]);
        let mut state = vec![vec![0.0; 4 * 64 * 128]];
        let all = with_threads(1, || case.run(0..40, &[40], &mut state));
        let mut chunked = vec![vec![0.0; 4 * 64 * 128]];
        let mut some = Vec::new();
        for (threads, tokens) in [(3, 0..1), (1, 1..2), (8, 2..30), (4, 30..40)] {
            some.extend(with_threads(threads, || case.run(tokens.clone(), &[tokens.len()], &mut chunked)));
        }
        same_bits(&some, &all, "outputs");
        same_bits(&chunked[0], &state[0], "states");
    }
}
