//! Products, embeddings and norms.

use mlx_cpu::{Affine, Dense, Float, Growing, LayerNorm, Linear, Mode, Norm, Unpacked, Weights};
use mlx_rs::{
    Array, Dtype, fast, ops,
    ops::indexing::{TryIndexOp, take_along_axis, take_axis},
};

use crate::support::*;

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
        let source = Unpacked::Affine(Affine {
            n,
            k,
            bits,
            group,
            float,
            weights: &words,
            scales: &float_bytes(&scales, float),
            biases: &float_bytes(&biases, float),
        });
        let ours = Weights::new(&source, 1).expect("it packs");
        let as_f32 = |array: &Array| array.as_dtype(Dtype::Float32).expect("a cast");
        let table =
            ops::dequantize(&w, as_f32(&scales), &as_f32(&biases), group as i32, bits as i32).expect("MLX reads it");
        let x = random.strided(m, k as i32);
        let reference = x.matmul(table.t()).expect("MLX multiplies");
        let residual = random.strided(m, n as i32);
        let product = |mode, residual| {
            let ours = Linear { weights: ours.clone(), bias: None, mode };
            mlx_cpu::linear(&ours, &x, residual).expect("a matmul")
        };
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
            let source = Unpacked::Dense(Dense { n, k, float: Float::F32, values: &float_bytes(&dense, Float::F32) });
            (Weights::new(&source, experts).expect("it packs"), reference)
        } else {
            let (w, scales, biases) = ops::quantize(&dense, 32, 4).expect("MLX quantises");
            let reference = ops::gather_qmm(&rows, &w, &scales, &biases, None, &ids, true, 32, 4, false);
            let words: Vec<u8> = w.as_slice::<u32>().iter().flat_map(|word| word.to_le_bytes()).collect();
            let [scales, biases] = [&scales, &biases].map(|array| float_bytes(array, Float::F32));
            let (weights, scales, biases) = (&words[..], &scales[..], &biases[..]);
            let affine = Affine { n, k, bits: 4, group: 32, float: Float::F32, weights, scales, biases };
            (Weights::new(&Unpacked::Affine(affine), experts).expect("it packs"), reference.expect("MLX gathers"))
        };
        let reference = reference.reshape(&[(tokens * top) as i32, n as i32]).expect("rows");
        let answers = mlx_cpu::gather_matmul(&ours, &x, &ids, Mode::Exact).expect("products");
        close(&answers, &reference, 2e-5, &what);
        // A row a product, and rounded activations.
        let spread = ops::broadcast_to(x.expand_dims(1).expect("an axis"), &[tokens as i32, top as i32, k as i32])
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

/// Dense weights packed whole, or in parts of 16 or more rows.
fn grown(source: &Unpacked, n: usize, random: &mut Random) -> Weights {
    let Unpacked::Dense(dense) = source else { unreachable!("dense weights") };
    let step = Growing::ROWS * (1 + random.below(3));
    if n <= step {
        return Weights::new(source, 1).expect("it packs");
    }
    let width = dense.values.len() / n;
    let part = |from: usize| {
        let to = (from + step).min(n);
        Unpacked::Dense(Dense { n: to - from, values: &dense.values[from * width..to * width], ..*dense })
    };
    let mut growing = Growing::new(n, &part(0)).expect("it packs");
    assert!(growing.push(&Unpacked::Dense(Dense { n: 2 * n, ..*dense })).is_err(), "more rows than there are");
    (step..n).step_by(step).for_each(|from| growing.push(&part(from)).expect("it packs"));
    growing.finish(1).expect("it is whole")
}

#[test]
fn dense_matmul() {
    let mut random = Random(2);
    for round in 0..40 {
        let (m, n, k) = (1 + random.below(40) as i32, 1 + random.below(90) as i32, 1 + random.below(200) as i32);
        let float = random.pick(&FLOATS);
        let weight = random.array(&[n, k]).as_dtype(dtype(float)).expect("a cast");
        let values = &float_bytes(&weight, float);
        let source = Unpacked::Dense(Dense { n: n as usize, k: k as usize, float, values });
        let ours = grown(&source, n as usize, &mut random);
        let x = random.strided(m, k);
        let reference = x.matmul(weight.as_dtype(Dtype::Float32).expect("a cast").t()).expect("MLX multiplies");
        let bias = random.array(&[n]);
        let reference = reference.add(&bias).expect("a sum");
        let ours = Linear { weights: ours, bias: Some(bias.as_slice::<f32>().into()), mode: Mode::Fast };
        let product = mlx_cpu::linear(&ours, &x, None).expect("a matmul");
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
            let weight = weight.map(|weight| weight.as_slice::<f32>().into());
            let ours = mlx_cpu::rms_norm(&Norm { weight, dim: dim as usize, eps: 1e-5 }, &x).expect("a norm");
            close(&ours, &reference, 1e-5, &format!("round {round}: {rows} x {heads} x {dim}"));
        }
        let bias = random.array(&[heads * dim]);
        let wide = random.array(&[heads * dim]);
        let reference = fast::layer_norm(&x, Some(&wide), Some(&bias), 1e-5).expect("MLX norms");
        let vector = |array: &Array| Some(array.as_slice::<f32>().into());
        let norm = LayerNorm { weight: vector(&wide), bias: vector(&bias), eps: 1e-5 };
        close(
            &mlx_cpu::layer_norm(&norm, &x).expect("a norm"),
            &reference,
            1e-4,
            &format!("round {round}: layer_norm"),
        );
        let up = random.strided(rows, heads * dim);
        let reference = ops::sigmoid(&x).and_then(|gate| gate.multiply(&x)?.multiply(&up)).expect("MLX gates");
        close(&mlx_cpu::silu_mul(&x, &up).expect("a gate"), &reference, 1e-5, &format!("round {round}: silu_mul"));
    }
}
