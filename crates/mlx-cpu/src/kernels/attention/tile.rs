//! The softmax of a few rows over one split of positions: scores, exponentials, weighted values.

use super::{Attention, Job, Partial, ROWS, SPLIT};
use crate::kernels::{
    kv, math,
    scratch::Scratch,
    simd::{Kernel, LANES, Simd},
};

const IOTA: [f32; LANES] = [0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.];

/// Numbers from one row of scores to the next: not a power of two, so that rows do not fight for the same cache lines.
const STRIDE: usize = SPLIT + LANES;

/// e^x for one number, by the vectors' rule.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: f32) -> f32 {
    s.largest(math::exp(s, s.splat(x)))
}

/// The job's queries times the scale, [dim, rows].
#[inline(always)]
pub(super) fn scaled_queries(op: &Attention, job: &Job) -> Scratch<f32> {
    let rows = job.rows.len();
    let mut q = Scratch::<f32>::new(rows * op.q.dim);
    for (r, row) in job.rows.clone().enumerate() {
        let (token, head) = job.place(op, row);
        for (q, x) in q[r..].iter_mut().step_by(rows).zip(op.q.vector(token, head)) {
            *q = x * op.scale;
        }
    }
    q
}

/// Computes the softmax of the job's rows over split `split` from scratch.
#[inline(always)]
pub(super) fn softmax<S: Simd>(s: S, op: &Attention, job: &Job, q: &[f32], split: usize, part: &mut Partial) {
    let (begin, end) = job.span(op);
    let first = split * SPLIT;
    // Whole vectors of positions from the split's start on: which lane a position has never changes.
    let begin = begin.max(first) / LANES * LANES;
    let end = end.min(first + SPLIT);
    let mut scores = Scratch::<f32>::new(ROWS * STRIDE);
    let mut decoded = Scratch::<f32>::new(kv::scratch_len(&op.layout));
    for (at, run) in job.runs(op, begin, end) {
        let run = kv::Run { count: run.count.next_multiple_of(LANES), ..run };
        let keys = kv::keys(s, &run, &mut decoded);
        self::scores(s, [op.q.dim, job.rows.len(), run.count], q, keys, &mut scores[at - first..]);
    }
    for r in 0..job.rows.len() {
        let seen = job.range(op, job.rows.start + r);
        let row = &mut scores[r * STRIDE..][begin - first..(end - first).next_multiple_of(LANES)];
        (part.max[r], part.sum[r]) = exponentials(s, op, row, begin, seen);
    }
    part.values.fill(0.0);
    for (at, run) in job.runs(op, begin, end) {
        let rows = kv::values(s, &run, &mut decoded);
        let sizes = [op.layout.wide(), job.rows.len(), run.count];
        values(s, sizes, &scores[at - first..], rows, &mut part.values);
    }
}

/// Masks a row of scores, whose first is position `begin`'s, to the positions seen, and replaces them by
/// e^(score - max); gives max and sum.
#[inline(always)]
fn exponentials<S: Simd>(
    s: S,
    op: &Attention,
    row: &mut [f32],
    begin: usize,
    (from, to): (usize, usize),
) -> (f32, f32) {
    let lowest = s.splat(f32::NEG_INFINITY);
    let iota = s.read(&IOTA);
    let mut max = lowest;
    for (index, scores) in row.chunks_exact_mut(LANES).enumerate() {
        let at = begin + index * LANES;
        let mut score = s.read(scores);
        if let Some(cap) = op.soft_cap {
            score = s.mul(math::tanh(s, s.div(score, s.splat(cap))), s.splat(cap));
        }
        if at < from || at + LANES > to {
            // Relative to the vector, so that small integers are compared.
            let (from, to) = (from.saturating_sub(at).min(LANES), to.saturating_sub(at).min(LANES));
            score = s.select_lt(iota, s.splat(from as f32), lowest, score);
            score = s.select_lt(iota, s.splat(to as f32), score, lowest);
        }
        s.write(scores, score);
        max = s.max(score, max);
    }
    let max = s.largest(max);
    if max == f32::NEG_INFINITY {
        row.fill(0.0);
        return (max, 0.0);
    }
    let mut sum = s.zero();
    for scores in row.chunks_exact_mut(LANES) {
        let weight = math::exp(s, s.sub(s.read(scores), s.splat(max)));
        s.write(scores, weight);
        sum = s.add(sum, weight);
    }
    (max, s.sum(sum))
}

/// Work that is done in tiles of registers: so many rows times so many vectors of sums.
trait Tiles {
    /// Does the rows from `row` on, the vectors that begin at number `at`.
    ///
    /// # Safety
    /// They are within the rows and the numbers that [`each_tile`] is told of.
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&self, s: S, row: usize, at: usize);
}

struct OneTile<'a, T, const R: usize, const V: usize>(&'a T, usize, usize);

impl<T: Tiles, const R: usize, const V: usize> Kernel for OneTile<'_, T, R, V> {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        if R * V > S::SCORE_TILE.0 || V > S::SCORE_TILE.1 {
            unreachable!("no tile is larger");
        }
        let OneTile(tiles, row, at) = self;
        // SAFETY: `each_tile` makes tiles inside of what its caller promises.
        unsafe { tiles.tile::<S, R, V>(s, row, at) };
        R
    }
}

/// Covers `rows` rows of `count` (a multiple of 16) numbers: four vectors at a time for few rows, so that enough sums are
/// under way at once, two for many, so that each vector read serves many.
///
/// # Safety
/// The tiles may do all rows and numbers.
#[inline(always)]
unsafe fn each_tile<S: Simd>(s: S, rows: usize, count: usize, tiles: &impl Tiles) {
    let most = if rows <= S::SCORE_TILE.0 / 4 { 4 } else { 2 }.min(S::SCORE_TILE.1);
    let mut at = 0;
    while at < count {
        let vectors = ((count - at) / LANES).min(most);
        let mut row = 0;
        match vectors {
            4.. => {
                while row < rows {
                    row += rows_of::<S, 4>(s, rows, row, at, tiles);
                }
                at += 4 * LANES;
            }
            2.. => {
                while row < rows {
                    row += rows_of::<S, 2>(s, rows, row, at, tiles);
                }
                at += 2 * LANES;
            }
            _ => {
                while row < rows {
                    row += rows_of::<S, 1>(s, rows, row, at, tiles);
                }
                at += LANES;
            }
        }
    }
}

/// Does as many rows from `row` on as fit registers; gives how many.
#[inline(always)]
fn rows_of<S: Simd, const V: usize>(s: S, rows: usize, row: usize, at: usize, tiles: &impl Tiles) -> usize {
    match (rows - row).min(S::SCORE_TILE.0 / V) {
        12.. => s.call(OneTile::<_, 12, V>(tiles, row, at)),
        8.. => s.call(OneTile::<_, 8, V>(tiles, row, at)),
        6.. => s.call(OneTile::<_, 6, V>(tiles, row, at)),
        4.. => s.call(OneTile::<_, 4, V>(tiles, row, at)),
        3.. => s.call(OneTile::<_, 3, V>(tiles, row, at)),
        2.. => s.call(OneTile::<_, 2, V>(tiles, row, at)),
        _ => s.call(OneTile::<_, 1, V>(tiles, row, at)),
    }
}

/// Scores of all rows with the keys of `count` (a multiple of 16) positions; rows of `scores` lie STRIDE apart.
#[inline(always)]
fn scores<S: Simd>(s: S, [dim, rows, count]: [usize; 3], q: &[f32], keys: kv::Rows, scores: &mut [f32]) {
    assert!(q.len() >= rows * dim && scores.len() >= (rows - 1) * STRIDE + count);
    // SAFETY: the assertion; `keys` are dim rows of `count`.
    unsafe { each_tile(s, rows, count, &ScoreTiles { q: q.as_ptr(), dim, rows, keys, to: scores.as_mut_ptr() }) }
}

struct ScoreTiles {
    /// [dim, rows]
    q: *const f32,
    dim: usize,
    rows: usize,
    /// [dim] rows
    keys: kv::Rows,
    to: *mut f32,
}

impl Tiles for ScoreTiles {
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&self, s: S, row: usize, at: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let (mut q, mut keys) = (self.q.add(row), self.keys.from.add(at));
            let mut sums = [[s.zero(); V]; R];
            for _ in 0..self.dim {
                let mut k = [s.zero(); V];
                for v in 0..V {
                    k[v] = s.load(keys.add(v * LANES));
                }
                for r in 0..R {
                    let q = s.splat(*q.add(r));
                    for v in 0..V {
                        sums[r][v] = s.fma(k[v], q, sums[r][v]);
                    }
                }
                (q, keys) = (q.wrapping_add(self.rows), keys.wrapping_add(self.keys.stride));
            }
            for r in 0..R {
                for v in 0..V {
                    s.store(self.to.add((row + r) * STRIDE + at + v * LANES), sums[r][v]);
                }
            }
        }
    }
}

/// Adds the weighted values of `count` positions to all rows of `to`, [rows, wide]; rows of weights lie STRIDE apart.
#[inline(always)]
fn values<S: Simd>(s: S, [wide, rows, count]: [usize; 3], weights: &[f32], values: kv::Rows, to: &mut [f32]) {
    assert!(weights.len() >= (rows - 1) * STRIDE + count && to.len() >= rows * wide);
    let tiles = ValueTiles { weights: weights.as_ptr(), values, wide, count, to: to.as_mut_ptr() };
    // SAFETY: the assertion; `values` are `count` rows of `wide`.
    unsafe { each_tile(s, rows, wide, &tiles) }
}

struct ValueTiles {
    weights: *const f32,
    /// [count] rows
    values: kv::Rows,
    wide: usize,
    count: usize,
    to: *mut f32,
}

impl Tiles for ValueTiles {
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&self, s: S, row: usize, at: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let (weights, mut values) = (self.weights.add(row * STRIDE), self.values.from.add(at));
            let to = self.to.add(row * self.wide + at);
            let mut sums = [[s.zero(); V]; R];
            for r in 0..R {
                for v in 0..V {
                    sums[r][v] = s.load(to.add(r * self.wide + v * LANES));
                }
            }
            for position in 0..self.count {
                let mut value = [s.zero(); V];
                for v in 0..V {
                    value[v] = s.load(values.add(v * LANES));
                }
                for r in 0..R {
                    let weight = s.splat(*weights.add(r * STRIDE + position));
                    for v in 0..V {
                        sums[r][v] = s.fma(value[v], weight, sums[r][v]);
                    }
                }
                values = values.wrapping_add(self.values.stride);
            }
            for r in 0..R {
                for v in 0..V {
                    s.store(to.add(r * self.wide + v * LANES), sums[r][v]);
                }
            }
        }
    }
}
