//! Attention over pages.

use std::sync::Arc;

use mlx_cpu::{Attend, Growth, KvFormat, Pages, Part, QkNorm, Rope, Sees};
use mlx_rs::{Array, fast, ops, ops::indexing::TryIndexOp};

use crate::support::*;

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
    sees: Sees,
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
            sees: random.pick(&[Sees::Before, Sees::Before, Sees::Window(5), Sees::Window(33), Sees::All]),
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
            sees: self.sees,
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
        let mask = mask(t, of.offset, self.sees);
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
                    "round {round}, call {call}, sequence {index}: {heads}/{kv_heads} heads of {dim}, {t} at {}, {format:?}, {:?}, sinks {:?}, cap {:?}, norm {}",
                    of.offset,
                    layer.sees,
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
        let layer = Layer { sees: Sees::Before, ..Layer::random(&mut random) };
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
        sees: Sees::Before,
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

fn mask(t: usize, offset: usize, sees: Sees) -> Array {
    let sees = |query: usize, key: usize| match sees {
        Sees::Before => key <= query,
        Sees::Window(window) => key <= query && key + window > query,
        Sees::All => true,
    };
    let values: Vec<f32> = (offset..offset + t)
        .flat_map(|query| (0..offset + t).map(move |key| if sees(query, key) { 0.0 } else { f32::NEG_INFINITY }))
        .collect();
    Array::from_slice(&values, &[t as i32, (offset + t) as i32])
}
