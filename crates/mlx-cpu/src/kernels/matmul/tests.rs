//! Products against f64 sums over random shapes, at every level; the same bits for a row alone, in a batch and on any
//! number of threads.

use super::*;
use crate::kernels::{
    level::{Level, levels, with_level},
    pack::{Float, Format, Micro, pack_affine, pack_dense, pack_micro, tests::*, unpack_row},
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

    fn micro(random: &mut Random, n: usize, k: usize, micro: Micro) -> Case {
        let sample = MicroSample::new(random, n, k, micro);
        let packed = Packed::micro(n, k, micro).unwrap();
        let mut data = vec![0; OFFSET + packed.bytes()];
        pack_micro(&packed, &sample.weights, &sample.scales, &mut data[OFFSET..]);
        Case { packed, data, weights: sample.values }
    }

    /// One of any format.
    fn any(random: &mut Random, n: usize, groups: usize) -> Case {
        let float = [Float::F16, Float::BF16, Float::F32][random.below(3)];
        match random.below(4) {
            0 => {
                let micro = MICROS[random.below(3)];
                Case::micro(random, n, 32 * groups, micro)
            }
            1 => {
                let k = 32 * groups - random.below(32);
                Case::dense(random, n, k, float)
            }
            _ => {
                let bits = [2, 3, 4, 5, 6, 8][random.below(6)];
                Case::affine(random, n, 32 * groups, bits, 32, float)
            }
        }
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

    /// The activations that the mode computes with.
    fn seen(&self, x: Rows, mode: Mode) -> Vec<f32> {
        match (self.packed.format, mode) {
            (Format::Affine { .. } | Format::Micro(Micro::Mxfp4), Mode::Fast) => rounded(x, 32),
            (Format::Micro(Micro::Nvfp4), Mode::Fast) => rounded(x, 16),
            _ => (0..x.count).flat_map(|row| x.row(row).to_vec()).collect(),
        }
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

/// Activations rounded as the fast mode says, `part` of them by one scale.
fn rounded(x: Rows, part: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for row in 0..x.count {
        for part in x.row(row).chunks(part) {
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
    let quantized = case.seen(x, mode);
    let want = case.reference(Rows::packed(&quantized, k), add);
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
fn products_with_small_floats_agree_with_f64() {
    let mut random = Random::new(15);
    for micro in MICROS {
        for _ in 0..6 {
            let (n, k) = (1 + random.below(70), micro.group() * (1 + random.below(40)));
            let case = Case::micro(&mut random, n, k, micro);
            check(&mut random, &case, Mode::Fast);
            check(&mut random, &case, Mode::Exact);
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
    for bits in [2, 3, 4, 5, 6, 8] {
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
        extremes(&Case { packed, data, weights: vec![((1 << bits) - 1) as f32; n * k] });
    }
    // The largest of e2m1 is stored as the largest integer; the smallest, as 0, has no product at all.
    for (micro, scale) in [(Micro::Mxfp4, 127), (Micro::Nvfp4, 0x38)] {
        for (code, value) in [(0x7777_7777, 6.0), (0xffff_ffff, -6.0)] {
            let packed = Packed::micro(n, k, micro).unwrap();
            let mut data = vec![0; OFFSET + packed.bytes()];
            let scales = vec![scale; n * k / micro.group()];
            pack_micro(&packed, &vec![code; n * k / 8], &scales, &mut data[OFFSET..]);
            extremes(&Case { packed, data, weights: vec![value; n * k] });
        }
    }
}

/// The largest activations of either sign.
fn extremes(case: &Case) {
    let k = case.packed.k;
    for sign in [1.0, -1.0] {
        let x = vec![127.0 * sign; k * 20];
        for level in levels() {
            for m in [1, 20] {
                let x = Rows::packed(&x[..m * k], k);
                let got = with_level(level, || case.run(x, None, Mode::Fast));
                close(&got, &case.reference(x, None), 1e-7, &format!("{:?}, {level:?}", case.packed));
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
        Case::affine(&mut random, 70, 320, 2, 32, Float::BF16),
        Case::affine(&mut random, 40, 640, 3, 64, Float::F16),
        Case::affine(&mut random, 31, 640, 5, 128, Float::F16),
        Case::affine(&mut random, 64, 544, 6, 32, Float::F32),
        Case::micro(&mut random, 45, 544, Micro::Mxfp4),
        Case::micro(&mut random, 38, 528, Micro::Nvfp4),
        Case::micro(&mut random, 52, 544, Micro::Mxfp8),
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
    // The portable level has it only where every processor of the target does.
    let fused: Vec<Level> =
        levels().filter(|level| *level != Level::Portable || cfg!(target_arch = "aarch64")).collect();
    for _ in 0..40 {
        let (n, groups, m) = (1 + random.below(50), 1 + random.below(20), 1 + random.below(50));
        let case = Case::any(&mut random, n, groups);
        let k = case.packed.k;
        let data = random.vec(m * k);
        for mode in [Mode::Fast, Mode::Exact] {
            let run = |level| with_level(level, || case.run(Rows::packed(&data, k), None, mode));
            for pair in fused.windows(2) {
                same_bits(&run(pair[0]), &run(pair[1]), &format!("{:?} {mode:?}, {m} rows, {pair:?}", case.packed));
            }
        }
    }
}

/// A stack of matrices of one form.
struct Stack {
    cases: Vec<Case>,
    data: Vec<u8>,
}

impl Stack {
    fn new(random: &mut Random, matrices: usize, n: usize, groups: usize) -> Stack {
        let mut cases = vec![Case::any(random, n, groups)];
        while cases.len() < matrices {
            let case = Case::any(random, n, groups);
            if case.packed == cases[0].packed {
                cases.push(case);
            }
        }
        let data = [0; OFFSET].into_iter().chain(cases.iter().flat_map(|case| case.data[OFFSET..].to_vec())).collect();
        Stack { cases, data }
    }

    fn run(&self, x: Rows, matrices: &[u32], mode: Mode) -> Vec<f32> {
        let packed = &self.cases[0].packed;
        let mut out = vec![-7.0; matrices.len() * packed.n];
        let rows = RowsMut { data: &mut out, count: matrices.len(), stride: packed.n, width: packed.n };
        gather(&Gather { packed, data: &self.data[OFFSET..], x, matrices, mode }, rows);
        out
    }
}

#[test]
fn each_row_is_multiplied_with_its_own_matrix() {
    let mut random = Random::new(16);
    for round in 0..24 {
        let (n, groups, count) = (1 + random.below(60), 1 + random.below(8), 1 + random.below(6));
        let stack = Stack::new(&mut random, count, n, groups);
        let k = stack.cases[0].packed.k;
        let (tokens, top) = ([1, 1 + random.below(8), 1 + random.below(60)][round % 3], 1 + random.below(4));
        let matrices: Vec<u32> = (0..tokens * top).map(|_| random.below(count) as u32).collect();
        // One row a token, or one a product.
        let (rows, copies) = if round % 2 == 0 { (tokens, top) } else { (tokens * top, 1) };
        let data = random.vec(rows * (k + 3));
        let x = Rows { data: &data, count: rows, stride: k + 3, width: k };
        for (level, mode) in levels().flat_map(|level| [(level, Mode::Fast), (level, Mode::Exact)]) {
            let threads = 1 + random.below(8);
            let got = with_level(level, || with_threads(threads, || stack.run(x, &matrices, mode)));
            for (i, got) in got.chunks(n).enumerate() {
                let row = Rows::packed(x.row(i / copies), k);
                let case = &stack.cases[matrices[i] as usize];
                let alone = with_level(level, || case.run(row, None, mode));
                same_bits(got, &alone, &format!("{:?} {mode:?} {level:?}: product {i}", case.packed));
            }
        }
    }
}

#[test]
#[should_panic(expected = "matrix 3 of a stack of 3")]
fn a_matrix_that_is_not_there_is_refused() {
    let mut random = Random::new(17);
    let stack = Stack::new(&mut random, 3, 20, 2);
    let x = random.vec(stack.cases[0].packed.k);
    stack.run(Rows::packed(&x, x.len()), &[3], Mode::Exact);
}

#[test]
fn products_of_no_rows_are_none() {
    let mut random = Random::new(18);
    let stack = Stack::new(&mut random, 2, 20, 2);
    assert!(
        stack.run(Rows { data: &[], count: 0, stride: 1, width: stack.cases[0].packed.k }, &[], Mode::Fast).is_empty()
    );
}
