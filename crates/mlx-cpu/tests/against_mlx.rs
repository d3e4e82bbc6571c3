//! Every op of this crate beside MLX's own on random shapes, odd sizes and strides. MLX is the reference here; the
//! kernels' own tests compare with plain loops, at every dispatch level and number of threads.

use std::sync::Arc;

use mlx_cpu::{
    Activation, Affine, Attend, Decay, FeedForward, Float, Growth, Joined, KvFormat, LayerNorm, Linear, Mode, Norm,
    Pages, Part, QkNorm, Rope, Weights,
};
use mlx_rs::{
    Array, Dtype, fast, ops,
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

/// One sequence's part of a batch, and all of its keys and values so far by MLX's ops.
#[derive(Default)]
struct Growing {
    pages: Pages,
    offset: usize,
    k: Vec<Array>,
    v: Vec<Array>,
}

/// What a layer does, by MLX's ops over all keys and values.
struct Layer {
    heads: usize,
    kv_heads: usize,
    dim: usize,
    dims: usize,
    interleaved: bool,
    frequencies: Array,
    norm: Option<[Array; 2]>,
    window: Option<usize>,
    sinks: Option<Array>,
    soft_cap: Option<f32>,
}

impl Layer {
    fn random(random: &mut Random) -> Layer {
        let (kv_heads, group, dim) = (1 + random.below(3), 1 + random.below(4), random.pick(&[16, 32, 64, 80, 128]));
        let dims = random.pick(&[dim, dim / 2]);
        let periods: Vec<f32> = (0..dims / 2).map(|pair| 10_000f32.powf(2.0 * pair as f32 / dims as f32)).collect();
        let heads = kv_heads * group;
        let norm = (random.below(2) == 0).then(|| [random.array(&[dim as i32]), random.array(&[dim as i32])]);
        Layer {
            heads,
            kv_heads,
            dim,
            dims,
            interleaved: random.below(2) == 0,
            frequencies: Array::from_slice(&periods, &[dims as i32 / 2]),
            norm,
            window: random.pick(&[None, None, Some(5), Some(33)]),
            sinks: (random.below(3) == 0).then(|| random.array(&[heads as i32])),
            soft_cap: random.pick(&[None, None, Some(2.0)]),
        }
    }

    fn ours(&self, format: KvFormat) -> Attend {
        let shared = |array: &Array| -> Arc<[f32]> { values(array).into() };
        Attend {
            heads: self.heads,
            kv_heads: self.kv_heads,
            dim: self.dim,
            scale: (self.dim as f32).powf(-0.5),
            norm: self.norm.as_ref().map(|[q, k]| QkNorm { q: shared(q), k: shared(k), eps: 1e-5 }),
            rope: Rope {
                interleaved: self.interleaved,
                inverse: values(&self.frequencies).into_iter().map(|period| 1.0 / period).collect(),
                factor: 1.0,
                axes: None,
            },
            window: self.window,
            sinks: self.sinks.as_ref().map(shared),
            soft_cap: self.soft_cap,
            format,
        }
    }

    /// `[t, heads * dim]` → `[1, heads, t, dim]`, normed and turned.
    fn turned(&self, x: &Array, heads: usize, norm: Option<&Array>, offset: usize) -> Array {
        let x = by_head(x, heads, self.dim);
        let x = norm.map_or(Ok(x.clone()), |weight| fast::rms_norm(&x, Some(weight), 1e-5)).expect("MLX norms");
        fast::rope(&x, self.dims as i32, self.interleaved, None, 1.0, offset as i32, &self.frequencies)
            .expect("MLX turns")
    }

    /// The next tokens of a sequence, attended by plain ops: scores, cap, mask, sinks, softmax.
    fn attend(&self, [q, k, v]: [&Array; 3], of: &mut Growing) -> Array {
        let t = q.dim(0) as usize;
        let norm = |which: usize| self.norm.as_ref().map(|norm| &norm[which]);
        of.k.push(self.turned(k, self.kv_heads, norm(1), of.offset));
        of.v.push(by_head(v, self.kv_heads, self.dim));
        let q = self.turned(q, self.heads, norm(0), of.offset);
        let mask = mask(t, of.offset, self.window);
        let plain = || -> mlx_rs::error::Result<Array> {
            let all = |parts: &[Array]| -> mlx_rs::error::Result<Array> {
                let whole = ops::concatenate(parts, 2)?;
                let (length, dim) = (whole.dim(2), whole.dim(3));
                let group = (self.heads / self.kv_heads) as i32;
                let apart = whole.reshape(&[1, self.kv_heads as i32, 1, length, dim])?;
                ops::broadcast_to(&apart, &[1, self.kv_heads as i32, group, length, dim])?.reshape(&[
                    1,
                    self.heads as i32,
                    length,
                    dim,
                ])
            };
            let (keys, values) = (all(&of.k)?, all(&of.v)?);
            let scale = Array::from_f32((self.dim as f32).powf(-0.5));
            let mut scores = q.matmul(keys.transpose_axes(&[0, 1, 3, 2])?)?.multiply(scale)?;
            if let Some(cap) = self.soft_cap {
                let cap = Array::from_f32(cap);
                scores = ops::tanh(scores.divide(&cap)?)?.multiply(&cap)?;
            }
            scores = scores.add(&mask)?;
            let length = scores.dim(3);
            if let Some(sinks) = &self.sinks {
                let sinks = sinks.reshape(&[1, self.heads as i32, 1, 1])?;
                let sinks = ops::broadcast_to(&sinks, &[1, self.heads as i32, t as i32, 1])?;
                scores = ops::concatenate(&[scores, sinks], 3)?;
            }
            let weights = ops::softmax_axis(&scores, -1, true)?.try_index((.., .., .., ..length))?;
            weights.matmul(values)?.transpose_axes(&[0, 2, 1, 3])?.reshape(&[t as i32, (self.heads * self.dim) as i32])
        };
        of.offset += t;
        plain().expect("MLX attends")
    }
}

fn by_head(x: &Array, heads: usize, dim: usize) -> Array {
    x.reshape(&[1, x.dim(0), heads as i32, dim as i32]).and_then(|x| x.transpose_axes(&[0, 2, 1, 3])).expect("heads")
}

/// How far a format may be from f32, as a share of the largest value.
fn tolerance(format: KvFormat) -> f32 {
    match format {
        KvFormat::F32 => 3e-5,
        KvFormat::F16 => 2e-3,
        KvFormat::BF16 => 2e-2,
        KvFormat::Int8 => 2e-2,
        KvFormat::Int4 => 0.25,
    }
}

/// Ragged batches that grow call by call, queries, keys and values apart or columns of one array, beside MLX.
#[test]
fn attention_over_pages() {
    let mut random = Random(4);
    for round in 0..40 {
        let layer = Layer::random(&mut random);
        let formats = [KvFormat::F32, KvFormat::F16, KvFormat::BF16, KvFormat::Int8, KvFormat::Int4];
        let format = formats[round % formats.len()];
        let settings = layer.ours(format);
        let (heads, kv_heads, dim) = (layer.heads, layer.kv_heads, layer.dim);
        let mut sequences: Vec<Growing> = (0..1 + random.below(3)).map(|_| Growing::default()).collect();
        for call in 0..5 {
            let tokens: Vec<usize> = sequences.iter().map(|_| random.pick(&[1, 1, 2, 31, 32, 70])).collect();
            let total: usize = tokens.iter().sum();
            let widths = [heads * dim, kv_heads * dim, kv_heads * dim];
            // Heads of a joined projection lie a little apart, as where each is followed by something else.
            let gap = random.pick(&[0, 0, dim]);
            let joined = random.array(&[total as i32, ((widths[0] + 2 * widths[1]) / dim * (dim + gap)) as i32]);
            let apart = widths.map(|width| random.strided(total as i32, width as i32));
            let starts = [0, heads, heads + kv_heads].map(|head| head * (dim + gap));
            let parts: [Part; 3] = std::array::from_fn(|i| match round % 2 {
                0 => Part { array: &joined, start: starts[i], stride: dim + gap },
                _ => Part { array: &apart[i], start: 0, stride: dim },
            });
            let plain: [Array; 3] = std::array::from_fn(|i| {
                let part = parts[i];
                let columns = |head: usize| {
                    let from = (part.start + head * part.stride) as i32;
                    part.array.try_index((.., from..from + dim as i32)).expect("a head")
                };
                ops::concatenate(&(0..widths[i] / dim).map(columns).collect::<Vec<Array>>(), 1).expect("heads")
            });
            // A held copy of a sequence must not change when the sequence goes on.
            let held: Vec<Pages> = sequences.iter().map(|of| of.pages.clone()).collect();
            let before: Vec<Vec<u8>> = held.iter().map(bytes).collect();
            let growths = sequences.iter_mut().zip(&tokens);
            let growths = growths.map(|(of, &tokens)| Growth { tokens, pages: &mut of.pages }).collect();
            let ours = mlx_cpu::attend(&settings, parts, None, growths).expect("attention");
            let mut first = 0;
            for (index, (of, &t)) in sequences.iter_mut().zip(&tokens).enumerate() {
                let rows = |x: &Array| x.try_index((first..first + t as i32, ..)).expect("a sequence's rows");
                let what = format!(
                    "round {round}, call {call}, sequence {index}: {heads}/{kv_heads} heads of {dim}, {t} at {}, {format:?}, window {:?}, sinks {:?}, cap {:?}, norm {}",
                    of.offset,
                    layer.window,
                    layer.sinks.is_some(),
                    layer.soft_cap,
                    layer.norm.is_some()
                );
                let reference = layer.attend([&rows(&plain[0]), &rows(&plain[1]), &rows(&plain[2])], of);
                close(&rows(&ours), &reference, tolerance(format), &what);
                assert_eq!(bytes(&held[index]), before[index], "{what}: shared pages changed");
                first += t as i32;
            }
        }
    }
}

/// What a sequence's pages hold.
fn bytes(pages: &Pages) -> Vec<u8> {
    let arrays = pages.arrays();
    arrays.iter().for_each(|page| page.eval().expect("it evaluates"));
    arrays.iter().flat_map(|page| page.as_slice::<u8>().to_vec()).collect()
}

/// Attention of all tokens at once, token by token, and of two sequences at once: the same bits, in pages written in
/// place where nobody else holds them.
#[test]
fn company_and_chunks_do_not_change_the_bits() {
    let mut random = Random(7);
    for format in [KvFormat::F32, KvFormat::F16, KvFormat::BF16, KvFormat::Int8, KvFormat::Int4] {
        let layer = Layer { window: None, ..Layer::random(&mut random) };
        let (settings, t) = (layer.ours(format), 75);
        let [q, k, v] =
            [layer.heads, layer.kv_heads, layer.kv_heads].map(|heads| random.array(&[t, (heads * layer.dim) as i32]));
        let attend = |sequences: Vec<(std::ops::Range<i32>, &mut Pages)>| -> Vec<f32> {
            let rows = |x: &Array| {
                let parts: Vec<Array> =
                    sequences.iter().map(|(of, _)| x.try_index((of.clone(), ..)).expect("rows")).collect();
                ops::concatenate(&parts, 0).expect("rows")
            };
            let (q, k, v) = (rows(&q), rows(&k), rows(&v));
            let part = |array| Part { array, start: 0, stride: layer.dim };
            let growths = sequences.into_iter().map(|(of, pages)| Growth { tokens: of.len(), pages }).collect();
            values(&mlx_cpu::attend(&settings, [part(&q), part(&k), part(&v)], None, growths).expect("attention"))
        };
        let mut whole = Pages::default();
        let all = attend(vec![(0..t, &mut whole)]);
        let (mut pages, mut one_by_one, mut place) = (Pages::default(), Vec::new(), None);
        for token in 0..t {
            one_by_one.extend(attend(vec![(token..token + 1, &mut pages)]));
            let now = pages.arrays().last().map(|page| page.as_slice::<u8>().as_ptr());
            assert!(token % 32 == 0 || now == place, "{format:?}: the page of token {token} was copied");
            place = now;
        }
        assert_eq!(all, one_by_one, "{format:?}: token by token");
        assert_eq!(bytes(&whole), bytes(&pages), "{format:?}: pages");
        let (mut a, mut b) = (Pages::default(), whole.cut(40));
        let together = attend(vec![(0..33, &mut a), (40..t, &mut b)]);
        let width = all.len() / t as usize;
        assert_eq!(together, [&all[..33 * width], &all[40 * width..]].concat(), "{format:?}: two at once");
        assert_eq!(bytes(&whole), bytes(&b), "{format:?}: pages from a cut");
        assert_eq!(bytes(&whole), bytes(&pages), "{format:?}: the pages that were cut");
    }
}

/// Positions in time, height and width against f64, by way of the scores of single tokens.
#[test]
fn positions_on_three_axes() {
    let mut random = Random(8);
    let (dim, pairs) = (16, 8);
    let inverse: Arc<[f32]> = (0..pairs).map(|pair| 100f32.powf(-(pair as f32) / 8.0)).collect();
    let axes: Arc<[u8]> = vec![0, 1, 2, 0, 1, 2, 0, 0].into();
    let rope = Rope { interleaved: false, inverse: inverse.clone(), factor: 1.0, axes: Some(axes.clone()) };
    let plain = Rope { axes: None, ..rope.clone() };
    let settings = |rope| Attend {
        heads: 1,
        kv_heads: 1,
        dim,
        scale: 1.0,
        norm: None,
        rope,
        window: None,
        sinks: None,
        soft_cap: None,
        format: KvFormat::F32,
    };
    let t = 6;
    let [q, k, v] = [(); 3].map(|()| random.array(&[t, dim as i32]));
    let part = |array| Part { array, start: 0, stride: dim };
    let attend = |rope: &Rope, at: Option<&Array>| {
        let mut pages = Pages::default();
        let growth = vec![Growth { tokens: t as usize, pages: &mut pages }];
        values(
            &mlx_cpu::attend(&settings(rope.clone()), [part(&q), part(&k), part(&v)], at, growth).expect("attention"),
        )
    };
    let at: Vec<i32> = (0..3 * t).map(|_| random.below(50) as i32).collect();
    let ours = attend(&rope, Some(&Array::from_slice(&at, &[t, 3])));
    let turn = |x: &[f32], token: usize| -> Vec<f64> {
        let mut y = vec![0.0; dim];
        for pair in 0..pairs {
            let angle = f64::from(at[3 * token + usize::from(axes[pair])]) * f64::from(inverse[pair]);
            let (a, b) = (f64::from(x[pair]), f64::from(x[pair + pairs]));
            y[pair] = a * angle.cos() - b * angle.sin();
            y[pair + pairs] = a * angle.sin() + b * angle.cos();
        }
        y
    };
    let [q, k, v] = [&q, &k, &v].map(values);
    for token in 0..t as usize {
        let query = turn(&q[token * dim..][..dim], token);
        let score = |key: usize| -> f64 {
            query.iter().zip(turn(&k[key * dim..][..dim], key)).map(|(q, k)| q * k).sum::<f64>().exp()
        };
        let weights: Vec<f64> = (0..=token).map(score).collect();
        let total: f64 = weights.iter().sum();
        for i in 0..dim {
            let want: f64 =
                weights.iter().enumerate().map(|(key, weight)| weight / total * f64::from(v[key * dim + i])).sum();
            assert!((f64::from(ours[token * dim + i]) - want).abs() < 1e-5, "token {token}, feature {i}");
        }
    }
    let counted: Vec<i32> = (0..t).flat_map(|at| [at; 3]).collect();
    let counted = Array::from_slice(&counted, &[t, 3]);
    assert_eq!(attend(&rope, Some(&counted)), attend(&plain, None), "text alone");
    assert_eq!(attend(&rope, None), attend(&plain, None), "text alone");
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
        let dense = |random: &mut Random, n: i32, k: i32| {
            let weight = random.array(&[n, k]);
            let packed = Weights::dense(n as usize, k as usize, Float::F32, &float_bytes(&weight, Float::F32));
            (weight, Linear { weights: packed, bias: None, mode: Mode::Exact })
        };
        let (both, joined) = dense(&mut random, 2 * hidden, dim);
        let halves = both.split(2, 0).expect("halves");
        let apart = halves.iter().map(|half| {
            let packed = Weights::dense(hidden as usize, dim as usize, Float::F32, &float_bytes(half, Float::F32));
            Linear { weights: packed, bias: None, mode: Mode::Exact }
        });
        let gate_up = if round % 2 == 0 { vec![joined] } else { apart.collect() };
        let gate_up = Joined::new(gate_up, &[hidden as usize; 2]).expect("it joins");
        let (down_weight, down) = dense(&mut random, dim, hidden);
        let weight = random.array(&[dim]);
        let norm = Norm { weight: Some(weight.as_slice::<f32>().into()), dim: dim as usize, eps: 1e-5 };
        let block = Arc::new(FeedForward { norm, gate_up, activation: Activation::Silu, down });
        let x = random.strided(rows, dim);
        let by_ops = || -> mlx_rs::error::Result<Array> {
            let normed = fast::rms_norm(&x, &weight, 1e-5)?;
            let (gate, up) = (normed.matmul(halves[0].t())?, normed.matmul(halves[1].t())?);
            x.add(ops::sigmoid(&gate)?.multiply(&gate)?.multiply(&up)?.matmul(down_weight.t())?)
        };
        let ours = mlx_cpu::feed_forward(&block, &x).expect("a block");
        close(&ours, &by_ops().expect("MLX computes"), 1e-4, &format!("round {round}: {rows} x {dim} x {hidden}"));
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
