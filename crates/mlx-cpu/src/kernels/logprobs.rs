//! How likely tokens are by a model's own distribution: log softmax of one token and of the most likely ones, in one
//! pass for each of largest, sum and ranking.

use super::{
    level::{Kernel, Level, level},
    math, pool,
    rows::{Rows, RowsMut},
    sample::largest,
    simd::{LANES, Simd},
};

/// What is asked of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The row of the logits.
    pub row: usize,
    /// How many of the most likely tokens to tell.
    pub top: usize,
}

/// Values of an output row: the log probability of the drawn token, then id and log probability of `top` others.
pub const fn width(top: usize) -> usize {
    1 + 2 * top
}

/// Logits that are summed in f32 before they are added up in f64: a vocabulary of small shares must not be lost.
const BLOCK: usize = 64 * LANES;

/// For each of `asked`, the natural logarithm of the probability of the row's token in `drawn` and of the most likely
/// ones, most likely first, the lower id first among equals. Numbers are written as their bits beside the ids. What a
/// row has no tokens for stays 0. What is not a number counts as -infinity.
///
/// # Panics
/// If the shapes do not fit, or a drawn token has no logit.
pub fn logprobs(logits: Rows, drawn: &[u32], asked: &[Asked], out: RowsMut<u32>) {
    logits.check("logits");
    assert_eq!(logits.count, drawn.len(), "a drawn token for each row of logits");
    let width = out.width;
    assert!(asked.iter().all(|asked| self::width(asked.top) <= width), "an output too narrow for what is asked");
    let results = out.share(asked.len(), width, "log probabilities");
    let level = level();
    pool::run_worth(4 * asked.len() * logits.width, asked.len(), |index| {
        let Asked { row, top } = asked[index];
        // SAFETY: each row is one task's.
        let result = unsafe { results.row(index) };
        one(level, logits.row(row), (drawn[row], top), result);
    });
}

fn one(level: Level, logits: &[f32], (drawn, top): (u32, usize), result: &mut [u32]) {
    let (max, sum) = level.run(LargestAndSum(logits));
    let log_sum = sum.ln();
    let number = |id: u32| if logits[id as usize].is_nan() { f32::NEG_INFINITY } else { logits[id as usize] };
    let bits = |id: u32| ((f64::from(number(id) - max) - log_sum) as f32).to_bits();
    result.fill(0);
    result[0] = bits(drawn);
    for (place, id) in result[1..].chunks_exact_mut(2).zip(most_likely(logits, top)) {
        place.copy_from_slice(&[id, bits(id)]);
    }
}

/// The ids of the `count` largest logits. Count is small, so they are kept in a sorted list on the way, and blocks that
/// have none of them are passed over.
fn most_likely(logits: &[f32], count: usize) -> Vec<u32> {
    let mut best: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
    if count == 0 {
        return Vec::new();
    }
    for (first, block) in (0u32..).step_by(LANES).zip(logits.chunks(LANES)) {
        // An equal one with a higher id ranks behind; what is not a number ranks behind everything.
        let last = if best.len() == count { best[count - 1].0 } else { f32::NEG_INFINITY };
        let is_short = best.len() < count;
        if !is_short && !block.iter().fold(false, |found, logit| found | (*logit > last)) {
            continue;
        }
        for (id, &logit) in (first..).zip(block) {
            let is_full = best.len() == count;
            if logit.is_nan() || is_full && logit <= best[count - 1].0 {
                continue;
            }
            let place = best.partition_point(|(known, _)| *known >= logit);
            best.insert(place, (logit, id));
            best.truncate(count);
        }
    }
    best.into_iter().map(|(_, id)| id).collect()
}

/// The largest logit, and Σ e^(logit - largest).
struct LargestAndSum<'a>(&'a [f32]);

impl Kernel for LargestAndSum<'_> {
    type Out = (f32, f64);

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, f64) {
        let largest = largest(s, self.0);
        let max = s.splat(largest);
        let lowest = s.splat(f32::NEG_INFINITY);
        let mut sum = 0.0;
        for block in self.0.chunks(BLOCK) {
            let mut part = s.zero();
            let mut chunks = block.chunks_exact(LANES);
            for chunk in &mut chunks {
                part = s.add(part, math::exp(s, s.sub(s.max(s.read(chunk), lowest), max)));
            }
            sum += f64::from(s.sum(part));
            for logit in chunks.remainder() {
                sum += if logit.is_nan() { 0.0 } else { f64::from(logit - largest).exp() };
            }
        }
        (largest, sum)
    }
}

#[cfg(test)]
mod tests;
