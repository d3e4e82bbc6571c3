//! Whole layers, each beside its parts in MLX's ops.

use std::sync::Arc;

use mlx_cpu::{
    Activation, Attend, AttentionLayer, Decay, DeltaNet, DeltaSequence, Dense, FeedForward, Float, Growth, Joined,
    KvFormat, Linear, Mode, Norm, Pages, Part, Rope, Sees, Unpacked, Weights,
};
use mlx_rs::{Array, Dtype, fast, ops, ops::indexing::TryIndexOp};

use crate::support::*;

/// A linear of these f32 weights, `[outputs, inputs]`.
fn dense(weight: &Array) -> Linear {
    let [outputs, inputs] = [weight.dim(0), weight.dim(1)].map(|extent| extent as usize);
    let values = &float_bytes(weight, Float::F32);
    let dense = Dense { n: outputs, k: inputs, float: Float::F32, values };
    let weights = Weights::new(&Unpacked::Dense(dense), 1).expect("it packs");
    Linear { weights, bias: None, mode: Mode::Exact }
}

fn norm(weight: &Array) -> Norm {
    Norm { weight: Some(values(weight).into()), dim: weight.size(), eps: 1e-5 }
}

#[test]
fn state_spaces() {
    let mut random = Random(7);
    for round in 0..20 {
        let (groups, repeat) = (1 + random.below(3) as i32, 1 + random.below(3) as i32);
        let (heads, dim, size) = (groups * repeat, random.pick(&[4, 16, 33]), random.pick(&[8, 16, 40]));
        let a: Vec<f32> = (0..heads).map(|_| -0.1 - random.below(100) as f32 / 30.0).collect();
        let skip = random.array(&[heads]);
        let decay = Decay { a: a.as_slice().into(), skip: Some(skip.as_slice::<f32>().into()) };
        let a = Array::from_slice(&a, &[heads]);
        let mut state = random.array(&[heads, dim, size]);
        for t in [1 + random.below(9) as i32, 1, 3] {
            let x = random.array(&[t, heads, dim]);
            let (b, c) = (random.array(&[t, groups, size]), random.array(&[t, groups, size]));
            let dt = ops::sigmoid(random.strided(t, heads)).expect("steps");
            let (output, next) = mlx_cpu::ssm(&decay, &x, &b, &c, &dt, &state).expect("a state space");
            let (reference, after) = space_by_ops([&x, &b, &c, &dt, &a, &skip], &state, repeat).expect("MLX's ops");
            let what = format!("round {round}, {t} tokens");
            close(&output, &reference, 1e-4, &what);
            close(&next, &after, 1e-4, &what);
            state = next;
        }
    }
}

fn space_by_ops(
    [x, b, c, dt, a, skip]: [&Array; 6],
    state: &Array,
    repeat: i32,
) -> mlx_rs::error::Result<(Array, Array)> {
    let (heads, dim, size) = (state.dim(0), state.dim(1), state.dim(2));
    let mut state = state.clone();
    let mut outputs = Vec::new();
    for t in 0..x.dim(0) {
        let spread = |x: &Array| -> mlx_rs::error::Result<Array> {
            let row = x.try_index(t)?.reshape(&[-1, 1, size])?;
            ops::broadcast_to(&row, &[heads / repeat, repeat, size])?.reshape(&[heads, 1, size])
        };
        let dt = dt.try_index(t)?;
        let x = x.try_index(t)?.reshape(&[heads, dim, 1])?;
        let decay = dt.multiply(a)?.exp()?.reshape(&[heads, 1, 1])?;
        let new = x.multiply(dt.reshape(&[heads, 1, 1])?)?.multiply(spread(b)?)?;
        state = state.multiply(decay)?.add(new)?;
        let past = x.multiply(skip.reshape(&[heads, 1, 1])?)?;
        outputs.push(state.multiply(spread(c)?)?.sum_axis(-1, true)?.add(past)?.reshape(&[heads, dim])?);
    }
    Ok((ops::stack(&outputs, 0)?, state))
}

/// A whole block beside its parts in MLX's ops.
#[test]
fn feed_forward_blocks() {
    let mut random = Random(8);
    for round in 0..30 {
        // Past 256 rows the block goes through them in parts.
        let rows = random.pick(&[1, 2, 9, 30, 300]);
        let (dim, hidden) = (1 + random.below(80) as i32, 1 + random.below(120) as i32);
        let both = random.array(&[2 * hidden, dim]);
        let halves = both.split_equal(2, 0).expect("halves");
        let gate_up = if round % 2 == 0 { vec![dense(&both)] } else { halves.iter().map(dense).collect() };
        let gate_up = Joined::new(gate_up, &[hidden as usize; 2]).expect("it joins");
        let (down_weight, weight) = (random.array(&[dim, hidden]), random.array(&[dim]));
        let (norm, down) = (norm(&weight), dense(&down_weight));
        let block = Arc::new(FeedForward { norm, gate_up, activation: Activation::Silu, down });
        let x = random.strided(rows, dim);
        let by_ops = || -> mlx_rs::error::Result<Array> {
            let normed = fast::rms_norm(&x, Some(&weight), 1e-5)?;
            let (gate, up) = (normed.matmul(halves[0].t())?, normed.matmul(halves[1].t())?);
            x.add(ops::sigmoid(&gate)?.multiply(&gate)?.multiply(&up)?.matmul(down_weight.t())?)
        };
        let ours = mlx_cpu::feed_forward(&block, &x).expect("a block");
        close(&ours, &by_ops().expect("MLX computes"), 1e-4, &format!("round {round}: {rows} x {dim} x {hidden}"));
    }
}

/// A whole attention layer, gated and not, is its parts: norm, projections, [`mlx_cpu::attend`], gate, output.
#[test]
fn attention_layers() {
    let mut random = Random(9);
    for round in 0..24 {
        let (kv_heads, repeat, dim) = (1 + random.below(3), 1 + random.below(3), random.pick(&[16, 32, 40]));
        let (heads, gated, features) = (kv_heads * repeat, round % 2 == 0, 1 + random.below(70));
        let stride = if gated { 2 * dim } else { dim };
        let widths = [heads * stride, kv_heads * dim, kv_heads * dim];
        let weights = widths.map(|outputs| random.array(&[outputs as i32, features as i32]));
        let output = random.array(&[features as i32, (heads * dim) as i32]);
        let weight = random.array(&[features as i32]);
        let inverse: Vec<f32> = (0..dim / 2).map(|pair| 100f32.powf(-2.0 * pair as f32 / dim as f32)).collect();
        let attend = Attend {
            heads,
            kv_heads,
            dim,
            scale: (dim as f32).powf(-0.5),
            norm: None,
            rope: Rope { interleaved: false, inverse: inverse.into(), factor: 1.0, axes: None },
            sees: random.pick(&[Sees::Before, Sees::Window(5)]),
            sinks: None,
            soft_cap: None,
            format: KvFormat::F32,
        };
        let linears = weights.iter().map(dense).collect();
        let projections = Joined::new(linears, &widths).expect("they join");
        let (norm, output_linear) = (norm(&weight), dense(&output));
        let layer =
            Arc::new(AttentionLayer { norm, projections, attend: attend.clone(), gated, output: output_linear });
        let (mut ours, mut parts) = (Pages::default(), Pages::default());
        for tokens in [1 + random.below(40), 1, 3] {
            let x = random.strided(tokens as i32, features as i32);
            let grown = vec![Growth { tokens, pages: &mut ours }];
            let whole = mlx_cpu::attention_layer(&layer, &x, None, grown).expect("a layer");
            let by_parts = |pages: &mut Pages| -> mlx_rs::error::Result<Array> {
                let normed = fast::rms_norm(&x, Some(&weight), 1e-5)?;
                let [q, k, v] = weights.each_ref().map(|weight| normed.matmul(weight.t()).expect("a product"));
                let part = |array, stride| Part { array, start: 0, stride };
                let growth = vec![Growth { tokens, pages }];
                let found = mlx_cpu::attend(&attend, [part(&q, stride), part(&k, dim), part(&v, dim)], None, growth);
                let found = found.expect("attention");
                let kept = if gated {
                    let heads = q.reshape(&[tokens as i32, heads as i32, stride as i32])?;
                    let gate = heads.try_index((.., .., dim as i32..))?.reshape(&[tokens as i32, -1])?;
                    found.multiply(ops::sigmoid(gate)?)?
                } else {
                    found
                };
                x.add(kept.matmul(output.t())?)
            };
            let wanted = by_parts(&mut parts).expect("MLX's ops");
            close(&whole, &wanted, 1e-4, &format!("round {round}: {tokens} tokens"));
        }
    }
}

/// A whole gated delta layer beside its parts in MLX's ops, a batch of two sequences call by call.
#[test]
fn delta_layers() {
    let mut random = Random(5);
    for round in 0..20 {
        let (key_heads, repeat) = (1 + random.below(3), 1 + random.below(3));
        let (key_dim, value_dim) = (random.pick(&[8, 32, 40]), random.pick(&[16, 32, 33]));
        let (heads, dim, width) = (key_heads * repeat, 1 + random.below(60), 2 + random.below(4));
        let channels = 2 * key_heads * key_dim + heads * value_dim;
        let widths = [channels, heads * value_dim, heads, heads];
        let weights = widths.map(|outputs| random.array(&[outputs as i32, dim as i32]));
        let linears = weights.iter().map(dense).collect();
        let taps = random.array(&[channels as i32, width as i32]);
        let [input_weight, norm_weight] = [dim, value_dim].map(|dim| random.array(&[dim as i32]));
        let (dt_bias, logs) = (random.array(&[heads as i32]), random.array(&[heads as i32]));
        let decay = logs.exp().and_then(|rate| rate.negative()).expect("decay");
        let output = random.array(&[dim as i32, (heads * value_dim) as i32]);
        let layer = Arc::new(DeltaNet {
            input_norm: norm(&input_weight),
            projections: Joined::new(linears, &widths).expect("they join"),
            taps: values(&taps).into(),
            width,
            dt_bias: values(&dt_bias),
            decay: values(&decay),
            key: (key_heads, key_dim),
            value: (heads, value_dim),
            norm: norm(&norm_weight),
            output: dense(&output),
        });
        let reference =
            Delta { weights, taps, input_weight, norm_weight, dt_bias, decay, output, layer: layer.clone() };
        let state = |random: &mut Random| {
            let conv = random.array(&[width as i32 - 1, channels as i32]);
            (conv, random.array(&[heads as i32, value_dim as i32, key_dim as i32]))
        };
        let mut states = [state(&mut random), state(&mut random)];
        for tokens in [[1 + random.below(9), 3], [1, 1], [300, 2]] {
            let total = (tokens[0] + tokens[1]) as i32;
            let x = random.array(&[total, dim as i32]);
            let sequences = states.iter().zip(tokens).map(|((conv, delta), tokens)| DeltaSequence {
                tokens,
                conv: conv.clone(),
                delta: delta.clone(),
            });
            let (ours, after) = mlx_cpu::delta_net(&layer, &x, sequences.collect()).expect("a layer");
            let parts = x.split_at_indices(&[tokens[0] as i32], 0).expect("two sequences");
            let ours = ours.split_at_indices(&[tokens[0] as i32], 0).expect("two sequences");
            for (index, (ours, x)) in ours.iter().zip(&parts).enumerate() {
                let what = format!("round {round}, {tokens:?} tokens, sequence {index}");
                let (wanted, conv, delta) = reference.run(x, &states[index]).expect("MLX's ops");
                close(ours, &wanted, 2e-4, &what);
                close(&after[index].0, &conv, 1e-4, &what);
                close(&after[index].1, &delta, 1e-4, &what);
            }
            states = after.try_into().expect("two states");
        }
    }
}

struct Delta {
    weights: [Array; 4],
    taps: Array,
    input_weight: Array,
    norm_weight: Array,
    dt_bias: Array,
    decay: Array,
    output: Array,
    layer: Arc<DeltaNet>,
}

impl Delta {
    /// One sequence: the output and the two states after.
    fn run(&self, x: &Array, (conv, delta): &(Array, Array)) -> mlx_rs::error::Result<(Array, Array, Array)> {
        let ((key_heads, key_dim), (heads, value_dim)) = (self.layer.key, self.layer.value);
        let (t, width) = (x.dim(0), (key_heads * key_dim) as i32);
        let normed = fast::rms_norm(x, Some(&self.input_weight), 1e-5)?;
        let [qkv, z, b, a] = self.weights.each_ref().map(|weight| normed.matmul(weight.t()).expect("a product"));
        let inputs = ops::concatenate(&[conv, &qkv], 0)?;
        let mut sum = ops::zeros_dtype(&[t, qkv.dim(1)], Dtype::Float32)?;
        for tap in 0..self.layer.width as i32 {
            sum = sum.add(inputs.try_index((tap..tap + t, ..))?.multiply(self.taps.try_index((.., tap))?)?)?;
        }
        let mixed = ops::sigmoid(&sum)?.multiply(&sum)?.split_at_indices(&[width, 2 * width], 1)?;
        let unit = |x: &Array| -> mlx_rs::error::Result<Array> {
            let x = x.reshape(&[t, key_heads as i32, key_dim as i32])?;
            let length = x.square()?.sum_axis(-1, true)?.add(Array::from_f32(1e-6))?.sqrt()?;
            x.divide(length)
        };
        let q = unit(&mixed[0])?.multiply(Array::from_f32((key_dim as f32).powf(-0.5)))?;
        let k = unit(&mixed[1])?;
        let v = mixed[2].reshape(&[t, heads as i32, value_dim as i32])?;
        let softplus = ops::logaddexp(a.add(&self.dt_bias)?, Array::from_f32(0.0))?;
        let (g, beta) = (softplus.multiply(&self.decay)?.exp()?, ops::sigmoid(&b)?);
        let (told, after) = delta_by_ops([&q, &k, &v, &g, &beta], delta, (heads / key_heads) as i32)?;
        let told = fast::rms_norm(&told, Some(&self.norm_weight), 1e-5)?.reshape(&[t, -1])?;
        let gated = told.multiply(ops::sigmoid(&z)?.multiply(&z)?)?;
        Ok((x.add(gated.matmul(self.output.t())?)?, inputs.try_index((t.., ..))?, after))
    }
}

fn delta_by_ops([q, k, v, g, beta]: [&Array; 5], state: &Array, repeat: i32) -> mlx_rs::error::Result<(Array, Array)> {
    let (heads, value_dim, key_dim) = (state.dim(0), state.dim(1), state.dim(2));
    let mut state = state.clone();
    let mut outputs = Vec::new();
    for t in 0..q.dim(0) {
        let spread = |x: &Array| -> mlx_rs::error::Result<Array> {
            let row = x.try_index(t)?.reshape(&[-1, 1, key_dim])?;
            ops::broadcast_to(&row, &[heads / repeat, repeat, key_dim])?.reshape(&[heads, 1, key_dim])
        };
        state = state.multiply(g.try_index(t)?.reshape(&[heads, 1, 1])?)?;
        let told = state.multiply(spread(k)?)?.sum_axis(-1, true)?;
        let new = v.try_index(t)?.reshape(&[heads, value_dim, 1])?.subtract(told)?;
        let new = new.multiply(beta.try_index(t)?.reshape(&[heads, 1, 1])?)?;
        state = state.add(new.multiply(spread(k)?)?)?;
        outputs.push(state.multiply(spread(q)?)?.sum_axis(-1, false)?);
    }
    Ok((ops::stack(&outputs, 0)?, state))
}
