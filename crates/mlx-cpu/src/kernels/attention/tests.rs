//! Attention against f64 over random shapes; the same bits however queries are grouped and shared out.

use half::f16;

use super::*;
use crate::kernels::{
    kv::{PageMut, kv_append},
    level::{levels, with_level},
    testing::{Random, close, same_bits, with_threads},
};

/// A sequence's keys and values, plain and in pages.
struct Cache {
    kv_heads: usize,
    dim: usize,
    /// [length, kv_heads, dim], as the pages hold them.
    k: Vec<f32>,
    v: Vec<f32>,
    half: Vec<Vec<f16>>,
    single: Vec<Vec<f32>>,
}

impl Cache {
    fn new(random: &mut Random, length: usize, kv_heads: usize, dim: usize, page: usize, half: bool) -> Cache {
        let width = kv_heads * dim;
        let mut numbers = || -> Vec<f32> {
            let stored = |x: &f32| if half { f16::from_f32(*x).to_f32() } else { *x };
            random.vec(length * width).iter().map(stored).collect()
        };
        let (k, v) = (numbers(), numbers());
        let pages = length.div_ceil(page);
        let numbers = page_len(page, kv_heads, dim);
        let mut cache = Cache { kv_heads, dim, k, v, half: Vec::new(), single: Vec::new() };
        if half {
            // Not a number where nothing was written: reading it would show.
            cache.half = vec![vec![f16::NAN; numbers]; pages];
        } else {
            cache.single = vec![vec![f32::NAN; numbers]; pages];
        }
        let mut at = 0;
        while at < length {
            let count = (page - at % page).min(length - at).min(1 + random.below(30));
            let k = Heads::packed(&cache.k[at * width..][..count * width], kv_heads, dim);
            let v = Heads::packed(&cache.v[at * width..][..count * width], kv_heads, dim);
            let target = match half {
                true => PageMut::F16(&mut cache.half[at / page]),
                false => PageMut::F32(&mut cache.single[at / page]),
            };
            kv_append(target, k, v, at % page);
            at += count;
        }
        cache
    }

    fn pages(&self) -> Vec<Page<'_>> {
        let half = self.half.iter().map(|page| Page::F16(page));
        half.chain(self.single.iter().map(|page| Page::F32(page))).collect()
    }

    fn reference(&self, op: &Attention, token: usize, head: usize, end: usize) -> Vec<f64> {
        let kv = head / (op.q.heads / self.kv_heads);
        let row = |data: &[f32], position: usize| -> Vec<f64> {
            let start = (position * self.kv_heads + kv) * self.dim;
            data[start..start + self.dim].iter().map(|x| f64::from(*x)).collect()
        };
        let first = op.window.map_or(0, |window| end.saturating_sub(window));
        let score = |position| {
            let q = op.q.vector(token, head).iter();
            let dot: f64 = q.zip(row(&self.k, position)).map(|(q, k)| f64::from(*q) * k).sum();
            let score = dot * f64::from(op.scale);
            op.soft_cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
        };
        let scores: Vec<f64> = (first..end).map(score).collect();
        let sink = op.sinks.map(|sinks| f64::from(sinks[head]));
        let total: f64 = scores.iter().chain(&sink).map(|score| score.exp()).sum();
        let mut out = vec![0.0; self.dim];
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
    for (kv_heads, group, dim, page) in
        [(1, 1, 8, 16), (3, 3, 64, 64), (2, 7, 128, 32), (1, 8, 80, 48), (2, 2, 100, 256), (1, 5, 256, 16)]
    {
        for half in [true, false] {
            let heads = kv_heads * group;
            let caches: Vec<Cache> = [1 + random.below(40), 600 + random.below(600), 1 + random.below(200)]
                .map(|length| Cache::new(&mut random, length, kv_heads, dim, page, half))
                .into();
            let pages: Vec<Vec<Page>> = caches.iter().map(Cache::pages).collect();
            let mut sequences = Vec::new();
            for (cache, pages) in caches.iter().zip(&pages) {
                let length = cache.k.len() / (kv_heads * dim);
                sequences.push(Sequence { pages, length, queries: (1 + random.below(9)).min(length) });
            }
            let tokens = sequences.iter().map(|sequence| sequence.queries).sum();
            let data = random.vec(tokens * (heads * dim + 4));
            let q = Heads { data: &data, tokens, heads, dim, token_stride: heads * dim + 4, head_stride: dim };
            let sinks = random.vec(heads);
            let plain =
                Attention { q, sequences: &sequences, kv_heads, scale: 0.3, window: None, sinks: None, soft_cap: None };
            let variants = [
                plain,
                Attention { window: Some(1 + random.below(100)), ..plain },
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
                for level in levels() {
                    let got = with_level(level, || run(&op));
                    let what = format!("{kv_heads}x{group} heads of {dim}, pages {page}, half {half}, {level:?}");
                    close(&got, &want, 2e-6, &what);
                }
            }
        }
    }
}

#[test]
fn chunks_threads_and_company_do_not_change_the_bits() {
    let mut random = Random::new(52);
    let (kv_heads, heads, dim, length) = (2, 6, 64, 1300);
    let width = heads * dim;
    for window in [None, Some(600)] {
        let cache = Cache::new(&mut random, length, kv_heads, dim, 64, true);
        let pages = cache.pages();
        let data = random.vec(length * width);
        let run = |first: usize, count: usize, times: usize| {
            let sequence = Sequence { pages: &pages, length: first + count, queries: count };
            let q = data[first * width..][..count * width].repeat(times);
            run(&Attention {
                q: Heads::packed(&q, heads, dim),
                sequences: &vec![sequence; times],
                kv_heads,
                scale: 0.125,
                window,
                sinks: None,
                soft_cap: None,
            })
        };
        for level in levels() {
            with_level(level, || {
                let all = with_threads(1, || run(0, length, 1));
                for (threads, count, times) in [(1, 1, 1), (2, 1, 1), (4, 1, 1), (3, 7, 1), (2, 300, 1), (2, 1, 5)] {
                    for first in [0, 5, 511, 700, length - count].map(|first| first.min(length - count)) {
                        let some = with_threads(threads, || run(first, count, times));
                        for some in some.chunks(count * width) {
                            let what = format!("{level:?}, {count} queries from {first}, {threads} threads");
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
    let cache = Cache::new(&mut Random::new(53), 32, 1, 16, 32, true);
    let pages = cache.pages();
    let q = [0.0; 16];
    let op = Attention {
        q: Heads::packed(&q, 1, 16),
        sequences: &[Sequence { pages: &pages, length: 33, queries: 1 }],
        kv_heads: 1,
        scale: 1.0,
        window: None,
        sinks: None,
        soft_cap: None,
    };
    assert!(std::panic::catch_unwind(|| run(&op)).is_err());
}
