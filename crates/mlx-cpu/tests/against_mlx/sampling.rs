//! Drawing tokens.

use mlx_rs::{Array, ops};

use crate::support::*;

/// Draws with the same random number from MLX's softmax, sorted.
#[test]
fn sampling() {
    let mut random = Random(6);
    for round in 0..200 {
        let vocabulary = 2 + random.below(400) as i32;
        let logits = random.array(&[1, vocabulary]).multiply(Array::from_f32(6.0)).expect("wide logits");
        let choice = mlx_cpu::Choice {
            temperature: random.pick(&[0.0, 0.3, 1.0, 1.7]),
            top_k: random.pick(&[0, 1, 5, 50, 1000]),
            top_p: random.pick(&[1.0, 0.9, 0.5, 0.01]),
            min_p: random.pick(&[0.0, 0.05, 0.4]),
            u: random.below(1000) as f32 / 1000.0,
        };
        let row = mlx_cpu::Sample {
            choice,
            adjustments: (0..random.below(3))
                .map(|id| mlx_cpu::Adjustment { id: id as u32, penalty: 1.3, offset: 2.0 })
                .collect(),
            allowed: (round % 2 == 1)
                .then(|| (0..13).map(|_| 1 | 1 << random.below(32) | random.below(1 << 30) as u32).collect()),
        };
        let expected = drawn(&values(&logits), &row);
        let token = mlx_cpu::sample(&logits, vec![row.clone()]).expect("a draw");
        token.eval().expect("it evaluates");
        assert!(
            expected.contains(&token.as_slice::<u32>()[0]),
            "round {round}: {row:?} drew {token:?}, not {expected:?}"
        );
    }
}

/// The token by MLX's softmax and a full sort; both neighbours where the random number falls on their border.
fn drawn(logits: &[f32], row: &mlx_cpu::Sample) -> Vec<u32> {
    let choice = &row.choice;
    let mut logits = logits.to_vec();
    for change in &row.adjustments {
        let logit = &mut logits[change.id as usize];
        *logit = if *logit > 0.0 { *logit / change.penalty } else { *logit * change.penalty } + change.offset;
    }
    let allows = |id: usize| row.allowed.as_ref().is_none_or(|words| words[id / 32] >> (id % 32) & 1 == 1);
    let mut order: Vec<usize> = (0..logits.len()).filter(|&id| allows(id)).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if choice.temperature == 0.0 {
        return vec![order[0] as u32];
    }
    let scaled = logits.iter().enumerate().map(|(id, logit)| if allows(id) { *logit } else { f32::NEG_INFINITY });
    let scaled: Vec<f32> = scaled.map(|logit| logit / choice.temperature).collect();
    let mass = ops::softmax_axis(Array::from_slice(&scaled, &[scaled.len() as i32]), 0, true).expect("softmax");
    let mass: Vec<f64> = values(&mass).into_iter().map(f64::from).collect();
    if choice.top_k > 0 {
        order.truncate(choice.top_k);
    }
    let total: f64 = order.iter().map(|&id| mass[id]).sum();
    let mut before = 0.0;
    let first = mass[order[0]];
    let kept: Vec<usize> = order
        .into_iter()
        .take_while(|&id| {
            let keep = choice.top_p >= 1.0 || before < f64::from(choice.top_p) * total;
            before += mass[id];
            keep
        })
        .filter(|&id| mass[id] >= f64::from(choice.min_p) * first)
        .collect();
    let total: f64 = kept.iter().map(|&id| mass[id]).sum();
    let at = |u: f64| {
        let mut reached = 0.0;
        let found = kept.iter().find(|&&id| {
            reached += mass[id];
            reached > u * total
        });
        *found.unwrap_or(kept.last().expect("one is kept")) as u32
    };
    let u = f64::from(choice.u);
    vec![at(u - 1e-5), at(u), at(u + 1e-5)]
}
