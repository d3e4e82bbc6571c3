//! Packing and unpacking: every bit width, group and number type, exactly.

use super::*;
use crate::kernels::testing::Random;

/// Random affine weights, as MLX stores them, and what they stand for.
pub struct Sample {
    pub bits: usize,
    pub weights: Vec<u32>,
    pub scales: Vec<u8>,
    pub biases: Vec<u8>,
    /// [n, k]
    pub values: Vec<f32>,
}

impl Sample {
    pub fn new(random: &mut Random, n: usize, k: usize, bits: usize, group: usize, float: Float) -> Sample {
        let row_words = k * bits / 32;
        let mut weights = vec![0u32; n * row_words];
        let mut values = vec![0.0; n * k];
        let scales = numbers(&random.vec(n * k / group), 0.05, float);
        let biases = numbers(&random.vec(n * k / group), 0.2, float);
        for row in 0..n {
            for i in 0..k {
                let q = random.below(1 << bits) as u32;
                for bit in (0..bits).filter(|bit| q >> bit & 1 == 1) {
                    let position = i * bits + bit;
                    weights[row * row_words + position / 32] |= 1 << (position % 32);
                }
                let at = (row * (k / group) + i / group) * float.bytes();
                values[row * k + i] = float.read(&scales[at..]) * q as f32 + float.read(&biases[at..]);
            }
        }
        Sample { bits, weights, scales, biases, values }
    }

    pub fn affine(&self) -> Affine<'_> {
        Affine { bits: self.bits, weights: &self.weights, scales: &self.scales, biases: &self.biases }
    }
}

/// Numbers times `factor`, stored as `float`.
pub fn numbers(values: &[f32], factor: f32, float: Float) -> Vec<u8> {
    let stored = |value: f32| match float {
        Float::F16 => half::f16::from_f32(value).to_le_bytes().to_vec(),
        Float::BF16 => half::bf16::from_f32(value).to_le_bytes().to_vec(),
        Float::F32 => value.to_le_bytes().to_vec(),
    };
    values.iter().flat_map(|value| stored(value * factor)).collect()
}

const FLOATS: [Float; 3] = [Float::F16, Float::BF16, Float::F32];

#[test]
fn affine_rows_come_back_exactly() {
    let mut random = Random::new(1);
    for bits in [2, 3, 4, 5, 6, 8] {
        for group in [32, 64, 128] {
            for float in FLOATS {
                let (n, k) = (1 + random.below(40), group * (1 + random.below(3)));
                let sample = Sample::new(&mut random, n, k, bits, group, float);
                let packed = Packed::affine(n, k, bits, group, float).unwrap();
                let mut data = vec![0xee; packed.bytes()];
                pack_affine(&packed, &sample.affine(), &mut data);
                let mut row = vec![0.0; k];
                for (index, want) in sample.values.chunks(k).enumerate() {
                    unpack_row(&packed, &data, index, &mut row);
                    assert_eq!(row, want, "{packed:?} from {bits} bits, row {index}");
                }
            }
        }
    }
}

#[test]
fn dense_rows_come_back_exactly() {
    let mut random = Random::new(2);
    for float in FLOATS {
        let (n, k) = (37, 75);
        let weights = numbers(&random.vec(n * k), 1.0, float);
        let packed = Packed::dense(n, k, float);
        let mut data = vec![0xee; packed.bytes()];
        pack_dense(&packed, &weights, &mut data);
        let mut row = vec![0.0; k];
        for index in 0..n {
            unpack_row(&packed, &data, index, &mut row);
            for (i, value) in row.iter().enumerate() {
                assert_eq!(*value, float.read(&weights[(index * k + i) * float.bytes()..]));
            }
        }
    }
}

#[test]
fn embedding_looks_rows_up() {
    let mut random = Random::new(3);
    let (n, k) = (100, 64);
    let sample = Sample::new(&mut random, n, k, 4, 32, Float::BF16);
    let packed = Packed::affine(n, k, 4, 32, Float::BF16).unwrap();
    let mut data = vec![0; packed.bytes()];
    pack_affine(&packed, &sample.affine(), &mut data);
    let ids: Vec<u32> = (0..21).map(|_| random.below(n) as u32).collect();
    let mut out = vec![0.0; ids.len() * k];
    embedding(&packed, &data, &ids, RowsMut::packed(&mut out, k));
    for (id, row) in ids.iter().zip(out.chunks(k)) {
        assert_eq!(row, &sample.values[*id as usize * k..][..k]);
    }
}

#[test]
fn formats_no_kernel_reads_are_refused_by_name() {
    assert!(Packed::affine(16, 64, 7, 32, Float::F16).unwrap_err().contains("7-bit"));
    assert!(Packed::affine(16, 64, 4, 16, Float::F16).unwrap_err().contains("groups of 16"));
    assert!(Packed::affine(16, 96, 4, 64, Float::F16).unwrap_err().contains("96 inputs"));
}
