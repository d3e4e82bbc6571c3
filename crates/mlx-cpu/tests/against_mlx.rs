//! Every op of this crate beside MLX's own on random shapes, odd sizes and strides. MLX is the reference here; the
//! kernels' own tests compare with plain loops, at every dispatch level and number of threads.

use std::sync::Arc;

use mlx_cpu::{Affine, Attend, Float, Mode, Rope, Weights};
use mlx_rs::{
    Array, Dtype, fast,
    fast::ScaledDotProductAttentionMask as Mask,
    ops,
    ops::indexing::{TryIndexOp, take_along_axis, take_axis},
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Between -1 and 1.
    fn array(&mut self, shape: &[i32]) -> Array {
        let count: i32 = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| self.next() as f32 / (1u64 << 30) as f32 - 1.0).collect();
        Array::from_slice(&values, shape)
    }

    /// The same kind of array as a view into a larger one: rows a stride apart, or columns of a transposed one.
    fn strided(&mut self, rows: i32, width: i32) -> Array {
        match self.below(3) {
            0 => self.array(&[rows, width]),
            1 => {
                let wide = self.array(&[rows, width + 7]);
                wide.try_index((.., 3..3 + width)).expect("a slice")
            }
            _ => self.array(&[width, rows]).transpose_axes(&[1, 0]).expect("a transpose"),
        }
    }
}

fn values(array: &Array) -> Vec<f32> {
    let array = array.as_dtype(Dtype::Float32).expect("a cast").contiguous().expect("a copy");
    array.eval().expect("it evaluates");
    array.to_vec_exact().expect("f32 in order")
}

/// Compares with a tolerance relative to the reference's largest value.
fn close(ours: &Array, reference: &Array, tolerance: f32, what: &str) {
    assert_eq!(ours.shape(), reference.shape(), "{what}: shapes");
    let (ours, reference) = (values(ours), values(reference));
    let largest = reference.iter().fold(1e-6_f32, |largest, value| largest.max(value.abs()));
    for (index, (a, b)) in ours.iter().zip(&reference).enumerate() {
        assert!((a - b).abs() <= tolerance * largest, "{what}: element {index} is {a}, MLX says {b}");
    }
}

fn float_bytes(array: &Array, float: Float) -> Vec<u8> {
    let array = array.contiguous().expect("a copy");
    array.eval().expect("it evaluates");
    match float {
        Float::F32 => array.as_slice::<f32>().iter().flat_map(|value| value.to_le_bytes()).collect(),
        Float::F16 => array.as_slice::<half::f16>().iter().flat_map(|value| value.to_le_bytes()).collect(),
        Float::BF16 => array.as_slice::<half::bf16>().iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

fn dtype(float: Float) -> Dtype {
    match float {
        Float::F32 => Dtype::Float32,
        Float::F16 => Dtype::Float16,
        Float::BF16 => Dtype::Bfloat16,
    }
}

const FLOATS: [Float; 3] = [Float::F32, Float::F16, Float::BF16];

#[test]
fn quantized_matmul_and_embedding() {
    let mut random = Random(1);
    for round in 0..60 {
        let (bits, group) = (random.pick(&[2, 3, 4, 4, 5, 6, 8, 8]), random.pick(&[32, 64, 128]));
        let (n, k) = (1 + random.below(70), group * (1 + random.below(5)));
        let m = random.pick(&[1, 2, 3, 7, 8, 33]);
        let float = random.pick(&FLOATS);
        let what = format!("round {round}: {m} x [{n}, {k}], {bits} bits, groups of {group}, {float:?}");
        let dense = random.array(&[n as i32, k as i32]);
        let (w, scales, biases) = ops::quantize(&dense, group as i32, bits as i32).expect("MLX quantises");
        let cast = |array: &Array| array.as_dtype(dtype(float)).expect("a cast");
        let (scales, biases) = (cast(&scales), cast(&biases));
        w.eval().expect("it evaluates");
        let words: Vec<u8> = w.as_slice::<u32>().iter().flat_map(|word| word.to_le_bytes()).collect();
        let ours = Weights::affine(&Affine {
            n,
            k,
            bits,
            group,
            float,
            weights: &words,
            scales: &float_bytes(&scales, float),
            biases: &float_bytes(&biases, float),
        })
        .expect("it packs");
        let as_f32 = |array: &Array| array.as_dtype(Dtype::Float32).expect("a cast");
        let table =
            ops::dequantize(&w, as_f32(&scales), &as_f32(&biases), group as i32, bits as i32).expect("MLX reads it");
        let x = random.strided(m, k as i32);
        let reference = x.matmul(table.t()).expect("MLX multiplies");
        let residual = random.strided(m, n as i32);
        let product = |mode, residual| mlx_cpu::matmul(&ours, &x, residual, mode).expect("a matmul");
        close(&product(Mode::Exact, None), &reference, 2e-5, &what);
        // Rounded activations: the error of a sum of k products, relative to its largest values.
        close(&product(Mode::Fast, None), &reference, 2e-4, &what);
        let onto = reference.add(&residual).expect("a sum");
        close(&product(Mode::Exact, Some(&residual)), &onto, 2e-5, &what);
        let ids: Vec<u32> = (0..9).map(|_| random.below(n) as u32).collect();
        let ids = Array::from_slice(&ids, &[9]);
        let rows = take_axis(&table, &ids, 0).expect("rows");
        close(&mlx_cpu::embedding(&ours, &ids).expect("an embedding"), &rows, 1e-6, &what);
    }
}

/// A whole mixture: the choice, the products with the chosen matrices of a stack, the sum onto a residual.
#[test]
fn experts() {
    let mut random = Random(7);
    for round in 0..24 {
        let (experts, tokens) = (2 + random.below(9), 1 + random.below(40));
        let top = 1 + random.below(experts.min(4));
        let (n, k) = (1 + random.below(50), 32 * (1 + random.below(4)));
        let shape = [experts as i32, n as i32, k as i32];
        let dense = random.array(&shape);
        let what = format!("round {round}: {tokens} tokens, {top} of {experts} experts [{n}, {k}]");
        let normed = random.below(2) == 0;
        let logits = random.strided(tokens as i32, experts as i32);
        let [ids, scores] = mlx_cpu::route(&logits, top, normed).expect("a choice");
        let softmax = ops::softmax_axis(&logits, -1, true).expect("MLX's softmax");
        let chosen = take_along_axis(&softmax, &ids, -1).expect("scores");
        let total = if normed { chosen.sum_axis(-1, true).expect("a sum") } else { Array::from_f32(1.0) };
        close(&scores, &chosen.divide(&total).expect("a quotient"), 1e-5, &what);
        let best = ops::sort_axis(&softmax, -1).expect("sorted");
        let best = best.try_index((.., (experts - top) as i32..)).expect("the last");
        close(&ops::sort_axis(&chosen, -1).expect("sorted"), &best, 0.0, &what);

        let x = random.strided(tokens as i32, k as i32);
        let rows = x.reshape(&[tokens as i32, 1, 1, k as i32]).expect("rows");
        let (ours, reference) = if random.below(2) == 0 {
            let transposed = dense.transpose_axes(&[0, 2, 1]).expect("a transpose");
            let reference = ops::gather_mm(&rows, &transposed, None, &ids, false).expect("MLX gathers");
            (Weights::dense(n, k, Float::F32, &float_bytes(&dense, Float::F32)), reference)
        } else {
            let (w, scales, biases) = ops::quantize(&dense, 32, 4).expect("MLX quantises");
            let reference = ops::gather_qmm(&rows, &w, &scales, &biases, None, &ids, true, 32, 4, false);
            let words: Vec<u8> = w.as_slice::<u32>().iter().flat_map(|word| word.to_le_bytes()).collect();
            let [scales, biases] = [&scales, &biases].map(|array| float_bytes(array, Float::F32));
            let (weights, scales, biases) = (&words[..], &scales[..], &biases[..]);
            let affine = Affine { n, k, bits: 4, group: 32, float: Float::F32, weights, scales, biases };
            (Weights::affine(&affine).expect("it packs"), reference.expect("MLX gathers"))
        };
        let reference = reference.reshape(&[(tokens * top) as i32, n as i32]).expect("rows");
        let answers = mlx_cpu::gather_matmul(&ours, &x, &ids, Mode::Exact).expect("products");
        close(&answers, &reference, 2e-5, &what);
        // A row a product, and rounded activations.
        let spread = ops::broadcast_to(&x.expand_dims(1).expect("an axis"), &[tokens as i32, top as i32, k as i32])
            .and_then(|x| x.reshape(&[(tokens * top) as i32, k as i32]))
            .expect("rows");
        close(&mlx_cpu::gather_matmul(&ours, &spread, &ids, Mode::Fast).expect("products"), &reference, 2e-4, &what);

        let residual = random.strided(tokens as i32, n as i32);
        let by_token = answers.reshape(&[tokens as i32, top as i32, n as i32]).expect("answers");
        let sum = by_token.multiply(scores.expand_dims(-1).expect("an axis")).and_then(|x| x.sum_axis(1, false));
        let onto = residual.add(sum.expect("a sum")).expect("a sum");
        close(&mlx_cpu::combine(&answers, &scores, &residual).expect("a sum"), &onto, 1e-5, &what);
    }
}

#[test]
fn dense_matmul() {
    let mut random = Random(2);
    for round in 0..40 {
        let (m, n, k) = (1 + random.below(40) as i32, 1 + random.below(90) as i32, 1 + random.below(200) as i32);
        let float = random.pick(&FLOATS);
        let weight = random.array(&[n, k]).as_dtype(dtype(float)).expect("a cast");
        let ours = Weights::dense(n as usize, k as usize, float, &float_bytes(&weight, float));
        let x = random.strided(m, k);
        let reference = x.matmul(weight.as_dtype(Dtype::Float32).expect("a cast").t()).expect("MLX multiplies");
        let product = mlx_cpu::matmul(&ours, &x, None, Mode::Fast).expect("a matmul");
        close(&product, &reference, 2e-5, &format!("round {round}: {m} x [{n}, {k}] {float:?}"));
    }
}

#[test]
fn rms_norm_and_silu_mul() {
    let mut random = Random(3);
    for round in 0..40 {
        let (rows, dim, heads) =
            (1 + random.below(20) as i32, 1 + random.below(150) as i32, 1 + random.below(4) as i32);
        let x = random.strided(rows, heads * dim);
        let weight = random.array(&[dim]);
        let by_head = x.reshape(&[rows, heads, dim]).expect("heads");
        for weight in [None, Some(&weight)] {
            let reference = fast::rms_norm(&by_head, weight, 1e-5).expect("MLX norms");
            let reference = reference.reshape(&[rows, heads * dim]).expect("rows");
            let ours = mlx_cpu::rms_norm(&x, weight, dim as usize, 1e-5).expect("a norm");
            close(&ours, &reference, 1e-5, &format!("round {round}: {rows} x {heads} x {dim}"));
        }
        let up = random.strided(rows, heads * dim);
        let reference = ops::sigmoid(&x).and_then(|gate| gate.multiply(&x)?.multiply(&up)).expect("MLX gates");
        close(&mlx_cpu::silu_mul(&x, &up).expect("a gate"), &reference, 1e-5, &format!("round {round}: silu_mul"));
    }
}

/// A sequence that grows call by call, beside rope and attention of MLX over all of its keys and values.
#[test]
fn rope_and_attention_over_pages() {
    let mut random = Random(4);
    for round in 0..24 {
        let (kv_heads, group, dim) = (1 + random.below(3), 1 + random.below(4), random.pick(&[16, 32, 64, 80, 128]));
        let (heads, page) = (kv_heads * group, random.pick(&[16, 32, 256]));
        let dims = random.pick(&[dim, dim / 2]);
        let interleaved = random.below(2) == 0;
        let half = random.below(2) == 0;
        let window = random.pick(&[None, None, Some(5), Some(33)]);
        let scale = (dim as f32).powf(-0.5);
        let periods: Vec<f32> = (0..dims / 2).map(|pair| 10_000f32.powf(2.0 * pair as f32 / dims as f32)).collect();
        let frequencies = Array::from_slice(&periods, &[dims as i32 / 2]);
        let inverse: Arc<[f32]> = periods.iter().map(|period| 1.0 / period).collect();
        let (mut pages, mut offset) = (Vec::new(), 0);
        let (mut all_k, mut all_v): (Vec<Array>, Vec<Array>) = (Vec::new(), Vec::new());
        for t in [1 + random.below(40), 1, 1, 1 + random.below(60), 1] {
            let (q, k, v) = (
                random.strided(t as i32, (heads * dim) as i32),
                random.strided(t as i32, (kv_heads * dim) as i32),
                random.strided(t as i32, (kv_heads * dim) as i32),
            );
            let by_head = |x: &Array, heads: usize| {
                x.reshape(&[1, t as i32, heads as i32, dim as i32])
                    .and_then(|x| x.transpose_axes(&[0, 2, 1, 3]))
                    .expect("heads")
            };
            let turn = |x: Array| {
                fast::rope(&x, dims as i32, interleaved, None, 1.0, offset as i32, &frequencies).expect("MLX turns")
            };
            all_k.push(turn(by_head(&k, kv_heads)));
            all_v.push(by_head(&v, kv_heads));
            let keys = ops::concatenate(&all_k, 2).expect("keys");
            let vals = ops::concatenate(&all_v, 2).expect("values");
            let mask = mask(t, offset, window);
            let turned = turn(by_head(&q, heads));
            let reference = fast::scaled_dot_product_attention(&turned, &keys, &vals, scale, Mask::Array(&mask), None)
                .and_then(|x| x.transpose_axes(&[0, 2, 1, 3])?.reshape(&[t as i32, (heads * dim) as i32]))
                .expect("MLX attends");
            let rope = Rope { dims, interleaved, inverse: inverse.clone(), factor: 1.0 };
            let settings = Attend { heads, kv_heads, dim, page, offset, scale, window, rope, half };
            // A held copy of the pages must not change when the sequence goes on.
            let held: Vec<Array> = pages.clone();
            let before: Vec<Vec<f32>> = held.iter().map(values).collect();
            let (ours, grown) = mlx_cpu::attend(settings, &q, &k, &v, pages).expect("attention");
            let what = format!(
                "round {round}: {heads}/{kv_heads} heads of {dim}, {dims} turned, page {page}, {t} at {offset}, window {window:?}, half {half}"
            );
            close(&ours, &reference, if half { 2e-3 } else { 3e-5 }, &what);
            assert_eq!(held.iter().map(values).collect::<Vec<_>>(), before, "{what}: shared pages changed");
            pages = grown;
            offset += t;
        }
    }
}

fn mask(t: usize, offset: usize, window: Option<usize>) -> Array {
    let sees = |query: usize, key: usize| key <= query && window.is_none_or(|window| key + window > query);
    let values: Vec<f32> = (offset..offset + t)
        .flat_map(|query| (0..offset + t).map(move |key| if sees(query, key) { 0.0 } else { f32::NEG_INFINITY }))
        .collect();
    Array::from_slice(&values, &[t as i32, (offset + t) as i32])
}

/// The recurrences call by call beside loops of MLX's ops.
#[test]
fn recurrences() {
    let mut random = Random(5);
    for round in 0..20 {
        let (key_heads, repeat) = (1 + random.below(3) as i32, 1 + random.below(3) as i32);
        let (key_dim, value_dim) = (random.pick(&[8, 32, 40]), random.pick(&[16, 32, 33]));
        let heads = key_heads * repeat;
        let (channels, width) = (1 + random.below(40) as i32, 2 + random.below(4) as i32);
        let taps = random.array(&[channels, width]);
        let mut state = random.array(&[heads, value_dim, key_dim]);
        let mut kept = random.array(&[width - 1, channels]);
        for t in [1 + random.below(9) as i32, 1, 3] {
            let what = format!("round {round}, {t} tokens");
            let (q, k) = (random.array(&[t, key_heads, key_dim]), random.array(&[t, key_heads, key_dim]));
            let v = random.array(&[t, heads, value_dim]);
            let (g, beta) = (
                ops::sigmoid(random.strided(t, heads)).expect("g"),
                ops::sigmoid(random.strided(t, heads)).expect("beta"),
            );
            let (output, next) = mlx_cpu::gated_delta(&q, &k, &v, &g, &beta, &state).expect("a gated delta");
            let (reference, after) = delta_by_ops([&q, &k, &v, &g, &beta], &state, repeat).expect("MLX's ops");
            close(&output, &reference, 1e-4, &what);
            close(&next, &after, 1e-4, &what);
            state = next;

            let x = random.strided(t, channels);
            let (output, next) = mlx_cpu::short_conv(&x, &kept, &taps).expect("a convolution");
            let inputs = ops::concatenate(&[&kept, &x], 0).expect("inputs");
            let mut sum = ops::zeros_dtype(&[t, channels], Dtype::Float32).expect("zeros");
            for tap in 0..width {
                let shifted = inputs.try_index((tap..tap + t, ..)).expect("a slice");
                sum = sum.add(shifted.multiply(taps.try_index((.., tap)).expect("a tap")).expect("x")).expect("+");
            }
            let reference = ops::sigmoid(&sum).and_then(|gate| gate.multiply(&sum)).expect("silu");
            close(&output, &reference, 1e-5, &what);
            close(&next, &inputs.try_index((t.., ..)).expect("the last inputs"), 0.0, &what);
            kept = next;
        }
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

/// Draws with the same random number from MLX's softmax, sorted.
#[test]
fn sampling() {
    let mut random = Random(6);
    for round in 0..200 {
        let vocabulary = 2 + random.below(400) as i32;
        let logits = random.array(&[1, vocabulary]).multiply(Array::from_f32(6.0)).expect("wide logits");
        let row = mlx_cpu::Sample {
            temperature: random.pick(&[0.0, 0.3, 1.0, 1.7]),
            top_k: random.pick(&[0, 1, 5, 50, 1000]),
            top_p: random.pick(&[1.0, 0.9, 0.5, 0.01]),
            min_p: random.pick(&[0.0, 0.05, 0.4]),
            u: random.below(1000) as f32 / 1000.0,
            adjustments: (0..random.below(3))
                .map(|id| mlx_cpu::Adjustment { id: id as u32, penalty: 1.3, offset: 2.0 })
                .collect(),
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
    let mut logits = logits.to_vec();
    for change in &row.adjustments {
        let logit = &mut logits[change.id as usize];
        *logit = if *logit > 0.0 { *logit / change.penalty } else { *logit * change.penalty } + change.offset;
    }
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if row.temperature == 0.0 {
        return vec![order[0] as u32];
    }
    let scaled: Vec<f32> = logits.iter().map(|logit| logit / row.temperature).collect();
    let mass = ops::softmax_axis(Array::from_slice(&scaled, &[scaled.len() as i32]), 0, true).expect("softmax");
    let mass: Vec<f64> = values(&mass).into_iter().map(f64::from).collect();
    if row.top_k > 0 {
        order.truncate(row.top_k as usize);
    }
    let total: f64 = order.iter().map(|&id| mass[id]).sum();
    let mut before = 0.0;
    let first = mass[order[0]];
    let kept: Vec<usize> = order
        .into_iter()
        .take_while(|&id| {
            let keep = row.top_p >= 1.0 || before < f64::from(row.top_p) * total;
            before += mass[id];
            keep
        })
        .filter(|&id| mass[id] >= f64::from(row.min_p) * first)
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
    let u = f64::from(row.u);
    vec![at(u - 1e-5), at(u), at(u + 1e-5)]
}
