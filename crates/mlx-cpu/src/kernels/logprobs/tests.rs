//! Log probabilities beside the definition: a full sort in f64.

use super::*;
use crate::kernels::{
    level::{levels, with_level},
    testing::Random,
};

type Told = (f32, Vec<(u32, f32)>);

fn told(logits: &[f32], vocabulary: usize, drawn: &[u32], asked: &[Asked]) -> Vec<Told> {
    let widest = width(asked.iter().map(|asked| asked.top).max().unwrap_or(0));
    let mut out = vec![7; widest * asked.len()];
    logprobs(Rows::packed(logits, vocabulary), drawn, asked, RowsMut::packed(&mut out, widest));
    let row = |(row, asked): (&[u32], &Asked)| {
        let top = row[1..].chunks(2).take(asked.top.min(vocabulary));
        (f32::from_bits(row[0]), top.map(|pair| (pair[0], f32::from_bits(pair[1]))).collect())
    };
    out.chunks(widest).zip(asked).map(row).collect()
}

fn reference(logits: &[f32], drawn: u32, top: usize) -> (f64, Vec<(u32, f64)>) {
    let sum: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
    let logprob = |id: u32| f64::from(logits[id as usize]) - sum.ln();
    let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
    ids.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b)));
    (logprob(drawn), ids.into_iter().take(top).map(|id| (id, logprob(id))).collect())
}

#[test]
fn they_are_the_definitions_at_every_level() {
    for level in levels() {
        with_level(level, || {
            let mut random = Random::new(3);
            for round in 0..200 {
                // Few values, so that many are equal.
                let values = [5, 1000][round % 2];
                let vocabulary = 1 + random.below([40, 3000][round % 2]);
                let logit = |random: &mut Random| random.below(values) as f32 * 20.0 / values as f32;
                let rows = 1 + random.below(3);
                let logits: Vec<f32> = (0..rows * vocabulary).map(|_| logit(&mut random)).collect();
                let drawn: Vec<u32> = (0..rows).map(|_| random.below(vocabulary) as u32).collect();
                let asked: Vec<Asked> = (0..rows).map(|row| Asked { row, top: random.below(21) }).collect();
                for (ours, asked) in told(&logits, vocabulary, &drawn, &asked).into_iter().zip(&asked) {
                    let row = &logits[asked.row * vocabulary..][..vocabulary];
                    let (logprob, top) = reference(row, drawn[asked.row], asked.top);
                    assert!((f64::from(ours.0) - logprob).abs() < 1e-5, "{level:?}: {} is {logprob}", ours.0);
                    assert_eq!(ours.1.len(), top.len());
                    for ((id, ours), (expected, logprob)) in ours.1.iter().zip(top) {
                        assert_eq!(*id, expected, "{level:?} {row:?}");
                        assert!((f64::from(*ours) - logprob).abs() < 1e-5);
                    }
                }
            }
        });
    }
}

#[test]
fn ends_of_the_range() {
    let one = |logits: &[f32], drawn, top| told(logits, logits.len(), &[drawn], &[Asked { row: 0, top }]).remove(0);
    let (drawn, top) = one(&[f32::NAN, 0.0, f32::NEG_INFINITY], 1, 3);
    assert_eq!((drawn, &top[..2]), (0.0, &[(1, 0.0), (2, f32::NEG_INFINITY)][..]));
    assert_eq!(one(&[1e30, -1e30], 1, 1).1, [(0, 0.0)]);
}
