//! Draws beside the definition: a full sort in f64.

use super::*;
use crate::kernels::{
    level::{levels, with_level},
    testing::Random,
};

/// The definition, by a full sort in f64.
fn reference(logits: &[f32], choice: &Choice) -> u32 {
    let key = |id: &usize| if logits[*id].is_nan() { f32::NEG_INFINITY } else { logits[*id] };
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    ids.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.cmp(b)));
    if choice.temperature <= 0.0 || key(&ids[0]) == f32::NEG_INFINITY {
        return ids[0] as u32;
    }
    let max = f64::from(key(&ids[0]));
    let weight = |id: &usize| ((f64::from(key(id)) - max) / f64::from(choice.temperature)).exp();
    if choice.top_k > 0 {
        ids.truncate(choice.top_k);
    }
    let total: f64 = ids.iter().map(weight).sum();
    if choice.top_p < 1.0 {
        let mut sum = 0.0;
        let reached = ids.iter().position(|id| {
            sum += weight(id);
            sum >= total * f64::from(choice.top_p)
        });
        ids.truncate(reached.map_or(ids.len(), |index| index + 1));
    }
    let enough = ids.iter().take_while(|id| weight(id) >= f64::from(choice.min_p)).count();
    ids.truncate(enough.max(1));
    let total: f64 = ids.iter().map(weight).sum();
    let mut sum = 0.0;
    let chosen = ids.iter().find(|id| {
        sum += weight(id);
        sum > total * f64::from(choice.u)
    });
    *chosen.unwrap_or(&ids[0]) as u32
}

fn draw(logits: &[f32], draws: &[Draw]) -> Vec<u32> {
    let mut out = vec![u32::MAX; draws.len()];
    sample(Rows::packed(logits, logits.len() / draws.len()), draws, &mut out);
    out
}

fn run(logits: &[f32], choices: &[Choice]) -> Vec<u32> {
    draw(logits, &choices.iter().map(|choice| Draw::from(*choice)).collect::<Vec<_>>())
}

fn random_choice(random: &mut Random) -> Choice {
    Choice {
        temperature: [0.0, 0.3, 1.0, 2.0][random.below(4)],
        top_k: [0, 0, 1, 5, 40, 10_000][random.below(6)],
        top_p: [1.0, 1.0, 0.9, 0.5, 0.01, 0.0][random.below(6)],
        min_p: [0.0, 0.0, 0.05, 0.5, 1.0][random.below(5)],
        u: (random.f32() + 1.0) / 2.0,
    }
}

#[test]
fn choices_follow_the_definition() {
    let mut random = Random::new(71);
    for round in 0..400 {
        let vocabulary = [1, 2, 15, 100, 1000, 5003][round % 6];
        let spread = [0.1, 1.0, 5.0, 40.0][round % 4];
        let mut logits: Vec<f32> = (0..3 * vocabulary).map(|_| random.f32() * spread).collect();
        if round % 3 == 0 {
            // Many equal ones.
            logits.iter_mut().for_each(|logit| *logit = (*logit * 4.0).round() / 4.0);
        }
        if round % 5 == 0 {
            logits[0] = f32::NAN;
            logits[vocabulary / 2] = f32::NEG_INFINITY;
        }
        let choices: Vec<Choice> = (0..3).map(|_| random_choice(&mut random)).collect();
        let rows = logits.chunks(vocabulary).zip(&choices);
        let want: Vec<u32> = rows.map(|(logits, choice)| reference(logits, choice)).collect();
        for level in levels() {
            assert_eq!(with_level(level, || run(&logits, &choices)), want, "{vocabulary}: {choices:?} {level:?}");
        }
    }
}

#[test]
fn what_is_not_allowed_is_as_if_it_could_not_be() {
    let mut random = Random::new(72);
    for round in 0..400 {
        let vocabulary = [1usize, 31, 64, 100, 1000, 5003][round % 6];
        let logits: Vec<f32> = (0..3 * vocabulary).map(|_| (random.f32() * 40.0).round() / 4.0).collect();
        let choices: Vec<Choice> = (0..3).map(|_| random_choice(&mut random)).collect();
        let mut ids: Vec<u32> = (0..vocabulary as u32 + 3).filter(|_| random.below(4) == 0).collect();
        ids.dedup();
        let adjustments: Vec<Adjustment> =
            ids.iter().map(|&id| Adjustment { id, penalty: 1.0 + random.f32() / 2.0, offset: random.f32() }).collect();
        // The last word may be missing or reach beyond the vocabulary.
        let dense = [0, 1, 2][random.below(3)];
        let allowed: Vec<u32> = (0..vocabulary.div_ceil(32))
            .map(|_| [random.next() as u32, 1 << random.below(32), u32::MAX][dense])
            .skip(usize::from(vocabulary > 64 && round % 7 == 0))
            .collect();
        let allows = |id: usize| allowed.get(id / 32).is_some_and(|word| word >> (id % 32) & 1 == 1);
        let mut masked = logits.clone();
        for row in masked.chunks_mut(vocabulary) {
            for change in adjustments.iter().filter(|change| (change.id as usize) < vocabulary) {
                let old = row[change.id as usize];
                let scaled = if old > 0.0 { old / change.penalty } else { old * change.penalty };
                row[change.id as usize] = scaled + change.offset;
            }
            row.iter_mut().enumerate().filter(|(id, _)| !allows(*id)).for_each(|(_, logit)| *logit = f32::NEG_INFINITY);
        }
        let rows = masked.chunks(vocabulary).zip(&choices);
        let want: Vec<u32> = rows.map(|(logits, choice)| reference(logits, choice)).collect();
        let draws = |allowed| {
            let draw = |choice: &Choice| Draw { choice: *choice, adjustments: &adjustments, allowed };
            choices.iter().map(draw).collect::<Vec<Draw>>()
        };
        for level in levels() {
            let drawn = with_level(level, || draw(&logits, &draws(Some(&allowed))));
            assert_eq!(drawn, want, "{vocabulary}: {choices:?} {level:?}");
        }
        // Rows beside masked ones draw what they draw alone.
        let plain = run(&logits[vocabulary..2 * vocabulary], &choices[1..2]);
        let mut mixed = draws(Some(&allowed));
        mixed[1] = choices[1].into();
        assert_eq!(draw(&logits, &mixed)[1], plain[0]);
    }
}

#[test]
fn frequencies_follow_the_probabilities() {
    let logits = [1.0f32, 0.0, 2.0, f32::NEG_INFINITY, 2.0];
    let total: f32 = logits.iter().map(|logit| logit.exp()).sum();
    let mut counts = [0; 5];
    for i in 0..1000 {
        let choice = Choice { temperature: 1.0, u: i as f32 / 1000.0, ..Choice::GREEDY };
        counts[run(&logits, &[choice])[0] as usize] += 1;
    }
    for (count, logit) in counts.iter().zip(logits) {
        assert!((*count as f32 - 1000.0 * logit.exp() / total).abs() <= 2.0, "{counts:?}");
    }
}

#[test]
fn ends_of_the_range() {
    let sampled = Choice { temperature: 1.0, u: 0.999_999_94, ..Choice::GREEDY };
    assert_eq!(run(&[f32::NAN, f32::NAN], &[sampled]), [0]);
    assert_eq!(run(&[f32::NEG_INFINITY; 3], &[sampled]), [0]);
    assert_eq!(run(&[0.0, f32::INFINITY, f32::INFINITY], &[sampled]), [1]);
    assert_eq!(run(&[0.0, -200.0, f32::NAN], &[sampled]), [0]);
    assert_eq!(run(&[5.0, 7.0, 7.0, f32::NAN], &[Choice { temperature: 0.0, ..sampled }]), [1]);
    assert_eq!(run(&[5.0, 5.0], &[Choice { temperature: f32::INFINITY, ..sampled }]), [1]);
    let allowing = |words: &'static [u32]| [Draw { allowed: Some(words), ..sampled.into() }];
    assert_eq!(draw(&[1.0, f32::NAN, f32::NEG_INFINITY], &allowing(&[6])), [1], "the first of those allowed");
    assert_eq!(draw(&[1.0, 2.0], &allowing(&[12])), [0], "none is allowed");
    assert_eq!(draw(&[1.0, 2.0], &allowing(&[])), [0]);
}
