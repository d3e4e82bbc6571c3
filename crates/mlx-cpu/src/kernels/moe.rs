//! A mixture's experts: which of them a token goes to, and how their answers become one. What lies between is
//! [`gather`](super::matmul::gather).

use super::{
    level::{Kernel, level},
    math,
    norm::{read, write},
    pool,
    rows::{Rows, RowsMut, SharedRows},
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// The choice of experts.
#[derive(Clone, Copy)]
pub struct Route<'a> {
    /// [tokens, experts]
    pub logits: Rows<'a>,
    /// Experts a token goes to.
    pub top: usize,
    /// Whether a token's scores are made to sum to one.
    pub normed: bool,
}

/// Writes the `top` likeliest experts of each token, best first and of equals the first, and their probabilities: the
/// softmax over all experts. Both are [tokens, top].
///
/// # Panics
/// If the shapes do not fit or there are fewer experts.
pub fn route(op: &Route, ids: RowsMut<u32>, scores: RowsMut) {
    op.logits.check("the experts' logits");
    assert!(op.top <= op.logits.width, "the best {} of {} experts", op.top, op.logits.width);
    let tokens = op.logits.count;
    let (ids, scores) = (ids.share(tokens, op.top, "experts"), scores.share(tokens, op.top, "scores"));
    let level = level();
    pool::run_worth(8 * tokens * op.logits.width, tokens, |token| {
        // SAFETY: each row is one task's.
        let (ids, scores) = unsafe { (ids.row(token), scores.row(token)) };
        level.run(Choose { logits: op.logits.row(token), normed: op.normed, ids, scores });
    });
}

struct Choose<'a> {
    logits: &'a [f32],
    normed: bool,
    ids: &'a mut [u32],
    scores: &'a mut [f32],
}

impl Kernel for Choose<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Choose { logits, normed, ids, scores } = self;
        let mut weights = Scratch::<f32>::new(logits.len());
        let largest =
            s.splat(logits.iter().fold(f32::NEG_INFINITY, |largest, &x| if x > largest { x } else { largest }));
        for (x, weight) in logits.chunks(LANES).zip(weights.chunks_mut(LANES)) {
            // What is not a number weighs nothing.
            write(s, weight, s.max(math::exp(s, s.sub(read(s, x), largest)), s.zero()));
        }
        let all: f32 = weights.iter().sum();
        for (id, score) in ids.iter_mut().zip(scores.iter_mut()) {
            let better = |best: usize, next: usize| if weights[next] > weights[best] { next } else { best };
            let best = (0..weights.len()).fold(0, better);
            (*id, *score) = (best as u32, weights[best]);
            weights[best] = -1.0;
        }
        let total = if normed { scores.iter().sum() } else { all };
        scores.iter_mut().for_each(|score| *score /= total);
    }
}

/// Computes add + Σ score * answer into `out`, [tokens, n]. `answers` are [tokens * top, n], those of a token one after
/// the other, `scores` [tokens, top], `add` [tokens, n].
///
/// # Panics
/// If the shapes do not fit.
pub fn combine(answers: Rows, scores: Rows, add: Rows, out: RowsMut) {
    answers.check("the experts' answers");
    scores.check("the experts' scores");
    add.check("residual");
    let (tokens, top, n) = (scores.count, scores.width, add.width);
    assert_eq!((answers.count, answers.width), (tokens * top, n), "the experts' answers");
    assert_eq!(add.count, tokens, "the residual's rows");
    let out = out.share(tokens, n, "combined answers");
    let level = level();
    pool::run_worth(4 * answers.count * n, tokens, |token| {
        level.run(Combine { answers, scores: scores.row(token), add: add.row(token), out: &out, token });
    });
}

struct Combine<'a> {
    answers: Rows<'a>,
    scores: &'a [f32],
    add: &'a [f32],
    out: &'a SharedRows<'a>,
    token: usize,
}

impl Kernel for Combine<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let top = self.scores.len();
        // SAFETY: each row is one task's.
        let out = unsafe { self.out.row(self.token) };
        for (start, out) in (0..).step_by(LANES).zip(out.chunks_mut(LANES)) {
            let mut sum = s.zero();
            for (i, score) in self.scores.iter().enumerate() {
                let answer = &self.answers.row(self.token * top + i)[start..][..out.len()];
                sum = s.fma(read(s, answer), s.splat(*score), sum);
            }
            write(s, out, s.add(read(s, &self.add[start..][..out.len()]), sum));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{
        level::{levels, with_level},
        testing::{Random, close, same_bits, with_threads},
    };

    #[test]
    fn tokens_go_to_the_likeliest_experts() {
        let mut random = Random::new(61);
        for normed in [false, true] {
            for (tokens, experts, top) in [(1, 1, 1), (3, 8, 2), (5, 60, 4), (2, 128, 8), (40, 17, 17)] {
                let data: Vec<f32> =
                    random.vec(tokens * (experts + 2)).iter().map(|x| (x * 16.0).round() / 2.0).collect();
                let logits = Rows { data: &data, count: tokens, stride: experts + 2, width: experts };
                for level in levels() {
                    let (mut ids, mut scores) = (vec![0; tokens * top], vec![0.0; tokens * top]);
                    with_level(level, || {
                        let op = Route { logits, top, normed };
                        route(&op, RowsMut::packed(&mut ids, top), RowsMut::packed(&mut scores, top));
                    });
                    for token in 0..tokens {
                        let row = logits.row(token);
                        let mut order: Vec<usize> = (0..experts).collect();
                        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
                        let got: Vec<usize> = ids[token * top..][..top].iter().map(|&id| id as usize).collect();
                        assert_eq!(got, order[..top], "{level:?}: {row:?}");
                        let weight = |id: &usize| f64::from(row[*id]).exp();
                        let among = if normed { &order[..top] } else { &order[..] };
                        let total: f64 = among.iter().map(weight).sum();
                        let want: Vec<f64> = order[..top].iter().map(|id| weight(id) / total).collect();
                        close(&scores[token * top..][..top], &want, 1e-6, &format!("{level:?} {normed}"));
                    }
                }
            }
        }
    }

    #[test]
    fn experts_that_are_no_numbers_are_still_experts() {
        let logits = [f32::NAN; 5];
        let (mut ids, mut scores) = ([9; 2], [0.0; 2]);
        let op = Route { logits: Rows::packed(&logits, 5), top: 2, normed: true };
        route(&op, RowsMut::packed(&mut ids, 2), RowsMut::packed(&mut scores, 2));
        assert!(ids[0] != ids[1] && ids.iter().all(|&id| id < 5), "{ids:?}");
    }

    #[test]
    fn answers_become_one_alone_and_in_a_batch() {
        let mut random = Random::new(62);
        for (tokens, top, n) in [(1, 1, 1), (2, 8, 33), (30, 3, 100)] {
            let (answers, scores) = (random.vec(tokens * top * n), random.vec(tokens * top));
            let add = random.vec(tokens * n);
            let run = |tokens: std::ops::Range<usize>| {
                let mut out = vec![0.0; tokens.len() * n];
                combine(
                    Rows::packed(&answers[tokens.start * top * n..tokens.end * top * n], n),
                    Rows::packed(&scores[tokens.start * top..tokens.end * top], top),
                    Rows::packed(&add[tokens.start * n..tokens.end * n], n),
                    RowsMut::packed(&mut out, n),
                );
                out
            };
            let term = |token: usize, i: usize, at: usize| {
                f64::from(scores[token * top + i]) * f64::from(answers[(token * top + i) * n + at])
            };
            let want: Vec<f64> = (0..tokens * n)
                .map(|at| f64::from(add[at]) + (0..top).map(|i| term(at / n, i, at % n)).sum::<f64>())
                .collect();
            for level in levels() {
                let got = with_level(level, || with_threads(4, || run(0..tokens)));
                close(&got, &want, 1e-6, &format!("{level:?}"));
                let alone: Vec<f32> =
                    (0..tokens).flat_map(|token| with_level(level, || run(token..token + 1))).collect();
                same_bits(&got, &alone, &format!("{level:?}"));
            }
        }
    }
}
