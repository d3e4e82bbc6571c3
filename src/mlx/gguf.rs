//! GGUF's quantised blocks, read into MLX's affine form without loss where both can say the same.
//!
//! Block layouts: the GGUF specification and ggml's block types. Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 are one scale (and
//! minimum) for 32 elements in f16, which affine groups of 32 hold exactly. Q4_K and Q5_K multiply two scales; the
//! product is kept in f32. Q6_K has groups of 16, which affine has not: it becomes floats, in f16 unless all is exact.

use half::f16;

use super::quant::{Affine, Data, Float, Matrix, pack_bits};

/// The block formats that can be read, by their GGUF names.
pub const READABLE: &[&str] = &["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"];

/// Reads the blocks of a quantised `[n, k]` tensor; what has no affine form becomes `plain`. `None` for a format not in
/// [`READABLE`].
pub fn matrix(format: &str, [n, k]: [usize; 2], blocks: &[u8], plain: Float) -> Option<Matrix> {
    let data = match format {
        "Q4_0" => simple(blocks, 18, 4, |block| {
            let scale = half_at(block, 0);
            (scale, -8.0 * scale, nibbles(&block[2..18]))
        }),
        "Q4_1" => simple(blocks, 20, 4, |block| (half_at(block, 0), half_at(block, 2), nibbles(&block[4..20]))),
        "Q5_0" => simple(blocks, 22, 5, |block| {
            let scale = half_at(block, 0);
            (scale, -16.0 * scale, with_fifth_bits(nibbles(&block[6..22]), &block[2..6]))
        }),
        "Q5_1" => simple(blocks, 24, 5, |block| {
            (half_at(block, 0), half_at(block, 2), with_fifth_bits(nibbles(&block[8..24]), &block[4..8]))
        }),
        "Q8_0" => simple(blocks, 34, 8, |block| {
            let scale = half_at(block, 0);
            (scale, -128.0 * scale, std::array::from_fn(|i| (block[2 + i] as i8 as i16 + 128) as u8))
        }),
        "Q4_K" => super_blocks(blocks, 144, 4),
        "Q5_K" => super_blocks(blocks, 176, 5),
        "Q6_K" => sixes(blocks, plain),
        _ => return None,
    };
    Some(Matrix { n, k, data })
}

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// 16 bytes are 32 elements: the first half in the low nibbles, the second in the high ones.
fn nibbles(bytes: &[u8]) -> [u8; 32] {
    std::array::from_fn(|i| if i < 16 { bytes[i] & 15 } else { bytes[i - 16] >> 4 })
}

fn with_fifth_bits(mut low: [u8; 32], high: &[u8]) -> [u8; 32] {
    for (i, value) in low.iter_mut().enumerate() {
        *value |= (high[i / 8] >> (i % 8) & 1) << 4;
    }
    low
}

/// Blocks of 32 elements with one scale and one bias each, which f16 holds when they are f16 times a power of two.
/// Minus 128 times the scale can leave f16's range; then, and only then, the scales are kept in f32.
fn simple(blocks: &[u8], size: usize, bits: usize, read: impl Fn(&[u8]) -> (f32, f32, [u8; 32])) -> Data {
    let parsed: Vec<_> = blocks.chunks_exact(size).map(read).collect();
    let exact = |value: f32| f16::from_f32(value).to_f32().to_bits() == value.to_bits();
    let float = if parsed.iter().all(|(_, bias, _)| exact(*bias)) { Float::F16 } else { Float::F32 };
    let store = |value: f32, out: &mut Vec<u8>| match float {
        Float::F16 => out.extend(f16::from_f32(value).to_le_bytes()),
        _ => out.extend(value.to_le_bytes()),
    };
    let (mut scales, mut biases) = (Vec::new(), Vec::new());
    for (scale, bias, _) in &parsed {
        store(*scale, &mut scales);
        store(*bias, &mut biases);
    }
    let weights = pack_bits(parsed.iter().flat_map(|(_, _, quants)| *quants), bits);
    Data::Affine(Affine { bits, group: 32, float, weights, scales, biases })
}

/// Q4_K and Q5_K: 256 elements in 8 groups of 32, whose 6-bit scales and minimums multiply the block's own two.
fn super_blocks(blocks: &[u8], size: usize, bits: usize) -> Data {
    let (mut weights, mut scales, mut biases) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks.chunks_exact(size) {
        let (scale, minimum, packed) = (half_at(block, 0), half_at(block, 2), &block[4..16]);
        let (fifth, quants) = if bits == 5 { (&block[16..48], &block[48..]) } else { (&block[..0], &block[16..]) };
        for group in 0..8 {
            let (sub_scale, sub_minimum) = six_bit_pair(packed, group);
            scales.extend((scale * f32::from(sub_scale)).to_le_bytes());
            biases.extend((-minimum * f32::from(sub_minimum)).to_le_bytes());
            // Two groups share 32 bytes: the even one in the low nibbles.
            let bytes = &quants[group / 2 * 32..][..32];
            weights.extend(bytes.iter().enumerate().map(|(i, byte)| {
                let low = if group % 2 == 0 { byte & 15 } else { byte >> 4 };
                low | fifth.get(i).map_or(0, |bits| (bits >> group & 1) << 4)
            }));
        }
    }
    Data::Affine(Affine {
        bits,
        group: 32,
        float: Float::F32,
        weights: pack_bits(weights.into_iter(), bits),
        scales,
        biases,
    })
}

/// The scale and the minimum of one of the eight groups, 6 bits each, out of 12 bytes.
fn six_bit_pair(packed: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        return (packed[group] & 63, packed[group + 4] & 63);
    }
    let low = packed[group + 4];
    (low & 15 | (packed[group - 4] >> 6) << 4, low >> 4 | (packed[group] >> 6) << 4)
}

/// Q6_K: 256 elements of 6 bits in 16 groups with an 8-bit scale each.
fn sixes(blocks: &[u8], float: Float) -> Data {
    let mut values = Vec::with_capacity(blocks.len() / 210 * 256 * float.bytes());
    for block in blocks.chunks_exact(210) {
        let (low, high, scales, scale) = (&block[..128], &block[128..192], &block[192..208], half_at(block, 208));
        for i in 0..256 {
            let (half, quarter, lane) = (i / 128, i % 128 / 32, i % 32);
            let byte = low[half * 64 + quarter % 2 * 32 + lane];
            let nibble = if quarter < 2 { byte & 15 } else { byte >> 4 };
            let top = high[half * 32 + lane] >> (2 * quarter) & 3;
            let quant = i32::from(nibble | top << 4) - 32;
            let value = scale * f32::from(scales[i / 16] as i8) * quant as f32;
            match float {
                Float::F32 => values.extend(value.to_le_bytes()),
                Float::F16 => values.extend(f16::from_f32(value).to_le_bytes()),
                Float::BF16 => values.extend(half::bf16::from_f32(value).to_le_bytes()),
            }
        }
    }
    Data::Dense { float, values }
}
