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

/// Random small floats, as MLX stores them, and what they stand for.
pub struct MicroSample {
    pub weights: Vec<u32>,
    pub scales: Vec<u8>,
    /// [n, k]
    pub values: Vec<f32>,
}

impl MicroSample {
    pub fn new(random: &mut Random, n: usize, k: usize, micro: Micro) -> MicroSample {
        let weights: Vec<u32> = (0..n * k * micro.bits() / 32).map(|_| random.next() as u32).collect();
        // From 2^-8 to 2^3 or so, with every mantissa and subnormals where the scale has them, all above zero.
        let scale = |random: &mut Random| match micro {
            Micro::Nvfp4 => random.below(0x58) as u8,
            Micro::Mxfp4 | Micro::Mxfp8 => 119 + random.below(10) as u8,
        };
        let scales: Vec<u8> = (0..n * k / micro.group()).map(|_| scale(random)).collect();
        let codes = weights.iter().flat_map(|word| {
            let per_word = 32 / micro.bits();
            (0..per_word).map(move |i| (word >> (i * micro.bits()) & ((1 << micro.bits()) - 1)) as u8)
        });
        let value = |code: u8| match micro {
            Micro::Mxfp8 => small_float(code, 4, 3),
            _ => small_float(code, 2, 1),
        };
        let scale = |byte: u8| match micro {
            Micro::Nvfp4 => small_float(byte, 4, 3),
            _ => 2f64.powi(i32::from(byte) - 127),
        };
        let values =
            codes.enumerate().map(|(i, code)| (value(code) * scale(scales[i / micro.group()])) as f32).collect();
        MicroSample { weights, scales, values }
    }
}

/// A sign, an exponent and a mantissa of so many bits, as IEEE 754 has them but without infinities.
pub fn small_float(code: u8, exponent_bits: i32, mantissa_bits: i32) -> f64 {
    let mantissa = f64::from(code & ((1 << mantissa_bits) - 1)) / 2f64.powi(mantissa_bits);
    let exponent = i32::from(code >> mantissa_bits & ((1 << exponent_bits) - 1));
    let bias = (1 << (exponent_bits - 1)) - 1;
    let sign = if code >> (exponent_bits + mantissa_bits) == 0 { 1.0 } else { -1.0 };
    sign * if exponent == 0 { mantissa * 2f64.powi(1 - bias) } else { (1.0 + mantissa) * 2f64.powi(exponent - bias) }
}

pub const MICROS: [Micro; 3] = [Micro::Mxfp4, Micro::Nvfp4, Micro::Mxfp8];

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
fn rows_of_small_floats_come_back_exactly() {
    let mut random = Random::new(4);
    for micro in MICROS {
        for _ in 0..6 {
            let (n, k) = (1 + random.below(40), micro.group() * (1 + random.below(5)));
            let sample = MicroSample::new(&mut random, n, k, micro);
            let packed = Packed::micro(n, k, micro).unwrap();
            let mut data = vec![0xee; packed.bytes()];
            pack_micro(&packed, &sample.weights, &sample.scales, &mut data);
            let bytes: Vec<u8> = sample.weights.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(micro.read(&bytes, &sample.scales), sample.values, "{packed:?}");
            let mut row = vec![0.0; k];
            for (index, want) in sample.values.chunks(k).enumerate() {
                unpack_row(&packed, &data, index, &mut row);
                assert_eq!(row, want, "{packed:?}, row {index}");
            }
        }
    }
}

#[test]
fn codes_stand_for_what_mlx_says() {
    // Read off mlx 0.32.2 in Python: mx.dequantize of every code under a scale of 1, and of a weight of 1 under every
    // scale. MLX knows no NaN here: the codes for it are the next larger number.
    let halves = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    for code in 0..16 {
        assert_eq!(e2m1(code as u8), if code < 8 { halves[code] } else { -halves[code - 8] });
    }
    let scales = [(0, 5.877472e-39), (1, 1.1754944e-38), (126, 0.5), (127, 1.0), (254, 1.7014118e38)];
    scales.iter().for_each(|(byte, scale)| assert_eq!(e8m0(*byte), *scale));
    assert_eq!(e8m0(255), f32::INFINITY);
    for (code, value) in
        [(0x01, 0.001953125), (0x38, 1.0), (0x7e, 448.0), (0x7f, 480.0), (0xb9, -1.125), (0xff, -480.0)]
    {
        assert_eq!(e4m3(code), value);
    }
    for code in 0..=255 {
        assert_eq!(f64::from(e4m3(code)), small_float(code, 4, 3));
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
    assert!(Packed::micro(16, 48, Micro::Mxfp4).unwrap_err().contains("48 inputs"));
}
