//! Products against f64 sums over random shapes, at every level; the same bits for a row alone, in a batch and on any
//! number of threads.

use super::*;
use crate::kernels::{
    level::{Level, levels, with_level},
    pack::{Float, pack_affine, pack_dense, tests::Sample, tests::numbers, unpack_row},
    testing::{Random, close, same_bits, with_threads},
};

/// Where packed data begins in its buffer: buffers of others are not aligned either.
const OFFSET: usize = 8;

struct Case {
    packed: Packed,
    /// From `OFFSET` on.
    data: Vec<u8>,
    /// [n, k]
    weights: Vec<f32>,
}

impl Case {
    fn affine(random: &mut Random, n: usize, k: usize, bits: usize, group: usize, float: Float) -> Case {
        let sample = Sample::new(random, n, k, bits, group, float);
        let packed = Packed::affine(n, k, bits, group, float).unwrap();
        let mut data = vec![0; OFFSET + packed.bytes()];
        pack_affine(&packed, &sample.affine(), &mut data[OFFSET..]);
        Case { packed, data, weights: sample.values }
    }

    fn dense(random: &mut Random, n: usize, k: usize, float: Float) -> Case {
        let packed = Packed::dense(n, k, float);
        let mut data = vec![0; OFFSET + packed.bytes()];
        pack_dense(&packed, &numbers(&random.vec(n * k), 1.0, float), &mut data[OFFSET..]);
        let mut weights = vec![0.0; n * k];
        for (index, row) in weights.chunks_mut(k).enumerate() {
            unpack_row(&packed, &data[OFFSET..], index, row);
        }
        Case { packed, data, weights }
    }

    fn run(&self, x: Rows, add: Option<Rows>, mode: Mode) -> Vec<f32> {
        let stride = self.packed.n + 3;
        let mut out = vec![-7.0; x.count * stride];
        let rows = RowsMut { data: &mut out, count: x.count, stride, width: self.packed.n };
        matmul(&Matmul { packed: &self.packed, data: &self.data[OFFSET..], x, add, mode }, rows);
        assert!(out.chunks(stride).all(|row| row[self.packed.n..] == [-7.0; 3]), "written past a row");
        out.chunks(stride).flat_map(|row| row[..self.packed.n].to_vec()).collect()
    }

    fn reference(&self, x: Rows, add: Option<Rows>) -> Vec<f64> {
        let mut out = Vec::new();
        for row in 0..x.count {
            for (n, weights) in self.weights.chunks(self.packed.k).enumerate() {
                let dot: f64 = weights.iter().zip(x.row(row)).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
                out.push(dot + add.map_or(0.0, |add| f64::from(add.row(row)[n])));
            }
        }
        out
    }
}

/// Activations rounded as the fast mode says.
fn rounded(x: Rows) -> Vec<f32> {
    let mut out = Vec::new();
    for row in 0..x.count {
        for part in x.row(row).chunks(32) {
            let largest = part.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
            out.extend(part.iter().map(|x| {
                let high = (x * inverse).round_ties_even();
                let low = ((x * inverse - high) * 254.0).round_ties_even();
                (high + low / 254.0) * (largest / 127.0)
            }));
        }
    }
    out
}

fn check(random: &mut Random, case: &Case, mode: Mode) {
    let (m, k) = (1 + random.below(40), case.packed.k);
    let data = random.vec(m * (k + 5));
    let x = Rows { data: &data, count: m, stride: k + 5, width: k };
    let residual = random.vec(m * case.packed.n);
    let add = (random.below(2) == 0).then(|| Rows::packed(&residual, case.packed.n));
    let fast = mode == Mode::Fast && matches!(case.packed.format, Format::Affine { .. });
    let quantized = rounded(x);
    let want = case.reference(if fast { Rows::packed(&quantized, k) } else { x }, add);
    for level in levels() {
        let got = with_level(level, || case.run(x, add, mode));
        close(&got, &want, 3e-6, &format!("{:?} {mode:?} {m} rows {level:?}", case.packed));
    }
}

#[test]
fn affine_products_agree_with_f64() {
    let mut random = Random::new(11);
    for bits in [2, 3, 4, 5, 6, 8] {
        for group in [32, 64, 128] {
            for float in [Float::F16, Float::BF16, Float::F32] {
                let (n, k) = (1 + random.below(70), group * (1 + random.below(9)));
                let case = Case::affine(&mut random, n, k, bits, group, float);
                check(&mut random, &case, Mode::Fast);
                check(&mut random, &case, Mode::Exact);
            }
        }
    }
}

#[test]
fn dense_products_agree_with_f64() {
    let mut random = Random::new(12);
    for float in [Float::F16, Float::BF16, Float::F32] {
        for _ in 0..8 {
            let (n, k) = (1 + random.below(90), 1 + random.below(400));
            let case = Case::dense(&mut random, n, k, float);
            check(&mut random, &case, Mode::Fast);
        }
    }
}

#[test]
fn int8_products_do_not_overflow_at_the_extremes() {
    let (n, k) = (16, 128);
    for bits in [4, 8] {
        let weights = vec![u32::MAX; n * k * bits / 32];
        let ones = numbers(&vec![1.0; n * k / 32], 1.0, Float::F32);
        let zeros = numbers(&vec![0.0; n * k / 32], 1.0, Float::F32);
        let packed = Packed::affine(n, k, bits, 32, Float::F32).unwrap();
        let mut data = vec![0; OFFSET + packed.bytes()];
        pack_affine(
            &packed,
            &crate::kernels::pack::Affine { bits, weights: &weights, scales: &ones, biases: &zeros },
            &mut data[OFFSET..],
        );
        let case = Case { packed, data, weights: vec![((1 << bits) - 1) as f32; n * k] };
        for sign in [1.0, -1.0] {
            let x = vec![127.0 * sign; k * 20];
            for level in levels() {
                for m in [1, 20] {
                    let x = Rows::packed(&x[..m * k], k);
                    let got = with_level(level, || case.run(x, None, Mode::Fast));
                    close(&got, &case.reference(x, None), 1e-7, &format!("{bits} bits, {level:?}"));
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_alone_in_a_batch_and_on_any_threads() {
    let mut random = Random::new(13);
    let cases = [
        Case::affine(&mut random, 75, 640, 4, 32, Float::F16),
        Case::affine(&mut random, 33, 1280, 8, 64, Float::BF16),
        Case::affine(&mut random, 600, 128, 4, 128, Float::F32),
        Case::dense(&mut random, 600, 300, Float::F16),
        Case::dense(&mut random, 49, 131, Float::F32),
    ];
    for case in &cases {
        let k = case.packed.k;
        let data = random.vec(300 * k);
        for (level, mode) in levels().flat_map(|level| [(level, Mode::Fast), (level, Mode::Exact)]) {
            let run = |first: usize, count: usize| {
                with_level(level, || case.run(Rows::packed(&data[first * k..][..count * k], k), None, mode))
            };
            let all = with_threads(1, || run(0, 300));
            for (threads, m) in [(1, 1), (2, 1), (2, 2), (3, 3), (4, 5), (2, 8), (3, 13), (2, 16), (3, 17), (2, 290)] {
                let first = random.below(300 - m);
                let some = with_threads(threads, || run(first, m));
                let want = &all[first * case.packed.n..][..m * case.packed.n];
                same_bits(&some, want, &format!("{:?} {mode:?} {level:?}: {m} rows, {threads} threads", case.packed));
            }
        }
    }
}

#[test]
fn levels_with_fused_multiply_add_give_the_same_bits() {
    let mut random = Random::new(14);
    for bits in [4, 8] {
        let case = Case::affine(&mut random, 40, 384, bits, 64, Float::F16);
        let data = random.vec(45 * 384);
        for m in [1, 9, 45] {
            let run = |level| with_level(level, || case.run(Rows::packed(&data[..m * 384], 384), None, Mode::Fast));
            // The portable level has it only where every processor of the target does.
            let fused = levels().filter(|level| *level != Level::Portable || cfg!(target_arch = "aarch64"));
            let results: Vec<(Level, Vec<f32>)> = fused.map(|level| (level, run(level))).collect();
            for pair in results.windows(2) {
                same_bits(&pair[0].1, &pair[1].1, &format!("{bits} bits, {m} rows, {:?}, {:?}", pair[0].0, pair[1].0));
            }
        }
    }
}
