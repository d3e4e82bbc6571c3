//! What pages hold against plain rounding, and how far that is from what was written.

use half::{bf16, f16};

use super::*;
use crate::kernels::{
    level::{Kernel, Level, levels},
    scratch::Scratch,
    simd::Simd,
    testing::{Random, close},
};

pub const FORMATS: [Format; 5] = [Format::F32, Format::F16, Format::BF16, Format::Int8, Format::Int4];

/// A head's numbers as a page holds them.
pub fn stored(format: Format, x: &[f32]) -> Vec<f64> {
    let scaled = |x: &[f32], lowest: f32, highest: f32| -> Vec<f64> {
        // Features beyond the last are zeros that take part.
        let padding = if x.len() < GROUP { Some(0.0) } else { None };
        let most = x.iter().copied().chain(padding).fold(f32::NEG_INFINITY, f32::max);
        let least = x.iter().copied().chain(padding).fold(f32::INFINITY, f32::min);
        let scale = f16::from_f32((most - least) / (highest - lowest)).to_f32();
        let bias = f16::from_f32(least - lowest * scale).to_f32();
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let level = |x: &f32| ((x - bias) * inverse).round_ties_even().clamp(lowest, highest);
        x.iter().map(|x| f64::from(level(x)) * f64::from(scale) + f64::from(bias)).collect()
    };
    match format {
        Format::F32 => x.iter().map(|x| f64::from(*x)).collect(),
        Format::F16 => x.iter().map(|x| f16::from_f32(*x).to_f64()).collect(),
        Format::BF16 => x.iter().map(|x| bf16::from_f32(*x).to_f64()).collect(),
        Format::Int8 => x.chunks(GROUP).flat_map(|x| scaled(x, -127.0, 127.0)).collect(),
        Format::Int4 => x.chunks(GROUP).flat_map(|x| scaled(x, 0.0, 15.0)).collect(),
    }
}

/// Writes heads of tokens, [kv_heads, dim] each, to the positions of a page from `at` on.
pub struct Write<'a> {
    pub layout: &'a Layout,
    pub page: &'a mut [u8],
    pub at: usize,
    pub k: &'a [f32],
    pub v: &'a [f32],
}

impl Kernel for Write<'_> {
    type Out = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Layout { kv_heads, dim, .. } = *self.layout;
        for (index, (k, v)) in self.k.chunks(dim).zip(self.v.chunks(dim)).enumerate() {
            write(s, self.layout, self.page, index % kv_heads, self.at + index / kv_heads, k, v);
        }
    }
}

/// A head's keys [dim][count] and values [count][dim] of a run.
struct Read<'a>(Run<'a>);

impl Kernel for Read<'_> {
    type Out = [Vec<f32>; 2];
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> [Vec<f32>; 2] {
        let Layout { dim, .. } = *self.0.layout;
        let count = self.0.count;
        let collect = |rows: Rows, lines: usize, width: usize| -> Vec<f32> {
            // SAFETY: `lines` rows of at least `width` numbers are what the calls below give.
            let number = |i: usize| unsafe { *rows.from.add(i / width * rows.stride + i % width) };
            (0..lines * width).map(number).collect()
        };
        let mut scratch = Scratch::new(scratch_len(self.0.layout));
        let keys = collect(keys(s, &self.0, &mut scratch), dim, count);
        let values = collect(values(s, &self.0, &mut scratch), count, dim);
        [keys, values]
    }
}

fn check(random: &mut Random, layout: Layout, level: Level, what: &str) {
    let Layout { format, positions, kv_heads, dim } = layout;
    // Not a number everywhere: what is read must have been written.
    let mut page = vec![0xff; layout.bytes()];
    // Offsets and outliers, as keys have them.
    let outliers: Vec<f32> = (0..dim).map(|_| if random.below(16) == 0 { 9.0 } else { 1.0 }).collect();
    let mut numbers = || -> Vec<f32> {
        let plain = random.vec(positions * kv_heads * dim).into_iter();
        plain.zip(outliers.iter().cycle()).map(|(x, by)| x * by + 0.3).collect()
    };
    let (k, v) = (numbers(), numbers());
    let width = kv_heads * dim;
    let cut = 5 * width;
    for (at, part) in [(0, 0..cut), (5, cut..positions * width)] {
        let (k, v) = (&k[part.clone()], &v[part]);
        level.run(Write { layout: &layout, page: &mut page, at, k, v });
    }
    for head in 0..kv_heads {
        for (at, count) in [(0, positions), (16 * (positions / 32), 16)] {
            let run = Run { layout: &layout, page: &page, next: &page, head, at, count };
            let [keys, values] = level.run(Read(run));
            let of = |x: &[f32], position: usize| stored(format, &x[position * width + head * dim..][..dim]);
            let want: Vec<Vec<f64>> = (at..at + count).map(|position| of(&k, position)).collect();
            let turned: Vec<f64> = (0..dim).flat_map(|i| want.iter().map(move |row| row[i])).collect();
            close(&keys, &turned, 1e-7, &format!("keys, {what}"));
            let want: Vec<f64> = (at..at + count).flat_map(|position| of(&v, position)).collect();
            close(&values, &want, 1e-7, &format!("values, {what}"));
        }
    }
}

#[test]
fn pages_give_back_what_was_written() {
    let mut random = Random::new(61);
    for format in FORMATS {
        for (kv_heads, dim, positions) in
            [(1, 8, 16), (3, 64, 32), (2, 128, 48), (2, 80, 64), (1, 100, 256), (2, 33, 32)]
        {
            let layout = Layout { format, positions, kv_heads, dim };
            for level in levels() {
                check(&mut random, layout, level, &format!("{layout:?}, {level:?}"));
            }
        }
    }
}

/// Half a step of its group, a little more at the ends, where the scale is rounded; equal numbers are exact.
#[test]
fn quantized_numbers_are_near() {
    let mut random = Random::new(62);
    for (format, levels) in [(Format::Int8, 254.0), (Format::Int4, 15.0)] {
        for size in [1.0, 1e-3, 300.0] {
            let x: Vec<f32> = random.vec(96).iter().map(|x| size * (x + 0.5)).collect();
            for (x, y) in x.chunks(32).zip(stored(format, &x).chunks(32)) {
                let range = x.iter().fold(f32::MIN, |a, b| a.max(*b)) - x.iter().fold(f32::MAX, |a, b| a.min(*b));
                for (x, y) in x.iter().zip(y) {
                    let step = f64::from(range) / levels;
                    assert!((f64::from(*x) - y).abs() <= 0.75 * step + 5e-6, "{format:?}: {x} became {y}, step {step}");
                }
            }
        }
        assert_eq!(stored(format, &[0.25; 32]), [0.25; 32]);
        assert_eq!(stored(format, &[0.0; 40]), [0.0; 40]);
    }
}

#[test]
fn a_page_of_smollm2_is_as_small_as_it_says() {
    let bytes = |format| Layout { format, positions: 32, kv_heads: 3, dim: 64 }.bytes() / (32 * 3 * 2);
    assert_eq!(FORMATS.map(bytes), [256, 128, 128, 64 + 8, 32 + 8]);
}
