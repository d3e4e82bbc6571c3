//! How likely tokens are by a model's own distribution.

/// The most tokens told beside the drawn one; as OpenAI's API has it.
pub const MOST_TOP: usize = 20;

/// Natural logarithms of probabilities, before penalties, bias, masks and temperature.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprobs {
    /// Of the drawn token.
    pub drawn: f32,
    /// The most likely tokens, most likely first, the lower id first among equals.
    pub top: Vec<(u32, f32)>,
}

impl Logprobs {
    /// Of `drawn` and of the `top` most likely tokens, at most [`MOST_TOP`], by these logits: log softmax. What is not
    /// a number counts as -infinity.
    ///
    /// # Panics
    /// If `drawn` has no logit.
    pub fn of(logits: &[f32], drawn: u32, top: usize) -> Logprobs {
        let number = |logit: f32| if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        let max = logits.iter().fold(f32::NEG_INFINITY, |max, logit| if *logit > max { *logit } else { max });
        // Summed in f64: a vocabulary of small shares must not be lost.
        let sum: f64 = logits.iter().map(|logit| f64::from((number(*logit) - max).exp())).sum();
        let log_sum = sum.ln();
        let logprob = |logit: f32| (f64::from(number(logit) - max) - log_sum) as f32;
        let top = most_likely(logits, top.min(MOST_TOP)).into_iter().map(|id| (id, logprob(logits[id as usize])));
        Logprobs { drawn: logprob(logits[drawn as usize]), top: top.collect() }
    }
}

/// The ids of the `count` largest logits. Count is small, so they are kept in a sorted list on the way.
fn most_likely(logits: &[f32], count: usize) -> Vec<u32> {
    let mut best: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
    for (id, &logit) in (0u32..).zip(logits) {
        // An equal one with a higher id ranks behind; what is not a number ranks behind everything.
        let full = best.len() == count;
        if count == 0 || logit.is_nan() || full && best.last().is_some_and(|(last, _)| logit <= *last) {
            continue;
        }
        let place = best.partition_point(|(known, _)| *known >= logit);
        best.insert(place, (logit, id));
        best.truncate(count);
    }
    best.into_iter().map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by a full sort in f64.
    fn reference(logits: &[f32], drawn: u32, top: usize) -> (f64, Vec<(u32, f64)>) {
        let sum: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
        let logprob = |id: u32| (f64::from(logits[id as usize]).exp() / sum).ln();
        let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
        ids.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b)));
        (logprob(drawn), ids.into_iter().take(top).map(|id| (id, logprob(id))).collect())
    }

    #[test]
    fn they_are_the_definitions() {
        let mut random = 1u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        for round in 0..300 {
            // Few values, so that many are equal.
            let values = [5, 1000][round % 2];
            let logits: Vec<f32> = (0..1 + below(200)).map(|_| below(values) as f32 * 20.0 / values as f32).collect();
            let (drawn, top) = (below(logits.len() as u64) as u32, below(21) as usize);
            let ours = Logprobs::of(&logits, drawn, top);
            let (logprob, tops) = reference(&logits, drawn, top);
            assert!((f64::from(ours.drawn) - logprob).abs() < 1e-5);
            assert_eq!(ours.top.len(), tops.len());
            for ((id, ours), (expected, logprob)) in ours.top.iter().zip(tops) {
                assert_eq!(*id, expected, "{logits:?}");
                assert!((f64::from(*ours) - logprob).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn ends_of_the_range() {
        let of = Logprobs::of(&[f32::NAN, 0.0, f32::NEG_INFINITY], 1, 5);
        assert_eq!((of.drawn, of.top.as_slice()), (0.0, &[(1, 0.0), (2, f32::NEG_INFINITY)][..]));
        assert_eq!(Logprobs::of(&[1e30, -1e30], 1, 1).top, [(0, 0.0)]);
    }
}
