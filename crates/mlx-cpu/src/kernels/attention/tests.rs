//! Attention against f64 over random shapes and formats; the same bits however queries are grouped and shared out.

use super::*;
use crate::kernels::{
    kv::{
        Format,
        tests::{FORMATS, Write, stored},
    },
    level::{levels, with_level},
    testing::{Random, close, same_bits, with_threads},
};

/// A sequence's keys and values, plain and in pages.
struct Cache {
    layout: Layout,
    /// [length, kv_heads, dim], as the pages hold them.
    k: Vec<f64>,
    v: Vec<f64>,
    pages: Vec<Vec<u8>>,
}

impl Cache {
    fn new(random: &mut Random, length: usize, layout: Layout, level: Level) -> Cache {
        let Layout { format, positions, kv_heads, dim } = layout;
        let width = kv_heads * dim;
        let (k, v) = (random.vec(length * width), random.vec(length * width));
        // Not a number where nothing was written: reading it would show.
        let mut pages = vec![vec![0xff; layout.bytes()]; length.div_ceil(positions)];
        let mut at = 0;
        while at < length {
            let count = (positions - at % positions).min(length - at).min(1 + random.below(30));
            let part = at * width..(at + count) * width;
            let (k, v) = (&k[part.clone()], &v[part]);
            level.run(Write { layout: &layout, page: &mut pages[at / positions], at: at % positions, k, v });
            at += count;
        }
        let held = |x: &[f32]| x.chunks(dim).flat_map(|x| stored(format, x)).collect();
        Cache { layout, k: held(&k), v: held(&v), pages }
    }

    fn pages(&self) -> Vec<&[u8]> {
        self.pages.iter().map(|page| &page[..]).collect()
    }

    fn reference(&self, op: &Attention, token: usize, head: usize, end: usize) -> Vec<f64> {
        let Layout { kv_heads, dim, .. } = self.layout;
        let kv = head / (op.q.heads / kv_heads);
        let row = |data: &[f64], position: usize| data[(position * kv_heads + kv) * dim..][..dim].to_vec();
        let (first, end) = match op.sees {
            Sees::Before => (0, end),
            Sees::Window(window) => (end.saturating_sub(window), end),
            Sees::All => (0, self.k.len() / (kv_heads * dim)),
        };
        let score = |position| {
            let q = op.q.vector(token, head).iter();
            let dot: f64 = q.zip(row(&self.k, position)).map(|(q, k)| f64::from(*q) * k).sum();
            let score = dot * f64::from(op.scale);
            op.soft_cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
        };
        let scores: Vec<f64> = (first..end).map(score).collect();
        let sink = op.sinks.map(|sinks| f64::from(sinks[head]));
        let total: f64 = scores.iter().chain(&sink).map(|score| score.exp()).sum();
        let mut out = vec![0.0; dim];
        for (position, score) in (first..end).zip(scores) {
            for (out, v) in out.iter_mut().zip(row(&self.v, position)) {
                *out += score.exp() / total * v;
            }
        }
        out
    }
}

fn run(op: &Attention) -> Vec<f32> {
    let mut out = vec![0.0; op.q.tokens * op.q.heads * op.q.dim];
    attention(op, HeadsMut::packed(&mut out, op.q.heads, op.q.dim));
    out
}

#[test]
fn attention_agrees_with_f64() {
    let mut random = Random::new(51);
    for (kv_heads, group, dim, positions) in [
        (1, 1, 8, 16),
        (3, 3, 64, 32),
        (2, 7, 128, 32),
        (1, 8, 80, 48),
        (2, 2, 100, 256),
        (1, 5, 256, 16),
        (1, 13, 32, 64),
    ] {
        for (format, level) in FORMATS.into_iter().flat_map(|format| levels().map(move |level| (format, level))) {
            let heads = kv_heads * group;
            let layout = Layout { format, positions, kv_heads, dim };
            let caches: Vec<Cache> = [1 + random.below(40), 600 + random.below(600), 1 + random.below(200)]
                .map(|length| Cache::new(&mut random, length, layout, level))
                .into();
            let pages: Vec<Vec<&[u8]>> = caches.iter().map(Cache::pages).collect();
            let mut sequences = Vec::new();
            for (cache, pages) in caches.iter().zip(&pages) {
                let length = cache.k.len() / (kv_heads * dim);
                sequences.push(Sequence { pages, length, queries: (1 + random.below(9)).min(length) });
            }
            let tokens = sequences.iter().map(|sequence| sequence.queries).sum();
            let data = random.vec(tokens * (heads * dim + 4));
            let q = Heads { data: &data, tokens, heads, dim, token_stride: heads * dim + 4, head_stride: dim };
            let sinks = random.vec(heads);
            let plain = Attention {
                q,
                sequences: &sequences,
                layout,
                scale: 0.3,
                sees: Sees::Before,
                sinks: None,
                soft_cap: None,
            };
            let variants = [
                plain,
                Attention { sees: Sees::Window(1 + random.below(100)), ..plain },
                Attention { sees: Sees::All, ..plain },
                Attention { sinks: Some(&sinks), soft_cap: Some(1.5), ..plain },
            ];
            for op in variants {
                let mut want = Vec::new();
                for (sequence, cache) in sequences.iter().zip(&caches) {
                    for query in 0..sequence.queries {
                        let token = want.len() / (heads * dim);
                        let end = sequence.length - sequence.queries + query + 1;
                        want.extend((0..heads).flat_map(|head| cache.reference(&op, token, head, end)));
                    }
                }
                let got = with_level(level, || run(&op));
                close(&got, &want, 2e-6, &format!("{heads} heads, {layout:?}, {level:?}"));
            }
        }
    }
}

#[test]
fn chunks_threads_and_company_do_not_change_the_bits() {
    let mut random = Random::new(52);
    let (kv_heads, heads, dim, length) = (2, 6, 64, 1300);
    let width = heads * dim;
    for (format, sees) in [
        (Format::F16, Sees::Before),
        (Format::F16, Sees::Window(600)),
        (Format::Int8, Sees::Before),
        (Format::Int4, Sees::Window(70)),
    ] {
        let layout = Layout { format, positions: 32, kv_heads, dim };
        let cache = Cache::new(&mut random, length, layout, level());
        let pages = cache.pages();
        let data = random.vec(length * width);
        let run = |first: usize, count: usize, times: usize| {
            let sequence = Sequence { pages: &pages, length: first + count, queries: count };
            let q = data[first * width..][..count * width].repeat(times);
            run(&Attention {
                q: Heads::packed(&q, heads, dim),
                sequences: &vec![sequence; times],
                layout,
                scale: 0.125,
                sees,
                sinks: None,
                soft_cap: None,
            })
        };
        for level in levels() {
            with_level(level, || {
                let all = with_threads(1, || run(0, length, 1));
                for (threads, count, times) in [(1, 1, 1), (2, 1, 1), (8, 1, 1), (3, 7, 1), (2, 300, 1), (2, 1, 5)] {
                    for first in [0, 5, 511, 700, length - count].map(|first| first.min(length - count)) {
                        let some = with_threads(threads, || run(first, count, times));
                        for some in some.chunks(count * width) {
                            let what = format!("{format:?}, {level:?}, {count} from {first}, {threads} threads");
                            same_bits(some, &all[first * width..][..count * width], &what);
                        }
                    }
                }
            });
        }
    }
}

#[test]
fn a_page_too_few_is_refused() {
    let layout = Layout { format: Format::F16, positions: 32, kv_heads: 1, dim: 16 };
    let cache = Cache::new(&mut Random::new(53), 32, layout, level());
    let pages = cache.pages();
    let q = [0.0; 16];
    let op = Attention {
        q: Heads::packed(&q, 1, 16),
        sequences: &[Sequence { pages: &pages, length: 33, queries: 1 }],
        layout,
        scale: 1.0,
        sees: Sees::Before,
        sinks: None,
        soft_cap: None,
    };
    assert!(std::panic::catch_unwind(|| run(&op)).is_err());
}
