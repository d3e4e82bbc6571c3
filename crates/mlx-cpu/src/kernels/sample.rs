//! Choosing tokens from logits without sorting a vocabulary: tokens are counted into buckets by their distance from the
//! largest logit, and only the buckets in which a limit or the chosen token falls are sorted.

use super::{
    adjust::{Adjusted, Adjustment},
    level::{Kernel, Level, level},
    math,
    norm::{read, write},
    pool,
    rows::{Rows, RowsMut},
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// How one row's token is chosen.
///
/// Tokens are ranked by logit, the lower id first among equals. Kept are the first `top_k`; of these, renormalised, the
/// shortest run of first ones whose mass reaches `top_p`; of all of these, those with at least `min_p` of the first
/// one's probability; and always the first one. The choice is the first kept token at which the mass so far exceeds
/// `u` times that of all kept ones. A logit that is not a number counts as -infinity.
///
/// The order is that of transformers' and mlx-lm's warpers. A further limit belongs where its definition puts it: before
/// the others if it looks at all logits. This is the only definition; whoever draws with other means (mettle's sampler
/// for Metal and CUDA) is tested against it.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// What logits are divided by; 0 or less takes the first token.
    pub temperature: f32,
    /// 0 keeps all.
    pub top_k: usize,
    /// 1 or more keeps all.
    pub top_p: f32,
    /// 0 keeps all.
    pub min_p: f32,
    /// Evenly from [0, 1).
    pub u: f32,
}

impl Choice {
    /// The most likely of all tokens: nothing is set.
    pub const GREEDY: Choice = Choice { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, u: 0.0 };
}

/// How one row's token is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    pub choice: Choice,
    /// Changes to single logits before anything else, each id at most once. Ids outside of the vocabulary are left out.
    pub adjustments: &'a [Adjustment],
    /// The tokens to choose from, a bit each; `None` is all.
    pub allowed: Option<&'a [u32]>,
}

impl From<Choice> for Draw<'_> {
    fn from(choice: Choice) -> Self {
        Draw { choice, adjustments: &[], allowed: None }
    }
}

/// Buckets for each unit that a scaled logit lies below the largest.
const RESOLUTION: f32 = 32.0;
/// Buckets; the last one takes all whose weight is too small to be represented.
const BUCKETS: usize = 2816;

/// Draws a token for each row of `logits`, [rows, vocabulary]; 0 where none is allowed.
///
/// # Panics
/// If the shapes do not fit or the vocabulary is empty.
pub fn sample(logits: Rows, draws: &[Draw], out: &mut [u32]) {
    logits.check("logits");
    assert!(logits.count == draws.len() && logits.count == out.len(), "a choice and a token for each row of logits");
    assert!(logits.width > 0, "an empty vocabulary");
    let tokens = RowsMut::packed(out, 1).share(logits.count, 1, "tokens");
    let level = level();
    pool::run_worth(4 * logits.count * logits.width, logits.count, |row| {
        let Draw { choice, adjustments, allowed } = &draws[row];
        let adjusted = Adjusted::of(logits.row(row), adjustments, *allowed);
        let token = if adjusted.logits.is_empty() { 0 } else { adjusted.id(one(level, &adjusted.logits, choice)) };
        // SAFETY: each row is one task's.
        unsafe { tokens.row(row) }.copy_from_slice(&[token]);
    });
}

fn one(level: Level, logits: &[f32], choice: &Choice) -> u32 {
    let (max, first) = level.run(Largest(logits));
    let greedy = choice.temperature.is_nan() || choice.temperature <= 0.0 || choice.top_k == 1;
    if greedy || max.is_infinite() {
        return first;
    }
    let mut ranked = Ranked::new(level, logits, max, choice.temperature);
    let mut kept = ranked.all();
    if choice.top_k > 0 {
        kept = kept.min(ranked.first(choice.top_k));
    }
    if choice.top_p < 1.0 {
        let mass = f64::from(choice.top_p) * ranked.mass(kept);
        kept = kept.min(ranked.reaching(mass));
    }
    if choice.min_p > 0.0 {
        kept = kept.min(ranked.at_least(choice.min_p));
    }
    kept = kept.max(ranked.first(1));
    let target = f64::from(choice.u) * ranked.mass(kept);
    ranked.exceeding(target, kept).unwrap_or(first)
}

/// The largest logit and the lowest id that has it.
struct Largest<'a>(&'a [f32]);

impl Kernel for Largest<'_> {
    type Out = (f32, u32);

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, u32) {
        let largest = largest(s, self.0);
        // Blocks without it are passed over with vectors.
        let mut blocks = self.0.chunks(4 * LANES);
        let holds = |block: &[f32]| block.iter().fold(false, |found, logit| found | (*logit == largest));
        let block = blocks.position(holds).unwrap_or(0) * 4 * LANES;
        let found = self.0[block..].iter().position(|logit| *logit == largest).map(|index| block + index);
        let first = found.filter(|_| largest > f32::NEG_INFINITY).unwrap_or(0);
        (largest, first as u32)
    }
}

/// The largest logit that is a number; -infinity where there is none.
#[inline(always)]
pub(super) fn largest<S: Simd>(s: S, logits: &[f32]) -> f32 {
    let lowest = s.splat(f32::NEG_INFINITY);
    let mut max = [lowest; 4];
    let mut chunks = logits.chunks_exact(4 * LANES);
    for chunk in &mut chunks {
        for i in 0..4 {
            max[i] = s.max(s.read(&chunk[i * LANES..]), max[i]);
        }
    }
    let mut largest = s.largest(s.max(s.max(max[0], max[1]), s.max(max[2], max[3])));
    for logit in chunks.remainder() {
        largest = if *logit > largest { *logit } else { largest };
    }
    largest
}

/// A run of first tokens in rank order: all of the buckets before `bucket` and the first `count` of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    bucket: usize,
    count: usize,
}

/// Tokens in buckets by rank; within a bucket they are ranked when it is looked into.
struct Ranked<'a> {
    level: Level,
    logits: &'a [f32],
    /// e^(scaled logit - scaled largest)
    weights: Scratch<f32>,
    /// [`mark`] of each token's bucket.
    marks: Scratch<f32>,
    counts: Vec<u32>,
    masses: Vec<f64>,
    /// The buckets looked into, their tokens ranked.
    sorted: Vec<(usize, Vec<u32>)>,
}

/// A bucket's number in the low bits of a float.
#[inline(always)]
fn mark(bucket: usize) -> f32 {
    MARK + bucket as f32
}

/// 2^23: what is added to it is rounded to an integer.
const MARK: f32 = 8_388_608.0;

impl<'a> Ranked<'a> {
    fn new(level: Level, logits: &'a [f32], max: f32, temperature: f32) -> Self {
        let mut weights = Scratch::<f32>::new(logits.len());
        let mut marks = Scratch::<f32>::new(logits.len());
        let inverse = 1.0 / temperature.clamp(1e-30, 1e30);
        level.run(Weigh { logits, max, inverse, weights: &mut weights, marks: &mut marks });
        // Two of each, so that neighbours in one bucket need not wait for each other.
        let mut counts = [vec![0u32; BUCKETS], vec![0u32; BUCKETS]];
        let mut masses = [vec![0.0; BUCKETS], vec![0.0; BUCKETS]];
        let mut count = |turn: usize, mark: f32, weight: f32| {
            let bucket = (mark.to_bits() - MARK.to_bits()) as usize;
            counts[turn][bucket] += 1;
            masses[turn][bucket] += f64::from(weight);
        };
        for (marks, weights) in marks.chunks(2).zip(weights.chunks(2)) {
            count(0, marks[0], weights[0]);
            if let ([_, mark], [_, weight]) = (marks, weights) {
                count(1, *mark, *weight);
            }
        }
        let [mut total, other] = counts;
        total.iter_mut().zip(other).for_each(|(total, other)| *total += other);
        let [mut mass, other] = masses;
        mass.iter_mut().zip(other).for_each(|(mass, other)| *mass += other);
        Ranked { level, logits, weights, marks, counts: total, masses: mass, sorted: Vec::new() }
    }

    /// The tokens of a bucket in rank order.
    fn members(&mut self, bucket: usize) -> &[u32] {
        let known = self.sorted.iter().position(|(index, _)| *index == bucket);
        let known = known.unwrap_or_else(|| {
            let mut tokens = Vec::with_capacity(self.counts[bucket] as usize);
            self.level.run(Members { marks: &self.marks, mark: mark(bucket), tokens: &mut tokens });
            let logits = self.logits;
            // What is not a number ranks with -infinity.
            let key = |token: &u32| Some(logits[*token as usize]).filter(|x| !x.is_nan()).unwrap_or(f32::NEG_INFINITY);
            tokens.sort_unstable_by(|a, b| key(b).total_cmp(&key(a)).then(a.cmp(b)));
            self.sorted.push((bucket, tokens));
            self.sorted.len() - 1
        });
        &self.sorted[known].1
    }

    /// The weights of a bucket's tokens in rank order.
    fn ranked_weights(&mut self, bucket: usize) -> Vec<f64> {
        let tokens = self.members(bucket).to_vec();
        tokens.iter().map(|token| f64::from(self.weights[*token as usize])).collect()
    }

    fn all(&self) -> Prefix {
        Prefix { bucket: BUCKETS, count: 0 }
    }

    /// The first `count` tokens.
    fn first(&self, count: usize) -> Prefix {
        let mut before = 0;
        for bucket in 0..BUCKETS {
            let within = self.counts[bucket] as usize;
            if before + within >= count {
                return Prefix { bucket, count: count - before };
            }
            before += within;
        }
        self.all()
    }

    /// The total weight of a prefix.
    fn mass(&mut self, prefix: Prefix) -> f64 {
        let before: f64 = self.masses[..prefix.bucket].iter().sum();
        let within = match prefix.count {
            0 => 0.0,
            count => self.ranked_weights(prefix.bucket)[..count].iter().sum(),
        };
        before + within
    }

    /// The shortest prefix whose weight is at least `mass`.
    fn reaching(&mut self, mass: f64) -> Prefix {
        let mut before = 0.0;
        for bucket in 0..BUCKETS {
            if before + self.masses[bucket] >= mass && self.counts[bucket] > 0 {
                let mut sum = before;
                let weights = self.ranked_weights(bucket);
                let reached = weights.iter().position(|weight| {
                    sum += weight;
                    sum >= mass
                });
                return Prefix { bucket, count: reached.map_or(weights.len(), |index| index + 1) };
            }
            before += self.masses[bucket];
        }
        self.all()
    }

    /// The prefix of tokens with at least `share` of the first one's weight.
    fn at_least(&mut self, share: f32) -> Prefix {
        // One bucket early: the logarithm and the distances are rounded.
        let begin = ((-share.min(1.0).ln() * RESOLUTION) as usize).saturating_sub(1);
        for bucket in begin..BUCKETS {
            let below = self.ranked_weights(bucket).iter().position(|weight| *weight < f64::from(share));
            if let Some(count) = below {
                return Prefix { bucket, count };
            }
        }
        self.all()
    }

    /// The first token of `kept` at which the weight so far exceeds `mass`; the last one with any weight if rounding
    /// leaves none.
    fn exceeding(&mut self, mass: f64, kept: Prefix) -> Option<u32> {
        let mut before = 0.0;
        let mut last = None;
        for bucket in 0..BUCKETS.min(kept.bucket + 1) {
            let count = if bucket == kept.bucket { kept.count } else { self.counts[bucket] as usize };
            if count == 0 || self.masses[bucket] == 0.0 {
                continue;
            }
            last = Some((bucket, count));
            if before + self.masses[bucket] > mass {
                let mut sum = before;
                let chosen = self.ranked_weights(bucket)[..count].iter().position(|weight| {
                    sum += weight;
                    sum > mass
                });
                if let Some(index) = chosen {
                    return Some(self.members(bucket)[index]);
                }
            }
            before += self.masses[bucket];
        }
        last.map(|(bucket, count)| self.members(bucket)[count - 1])
    }
}

struct Weigh<'a> {
    logits: &'a [f32],
    max: f32,
    /// 1 / temperature
    inverse: f32,
    weights: &'a mut [f32],
    marks: &'a mut [f32],
}

impl Kernel for Weigh<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let last = s.splat((BUCKETS - 1) as f32);
        let chunks = self.weights.chunks_mut(LANES).zip(self.marks.chunks_mut(LANES));
        for (logits, (weights, marks)) in self.logits.chunks(LANES).zip(chunks) {
            let logits = s.max(read(s, logits), s.splat(f32::NEG_INFINITY));
            let distance = s.mul(s.sub(s.splat(self.max), logits), s.splat(self.inverse));
            write(s, weights, math::exp(s, s.sub(s.zero(), distance)));
            // Every step is monotonic in the logit, so a bucket's tokens all rank before the next one's.
            let bucket = s.mul(distance, s.splat(RESOLUTION));
            let bucket = s.select_lt(bucket, last, bucket, last);
            write(s, marks, s.add(bucket, s.splat(MARK)));
        }
    }
}

/// Finds the tokens with a mark.
struct Members<'a> {
    marks: &'a [f32],
    mark: f32,
    tokens: &'a mut Vec<u32>,
}

impl Kernel for Members<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (zero, one) = (s.zero(), s.splat(1.0));
        let half = s.splat(0.5);
        let target = s.splat(self.mark);
        for (block, marks) in self.marks.chunks(4 * LANES).enumerate() {
            // Most blocks have none, which a sum tells quickly.
            let mut found = zero;
            for marks in marks.chunks(LANES) {
                let off = s.abs(s.sub(read(s, marks), target));
                found = s.add(found, s.select_lt(off, half, one, zero));
            }
            if s.sum(found) > 0.0 {
                let found = marks.iter().enumerate().filter(|(_, mark)| **mark == self.mark);
                self.tokens.extend(found.map(|(i, _)| (block * 4 * LANES + i) as u32));
            }
        }
    }
}

#[cfg(test)]
mod tests;
