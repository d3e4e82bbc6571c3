//! The softmax of a few rows over one split of positions: scores, exponentials, weighted values.

use super::{Attention, Job, Partial, ROWS, SPLIT};
use crate::kernels::{
    float,
    kv::Page,
    math,
    scratch::Scratch,
    simd::{Kernel, LANES, Simd},
};

const IOTA: [f32; LANES] = [0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.];

/// e^x for one number, by the vectors' rule.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: f32) -> f32 {
    s.largest(math::exp(s, s.splat(x)))
}

/// The job's queries times the scale, [rows, dim].
#[inline(always)]
pub(super) fn scaled_queries(op: &Attention, job: &Job) -> Scratch<f32> {
    let dim = op.q.dim;
    let mut q = Scratch::<f32>::new(job.rows.len() * dim);
    for (row, q) in job.rows.clone().zip(q.chunks_exact_mut(dim)) {
        let (token, head) = job.place(op, row);
        for (q, x) in q.iter_mut().zip(op.q.vector(token, head)) {
            *q = x * op.scale;
        }
    }
    q
}

/// Numbers of a page, as f32.
trait Source: Copy {
    /// # Safety
    /// 16 numbers can be read.
    unsafe fn load<S: Simd>(s: S, from: *const Self) -> S::F;
    fn one(self) -> f32;
}

impl Source for half::f16 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, from: *const Self) -> S::F {
        // SAFETY: the caller's promise; f16 is u16 inside.
        unsafe { s.load_f16(from.cast()) }
    }
    #[inline(always)]
    fn one(self) -> f32 {
        float::f16_to_f32(self.to_bits())
    }
}

impl Source for f32 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, from: *const Self) -> S::F {
        // SAFETY: the caller's promise.
        unsafe { s.load(from) }
    }
    #[inline(always)]
    fn one(self) -> f32 {
        self
    }
}

/// Computes the softmax of the job's rows over split `split` from scratch.
#[inline(always)]
pub(super) fn softmax<S: Simd>(s: S, op: &Attention, job: &Job, q: &[f32], split: usize, part: &mut Partial) {
    let (begin, end) = job.span(op);
    // Whole vectors of positions from the split's start on: which lane a position has never changes.
    let begin = begin.max(split * SPLIT) / LANES * LANES;
    let end = end.min((split + 1) * SPLIT);
    let mut scores = Scratch::<f32>::new(ROWS * SPLIT);
    let mut at = begin;
    while at < end {
        let (page, offset) = (at / job.page, at % job.page);
        let count = (job.page - offset).min(end - at);
        let scores = &mut scores[at - split * SPLIT..];
        match job.sequence.pages[page] {
            Page::F16(page) => self::scores(s, op, job, q, page, offset, count, scores),
            Page::F32(page) => self::scores(s, op, job, q, page, offset, count, scores),
        }
        at += count;
    }
    for r in 0..job.rows.len() {
        let row = &mut scores[r * SPLIT..][..SPLIT];
        let seen = job.range(op, job.rows.start + r);
        let row = &mut row[begin - split * SPLIT..(end - split * SPLIT).next_multiple_of(LANES)];
        (part.max[r], part.sum[r]) = exponentials(s, op, row, begin, seen);
    }
    part.values.fill(0.0);
    let mut at = begin;
    while at < end {
        let (page, offset) = (at / job.page, at % job.page);
        let count = (job.page - offset).min(end - at);
        let weights = &scores[at - split * SPLIT..];
        match job.sequence.pages[page] {
            Page::F16(page) => values(s, op, job, weights, page, offset, count, &mut part.values),
            Page::F32(page) => values(s, op, job, weights, page, offset, count, &mut part.values),
        }
        at += count;
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

/// Runs `$tile` on `$rows` rows from 0 on, 6, 4, 3, 2 or 1 at a time, as far as the level has registers.
macro_rules! row_tiles {
    ($simd:ident: $s:ty, $rows:expr, $vectors:literal, |$row:ident| $tile:ident $fields:tt) => {
        let mut $row = 0;
        while $row < $rows {
            $row += match ($rows - $row).min(<$s>::SCORE_TILE.0) {
                6.. => $simd.call($tile::<T, $vectors, 6> $fields),
                4.. => $simd.call($tile::<T, $vectors, 4> $fields),
                3.. => $simd.call($tile::<T, $vectors, 3> $fields),
                2.. => $simd.call($tile::<T, $vectors, 2> $fields),
                _ => $simd.call($tile::<T, $vectors, 1> $fields),
            };
        }
    };
}

/// Scores of all rows with `count` positions of a page from `offset` on; rows of `scores` lie SPLIT apart.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn scores<S: Simd, T: Source>(
    s: S,
    op: &Attention,
    job: &Job,
    q: &[f32],
    page: &[T],
    offset: usize,
    count: usize,
    scores: &mut [f32],
) {
    let (dim, rows) = (op.q.dim, job.rows.len());
    // [dim, positions]
    let keys = &page[job.kv_head * dim * job.page..][..dim * job.page];
    let count = count.next_multiple_of(LANES);
    assert!(offset + count <= job.page && q.len() >= rows * dim && scores.len() >= (rows - 1) * SPLIT + count);
    let mut at = 0;
    while at < count {
        let keys = keys[offset + at..].as_ptr();
        let (dim, stride) = (op.q.dim, job.page);
        let q = |row: usize| q[row * dim..].as_ptr();
        let to = |row: usize, to: &mut [f32]| to[row * SPLIT + at..].as_mut_ptr();
        // The assertion above: so many vectors of positions, and all rows, are there.
        match ((count - at) / LANES).min(S::SCORE_TILE.1) {
            4.. => {
                row_tiles!(s: S, rows, 4, |row| ScoreTile { q: q(row), keys, dim, stride, to: to(row, scores) });
                at += 4 * LANES;
            }
            2.. => {
                row_tiles!(s: S, rows, 2, |row| ScoreTile { q: q(row), keys, dim, stride, to: to(row, scores) });
                at += 2 * LANES;
            }
            _ => {
                row_tiles!(s: S, rows, 1, |row| ScoreTile { q: q(row), keys, dim, stride, to: to(row, scores) });
                at += LANES;
            }
        }
    }
}

/// Scores of `R` rows with `V` vectors of positions; gives `R`. Whoever makes one sees to it that `q` holds `R` rows of
/// dim values, `keys` dim rows of `V` vectors `stride` apart, and that `to` takes `R` rows of `V` vectors SPLIT apart.
struct ScoreTile<T, const V: usize, const R: usize> {
    q: *const f32,
    keys: *const T,
    dim: usize,
    stride: usize,
    to: *mut f32,
}

impl<T: Source, const V: usize, const R: usize> Kernel for ScoreTile<T, V, R> {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        if R > S::SCORE_TILE.0 || V > S::SCORE_TILE.1 {
            unreachable!("no tile is larger");
        }
        let mut acc = [[s.zero(); V]; R];
        // SAFETY: the maker's promise.
        unsafe {
            for i in 0..self.dim {
                let mut k = [s.zero(); V];
                for v in 0..V {
                    k[v] = T::load(s, self.keys.add(i * self.stride + v * LANES));
                }
                for r in 0..R {
                    let q = s.splat(*self.q.add(r * self.dim + i));
                    for v in 0..V {
                        acc[r][v] = s.fma(k[v], q, acc[r][v]);
                    }
                }
            }
            for r in 0..R {
                for v in 0..V {
                    s.store(self.to.add(r * SPLIT + v * LANES), acc[r][v]);
                }
            }
        }
        R
    }
}

/// Adds `count` positions' values of a page from `offset` on, weighted, to all rows of `to`, [rows, dim].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn values<S: Simd, T: Source>(
    s: S,
    op: &Attention,
    job: &Job,
    weights: &[f32],
    page: &[T],
    offset: usize,
    count: usize,
    to: &mut [f32],
) {
    let (dim, rows) = (op.q.dim, job.rows.len());
    // [positions, dim]
    let start = (op.kv_heads + job.kv_head) * dim * job.page + offset * dim;
    let from = &page[start..start + count * dim];
    assert!(weights.len() >= (rows - 1) * SPLIT + count && to.len() >= rows * dim);
    let mut at = 0;
    while at < dim {
        let values = from[at..].as_ptr();
        let w = |row: usize| weights[row * SPLIT..].as_ptr();
        let out = |row: usize, to: &mut [f32]| to[row * dim + at..].as_mut_ptr();
        // The assertion above: `count` values and weights, and all rows of results, are there.
        match ((dim - at) / LANES).min(S::SCORE_TILE.1) {
            4.. => {
                row_tiles!(s: S, rows, 4, |row| ValueTile { weights: w(row), values, dim, count, to: out(row, to) });
                at += 4 * LANES;
            }
            2.. => {
                row_tiles!(s: S, rows, 2, |row| ValueTile { weights: w(row), values, dim, count, to: out(row, to) });
                at += 2 * LANES;
            }
            1 => {
                row_tiles!(s: S, rows, 1, |row| ValueTile { weights: w(row), values, dim, count, to: out(row, to) });
                at += LANES;
            }
            _ => {
                for row in 0..rows {
                    let to = &mut to[row * dim + at..(row + 1) * dim];
                    for (weight, value) in weights[row * SPLIT..][..count].iter().zip(from.chunks_exact(dim)) {
                        for (to, value) in to.iter_mut().zip(&value[at..]) {
                            *to += weight * value.one();
                        }
                    }
                }
                at = dim;
            }
        }
    }
}

/// Adds `count` weighted values of `V` vectors each to `R` rows of `to`; gives `R`. Whoever makes one sees to it that
/// `weights` holds `R` rows, SPLIT apart, of `count` numbers, `values` as many rows of dim numbers, and `to` `R` rows,
/// dim apart, of `V` vectors.
struct ValueTile<T, const V: usize, const R: usize> {
    weights: *const f32,
    values: *const T,
    dim: usize,
    count: usize,
    to: *mut f32,
}

impl<T: Source, const V: usize, const R: usize> Kernel for ValueTile<T, V, R> {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        if R > S::SCORE_TILE.0 || V > S::SCORE_TILE.1 {
            unreachable!("no tile is larger");
        }
        // SAFETY: the maker's promise.
        unsafe {
            let mut acc = [[s.zero(); V]; R];
            for r in 0..R {
                for v in 0..V {
                    acc[r][v] = s.load(self.to.add(r * self.dim + v * LANES));
                }
            }
            for position in 0..self.count {
                let mut value = [s.zero(); V];
                for v in 0..V {
                    value[v] = T::load(s, self.values.add(position * self.dim + v * LANES));
                }
                for r in 0..R {
                    let weight = s.splat(*self.weights.add(r * SPLIT + position));
                    for v in 0..V {
                        acc[r][v] = s.fma(value[v], weight, acc[r][v]);
                    }
                }
            }
            for r in 0..R {
                for v in 0..V {
                    s.store(self.to.add(r * self.dim + v * LANES), acc[r][v]);
                }
            }
        }
        R
    }
}
