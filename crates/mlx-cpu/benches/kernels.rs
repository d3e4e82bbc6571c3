//! Speed of the CPU kernels on this machine: `cargo bench -p mlx-cpu`. Prints GB/s of weights or keys read while
//! decoding and GFLOP/s while prefilling, for each instruction set the machine has.

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use mlx_cpu::kernels::{
    attention::{Attention, Sees, Sequence, attention},
    delta::{GatedDelta, Recurrent, gated_delta},
    kv::{Format as KvFormat, Layout},
    level::{Level, levels, with_level},
    matmul::{Matmul, Mode, matmul},
    pack::{Affine, Float, Format, Micro, Packed, pack_affine, pack_dense, pack_micro},
    pool,
    rows::{Heads, HeadsMut, Rows, RowsMut},
    sample::{Choice, Draw, sample},
};

/// The median and the fastest twentieth of runs over a while: on a shared machine the second says what a kernel can do.
#[derive(Clone, Copy)]
struct Times {
    median: f64,
    best: f64,
}

fn measure(mut body: impl FnMut()) -> Times {
    body();
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < Duration::from_millis(300) || times.len() < 3 {
        let begin = Instant::now();
        body();
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Times { median: times[times.len() / 2], best: times[times.len() / 20] }
}

fn report(what: &str, times: Times, bytes: usize, flops: usize) {
    let rates = |seconds: f64| (bytes as f64 / seconds / 1e9, flops as f64 / seconds / 1e9);
    let ((median_gb, median_gf), (best_gb, best_gf)) = (rates(times.median), rates(times.best));
    println!(
        "{what:66} {:8.1} us {median_gb:6.1} GB/s {median_gf:6.0} GFLOP/s  best {:8.1} us {best_gb:6.1} {best_gf:6.0}",
        times.median * 1e6,
        times.best * 1e6,
    );
}

fn noise(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Copies of one matrix, together larger than most caches where `spread` is set, so that decoding reads memory.
struct Weights {
    packed: Packed,
    copies: Vec<Vec<u8>>,
}

impl Weights {
    fn new(n: usize, k: usize, bits: usize, group: usize, spread: bool) -> Weights {
        let (packed, data) = if bits == 16 {
            let packed = Packed::dense(n, k, Float::F16);
            let mut data = vec![0; packed.bytes()];
            pack_dense(&packed, &vec![0x20; n * k * 2], &mut data);
            (packed, data)
        } else {
            let packed = Packed::affine(n, k, bits, group, Float::F16).expect("a format there is");
            let words: Vec<u32> = (0..n * k * bits / 32).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
            let scales = vec![0x20; n * k / group * 2];
            let mut data = vec![0; packed.bytes()];
            pack_affine(&packed, &Affine { bits, weights: &words, scales: &scales, biases: &scales }, &mut data);
            (packed, data)
        };
        Weights::copied(packed, data, spread)
    }

    fn micro(n: usize, k: usize, micro: Micro) -> Weights {
        let packed = Packed::micro(n, k, micro).expect("a format there is");
        let words: Vec<u32> = (0..n * k * micro.bits() / 32).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
        let mut data = vec![0; packed.bytes()];
        pack_micro(&packed, &words, &vec![0x38; n * k / micro.group()], &mut data);
        Weights::copied(packed, data, true)
    }

    fn copied(packed: Packed, data: Vec<u8>, spread: bool) -> Weights {
        let copies = if spread { (400 << 20) / data.len() } else { 1 };
        Weights { packed, copies: vec![data; copies] }
    }
}

fn decode(level: Level, weights: &Weights, m: usize) {
    let Packed { n, k, .. } = weights.packed;
    let (x, mut out) = (noise(m * k), vec![0.0; m * n]);
    let mut turn = 0;
    let times = measure(|| {
        let data = &weights.copies[turn % weights.copies.len()];
        turn += 1;
        let op = Matmul { packed: &weights.packed, data, x: Rows::packed(&x, k), add: None, mode: Mode::Fast };
        with_level(level, || matmul(&op, RowsMut::packed(&mut out, n)));
    });
    let format = match weights.packed.format {
        Format::Affine { bits, group, .. } => format!("{bits}-bit g{group}"),
        Format::Micro(micro) => format!("{micro:?}"),
        Format::Dense(float) => format!("{float:?}"),
    };
    let from = if weights.copies.len() > 1 { "memory" } else { "cache" };
    let what = format!("{level:?} matmul {m} x {k} x {n} {format}, from {from}");
    report(&what, times, weights.packed.bytes(), 2 * m * n * k);
}

/// Attention of `queries` queries at the end of `length` positions, in pages of 32, of several layers in turn where
/// there is one query, so that decoding reads memory.
fn attend(level: Level, format: KvFormat, [heads, kv_heads, dim]: [usize; 3], length: usize, queries: usize) {
    let layout = Layout { format, positions: 32, kv_heads, dim };
    let count = length.div_ceil(32);
    let layers = if queries == 1 { (200 << 20) / (count * layout.bytes()) } else { 1 };
    // Any number will do; this one is small in every format.
    let pages = vec![vec![0x2c; layout.bytes()]; count * layers];
    let pages: Vec<&[u8]> = pages.iter().map(|page| &page[..]).collect();
    let (q, mut out) = (noise(queries * heads * dim), vec![0.0; queries * heads * dim]);
    let op = Attention {
        q: Heads::packed(&q, heads, dim),
        sequences: &[],
        layout,
        scale: 0.125,
        sees: Sees::Before,
        sinks: None,
        soft_cap: None,
    };
    let mut turn = 0;
    let times = measure(|| {
        let pages = &pages[turn % layers * count..][..count];
        turn += 1;
        let op = Attention { sequences: &[Sequence { pages, length, queries }], ..op };
        with_level(level, || attention(&op, HeadsMut::packed(&mut out, heads, dim)));
    });
    let what = format!("{level:?} attention {queries} queries {heads}/{kv_heads} x {dim}, {length} keys {format:?}");
    let seen: usize = (0..queries).map(|query| length - query).sum();
    report(&what, times, count * layout.bytes(), 4 * seen * heads * dim);
}

/// A token from logits of `vocabulary`, by the usual limits.
fn choose(level: Level, vocabulary: usize) {
    let logits: Vec<f32> = noise(vocabulary).into_iter().map(|x| 8.0 * x).collect();
    for (top_k, top_p) in [(1, 1.0), (40, 0.95), (0, 0.95), (0, 1.0)] {
        let choice = Choice { temperature: 0.8, top_k, top_p, u: 0.7, ..Choice::GREEDY };
        let times = measure(|| {
            with_level(level, || sample(Rows::packed(&logits, vocabulary), &[Draw::from(choice)], &mut [0]))
        });
        let what = format!("{level:?} sample from {vocabulary}, top_k {top_k}, top_p {top_p}");
        report(&what, times, 4 * vocabulary, vocabulary);
    }
}

/// `tokens` steps of the delta rule with 32 heads of 128 x 128.
fn recur(level: Level, tokens: usize) {
    let (heads, dim) = (32, 128);
    let (data, gates) = (noise(tokens * heads * dim), vec![0.5; tokens * heads]);
    let (mut state, mut out) = (vec![0.0; heads * dim * dim], vec![0.0; tokens * heads * dim]);
    let x = Heads::packed(&data, heads, dim);
    let g = Rows::packed(&gates, heads);
    let op = GatedDelta { q: x, k: x, v: x, g, beta: g };
    let times = measure(|| {
        let sequences = &mut [Recurrent { tokens, state: &mut state }];
        with_level(level, || gated_delta(&op, sequences, HeadsMut::packed(&mut out, heads, dim)));
    });
    let work = heads * dim * dim;
    report(&format!("{level:?} gated delta, {tokens} tokens, {heads} heads"), times, 8 * work, 7 * tokens * work);
}

/// Arguments: part of a level's name, then a number of threads.
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let Some(threads) = arguments.get(1).and_then(|threads| threads.parse().ok()) {
        pool::set_threads(threads);
    }
    println!("{} threads", pool::threads());
    let only = arguments.first().map_or("", String::as_str);
    for level in levels().filter(|level| format!("{level:?}").contains(only)) {
        choose(level, 49_152);
        choose(level, 151_936);
        recur(level, 1);
        recur(level, 128);
        for format in [KvFormat::F16, KvFormat::Int8, KvFormat::Int4] {
            attend(level, format, [9, 3, 64], 128, 1);
            attend(level, format, [9, 3, 64], 4096, 1);
            attend(level, format, [16, 8, 128], 4096, 1);
            attend(level, format, [32, 8, 128], 4096, 1);
            attend(level, format, [9, 3, 64], 512, 512);
            attend(level, format, [16, 8, 128], 2048, 512);
        }
        for spread in [false, true] {
            for (n, k) in [(576, 1536), (2048, 2048)] {
                let weights = Weights::new(n, k, 4, 32, spread);
                [1, 2, 4, 8].into_iter().for_each(|m| decode(level, &weights, m));
            }
            decode(level, &Weights::new(2048, 2048, 8, 64, spread), 1);
            decode(level, &Weights::new(2048, 2048, 16, 64, spread), 1);
        }
        for bits in [2, 3, 5, 6] {
            let weights = Weights::new(2048, 2048, bits, 64, true);
            [1, 512].into_iter().for_each(|m| decode(level, &weights, m));
        }
        for micro in [Micro::Mxfp4, Micro::Nvfp4, Micro::Mxfp8] {
            let weights = Weights::micro(2048, 2048, micro);
            [1, 512].into_iter().for_each(|m| decode(level, &weights, m));
        }
        for m in [12, 16, 24, 512] {
            decode(level, &Weights::new(1536, 576, 4, 32, false), m);
            decode(level, &Weights::new(2048, 2048, 4, 32, false), m);
        }
        decode(level, &Weights::new(2048, 2048, 4, 64, false), 512);
        decode(level, &Weights::new(2048, 2048, 8, 64, false), 512);
        decode(level, &Weights::new(2048, 2048, 16, 64, false), 512);
    }
}
