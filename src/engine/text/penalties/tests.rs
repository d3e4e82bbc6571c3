//! Penalties against their definitions, written the slow way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::engine::text::sampling::Dry;

fn ids(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId).collect()
}

fn adjustments(sampling: &Sampling, prompt: &[u32], answer: &[u32]) -> BTreeMap<u32, (f32, f32)> {
    let mut penalties = Penalties::new(sampling, &ids(prompt));
    ids(answer).into_iter().for_each(|id| penalties.push(id));
    let list = penalties.adjustments();
    let count = list.len();
    let by_id: BTreeMap<_, _> = list.into_iter().map(|change| (change.id.0, (change.penalty, change.offset))).collect();
    assert_eq!(by_id.len(), count, "each id once");
    by_id
}

#[test]
fn each_penalty_by_itself() {
    let check = |sampling: Sampling, expected: &[(u32, (f32, f32))]| {
        let expected: BTreeMap<_, _> = expected.iter().copied().collect();
        assert_eq!(adjustments(&sampling, &[1, 2, 1], &[3, 1, 3]), expected, "{sampling:?}");
    };
    let off = Sampling::default;
    check(off(), &[]);
    check(Sampling { repetition_penalty: Some(1.5), ..off() }, &[(1, (1.5, 0.0)), (2, (1.5, 0.0)), (3, (1.5, 0.0))]);
    check(Sampling { presence_penalty: Some(0.5), ..off() }, &[(1, (1.0, -0.5)), (3, (1.0, -0.5))]);
    check(Sampling { frequency_penalty: Some(0.5), ..off() }, &[(1, (1.0, -0.5)), (3, (1.0, -1.0))]);
    check(Sampling { logit_bias: vec![(7, 2.0), (1, -100.0)], ..off() }, &[(1, (1.0, -100.0)), (7, (1.0, 2.0))]);
    let all =
        Sampling { repetition_penalty: Some(2.0), presence_penalty: Some(1.0), frequency_penalty: Some(0.25), ..off() };
    let all = Sampling { logit_bias: vec![(3, 4.0)], ..all };
    check(all, &[(1, (2.0, -1.25)), (2, (2.0, 0.0)), (3, (2.0, 2.5))]);
}

fn dry(allowed_length: usize, range: Option<usize>, breakers: &[u32]) -> Dry {
    let breakers = Arc::new(breakers.iter().copied().collect());
    Dry { multiplier: 0.5, base: 2.0, allowed_length, range, breakers }
}

#[test]
fn dry_by_hand() {
    let check = |dry: Dry, text: &[u32], expected: &[(u32, f32)]| {
        let sampling = Sampling { dry: Some(dry.clone()), ..Sampling::default() };
        let expected: BTreeMap<_, _> = expected.iter().map(|(id, loss)| (*id, (1.0, -loss))).collect();
        for cut in [0, text.len() / 2, text.len()] {
            assert_eq!(adjustments(&sampling, &text[..cut], &text[cut..]), expected, "{dry:?} {text:?}");
        }
    };
    check(dry(2, None, &[]), &[1, 2, 3, 1, 2], &[(3, 0.5)]);
    check(dry(2, None, &[]), &[7, 1, 2, 3, 7, 1, 2], &[(3, 1.0)]);
    check(dry(3, None, &[]), &[1, 2, 3, 1, 2], &[]);
    check(dry(2, Some(4), &[]), &[1, 2, 3, 1, 2], &[]);
    check(dry(1, None, &[]), &[5, 5, 5], &[(5, 1.0)]);
    // The longest repetition before the same token counts; others have their own.
    check(dry(1, None, &[]), &[1, 2, 9, 3, 2, 9, 2, 8, 1, 2], &[(9, 1.0), (8, 0.5)]);
    // A breaker ends what is repeated, is not penalised, and as the last token ends everything.
    check(dry(1, None, &[1]), &[7, 1, 2, 3, 7, 1, 2], &[(3, 0.5)]);
    check(dry(1, None, &[3]), &[7, 1, 2, 3, 7, 1, 2], &[]);
    check(dry(1, None, &[2]), &[1, 2, 3, 1, 2], &[]);
    check(dry(0, None, &[]), &[1, 2, 3, 2], &[(3, 1.0)]);
    check(Dry { multiplier: 0.0, ..dry(1, None, &[]) }, &[1, 2, 3, 1, 2], &[]);
    let endless = Sampling { dry: Some(dry(1, None, &[])), ..Sampling::default() };
    assert!(adjustments(&endless, &[4; 5000], &[])[&4].1.is_finite());
}

/// The definition, by comparing at every place.
fn reference(dry: &Dry, text: &[u32]) -> BTreeMap<u32, f32> {
    let text = &text[text.len() - text.len().min(dry.range.unwrap_or(usize::MAX))..];
    let mut losses = BTreeMap::new();
    for next in 1..text.len() {
        let back = |count: &usize| {
            let (a, b) = (text[next - count], text[text.len() - count]);
            a == b && !dry.breakers.contains(a)
        };
        let length = (1..=next).take_while(back).count();
        if length < dry.allowed_length.max(1) || dry.breakers.contains(text[next]) {
            continue;
        }
        let loss = dry.multiplier * dry.base.powi((length - dry.allowed_length) as i32);
        let known = losses.entry(text[next]).or_insert(0.0f32);
        *known = known.max(loss);
    }
    losses
}

#[test]
fn dry_is_its_definition() {
    let mut random = 3u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut penalised = 0;
    for _ in 0..2000 {
        let text: Vec<u32> = (0..1 + below(40)).map(|_| below(3) as u32).collect();
        let breakers: &[u32] = [&[][..], &[2], &[0, 1]][below(3) as usize];
        let dry = dry(below(4) as usize, [None, Some(1 + below(30) as usize)][below(2) as usize], breakers);
        let sampling = Sampling { dry: Some(dry.clone()), ..Sampling::default() };
        let expected: BTreeMap<_, _> =
            reference(&dry, &text).into_iter().map(|(id, loss)| (id, (1.0, -loss))).collect();
        let (prompt, answer) = text.split_at(below(1 + text.len() as u64) as usize);
        let ours = adjustments(&sampling, prompt, answer);
        assert_eq!(ours, expected, "{dry:?} {prompt:?} {answer:?}");
        penalised += usize::from(!ours.is_empty());
    }
    assert!(penalised > 500, "{penalised}");
}

/// Prints what all penalties cost a token after a prompt of 16384. `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn penalties_after_a_long_prompt() {
    let prompt: Vec<u32> = (0..16_384u32).map(|i| i.wrapping_mul(2_654_435_761) % 150_000).collect();
    let all = Sampling {
        repetition_penalty: Some(1.1),
        presence_penalty: Some(0.1),
        frequency_penalty: Some(0.1),
        dry: Some(dry(2, None, &[1])),
        ..Sampling::default()
    };
    for (name, sampling, prompt, answer) in [
        ("repetition", Sampling { dry: None, ..all.clone() }, &prompt[..], &prompt[..100]),
        ("DRY", Sampling { dry: all.dry.clone(), ..Sampling::default() }, &prompt[..], &prompt[..100]),
        ("all", all.clone(), &prompt[..], &prompt[..100]),
        ("all, a long answer", all.clone(), &prompt[..100], &prompt[..]),
    ] {
        let (prompt, answer) = (ids(prompt), ids(answer));
        let began = Instant::now();
        let mut penalties = Penalties::new(&sampling, &prompt);
        eprintln!("{name}: the prompt {:?}", began.elapsed());
        let mut times: Vec<_> = answer
            .iter()
            .map(|&id| {
                let began = Instant::now();
                penalties.push(id);
                assert!(penalties.adjustments().len() <= 16_384);
                began.elapsed()
            })
            .collect();
        times.sort();
        eprintln!("{name}: a token {:?}, at worst {:?}", times[times.len() / 2], times[times.len() - 1]);
    }
}
