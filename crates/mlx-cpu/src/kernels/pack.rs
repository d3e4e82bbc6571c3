//! Weight matrices as the matmul kernels read them: blocks of 16 outputs, each block one stream.
//!
//! A matrix has n outputs (rows) of k inputs. A block is 16 neighbouring outputs; the last one is padded with zeros.
//! - Dense: [k][16] values.
//! - Affine (value = scale * q + bias): for each group of inputs the 16 scales, the 16 biases and the q. 64 bytes of q
//!   are 16 outputs × 4 bytes: of 8 bits each, the next four inputs; of 4 bits each, the next four inputs in the low
//!   nibbles and the four after them in the high nibbles.

use super::{
    float::{bf16_to_f32, f16_to_f32},
    pool,
    rows::{RowsMut, SharedRows},
    simd::LANES,
};

/// How a real number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float {
    F16,
    BF16,
    F32,
}

impl Float {
    /// Bytes of one number.
    pub const fn bytes(self) -> usize {
        match self {
            Float::F16 | Float::BF16 => 2,
            Float::F32 => 4,
        }
    }

    fn read(self, bytes: &[u8]) -> f32 {
        match self {
            Float::F16 => f16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]])),
            Float::BF16 => bf16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]])),
            Float::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        }
    }
}

/// How packed weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// scale * q + bias with q of `bits` (4 or 8) and one scale and bias for `group` (32, 64 or 128) inputs.
    Affine {
        bits: usize,
        group: usize,
        scales: Float,
    },
    Dense(Float),
}

/// The shape and format of a packed matrix; its bytes are kept elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packed {
    /// Outputs: rows of the matrix.
    pub n: usize,
    /// Inputs: columns of the matrix.
    pub k: usize,
    pub format: Format,
}

/// Affine weights as MLX stores them, one row after the other.
#[derive(Clone, Copy)]
pub struct Affine<'a> {
    /// Bits of one q: 2, 3, 4, 5, 6 or 8. A row is one little-endian stream of bits, k * bits / 32 words long.
    pub bits: usize,
    pub weights: &'a [u32],
    /// [n, k / group] numbers of the packed format's `scales`, as bytes.
    pub scales: &'a [u8],
    /// As `scales`.
    pub biases: &'a [u8],
}

impl Packed {
    /// The packed form of MLX's affine weights of `bits` (2, 3, 4, 5, 6 or 8): 2 and 3 bits become 4, 5 and 6 become 8.
    ///
    /// # Errors
    /// A bit width or group no kernel reads, or inputs that are not whole groups.
    pub fn affine(n: usize, k: usize, bits: usize, group: usize, scales: Float) -> Result<Packed, String> {
        let bits = match bits {
            2..=4 => 4,
            5 | 6 | 8 => 8,
            _ => return Err(format!("{bits}-bit weights: the CPU kernels read 2, 3, 4, 5, 6 and 8 bits")),
        };
        if ![32, 64, 128].contains(&group) {
            return Err(format!("quantization groups of {group}: the CPU kernels read 32, 64 and 128"));
        }
        if !k.is_multiple_of(group) {
            return Err(format!("{k} inputs are not whole quantization groups of {group}"));
        }
        Ok(Packed { n, k, format: Format::Affine { bits, group, scales } })
    }

    /// The packed form of dense weights.
    pub fn dense(n: usize, k: usize, float: Float) -> Packed {
        Packed { n, k, format: Format::Dense(float) }
    }

    /// Bytes of the whole packed matrix.
    pub fn bytes(&self) -> usize {
        self.blocks() * self.block_bytes()
    }

    pub(crate) fn blocks(&self) -> usize {
        self.n.div_ceil(LANES)
    }

    pub(crate) fn block_bytes(&self) -> usize {
        match self.format {
            Format::Affine { group, .. } => self.k / group * self.group_bytes(),
            Format::Dense(float) => self.k * LANES * float.bytes(),
        }
    }

    /// Bytes of one group of a block; 0 of dense weights.
    pub(crate) fn group_bytes(&self) -> usize {
        match self.format {
            Format::Affine { bits, group, scales } => LANES * (2 * scales.bytes() + group * bits / 8),
            Format::Dense(_) => 0,
        }
    }

    pub(crate) fn check(&self, data: &[u8]) {
        assert_eq!(data.len(), self.bytes(), "bytes of the packed weights {self:?}");
    }
}

/// Packs MLX's affine weights into `dst` of `packed.bytes()`.
///
/// # Panics
/// If `packed` is not the affine format of these bits, or a buffer's length does not fit it.
pub fn pack_affine(packed: &Packed, source: &Affine, dst: &mut [u8]) {
    let Format::Affine { bits, group, scales } = packed.format else { panic!("affine weights into {packed:?}") };
    let (n, k) = (packed.n, packed.k);
    assert_eq!(Packed::affine(n, k, source.bits, group, scales).as_ref(), Ok(packed), "the format for these bits");
    assert_eq!(source.weights.len(), n * k * source.bits / 32, "words of {n} x {k} weights");
    assert_eq!(source.scales.len(), n * k / group * scales.bytes(), "bytes of scales");
    assert_eq!(source.biases.len(), source.scales.len(), "bytes of biases");
    packed.check(dst);
    let rows = rows_of(packed, dst);
    pool::run(packed.blocks(), |block| {
        // SAFETY: each block is one task's.
        let dst = unsafe { rows.row(block) };
        dst.fill(0);
        for (lane, row) in (block * LANES..((block + 1) * LANES).min(n)).enumerate() {
            for (g, dst) in dst.chunks_exact_mut(packed.group_bytes()).enumerate() {
                let size = scales.bytes();
                let at = (row * (k / group) + g) * size;
                let (dst_scales, rest) = dst.split_at_mut(LANES * size);
                let (dst_biases, quants) = rest.split_at_mut(LANES * size);
                dst_scales[lane * size..][..size].copy_from_slice(&source.scales[at..][..size]);
                dst_biases[lane * size..][..size].copy_from_slice(&source.biases[at..][..size]);
                let words = group * source.bits / 32;
                let source_words = &source.weights[row * (k * source.bits / 32) + g * words..][..words];
                pack_group(source_words, source.bits, bits, lane, quants);
            }
        }
    });
}

fn rows_of<'a>(packed: &Packed, dst: &'a mut [u8]) -> SharedRows<'a, u8> {
    let (count, width) = (packed.blocks(), packed.block_bytes());
    RowsMut { data: dst, count, stride: width, width }.share(count, width, "packed weights")
}

/// Puts one output's group where `lane` is in the block's.
fn pack_group(words: &[u32], source_bits: usize, bits: usize, lane: usize, quants: &mut [u8]) {
    let lines = 0..quants.len() / 64;
    let mut put = |index: usize, word: u32| {
        quants[index * 64 + lane * 4..][..4].copy_from_slice(&word.to_le_bytes());
    };
    match (source_bits, bits) {
        (8, _) => words.iter().enumerate().for_each(|(i, word)| put(i, *word)),
        (4, _) => words.iter().enumerate().for_each(|(i, word)| put(i, spread(*word) | spread(word >> 16) << 4)),
        (_, 8) => lines.for_each(|i| put(i, bytes_at(words, source_bits, 4 * i))),
        _ => lines.for_each(|i| {
            let (low, high) = (bytes_at(words, source_bits, 8 * i), bytes_at(words, source_bits, 8 * i + 4));
            put(i, low | high << 4);
        }),
    }
}

/// The lower four nibbles as four bytes.
fn spread(word: u32) -> u32 {
    let word = word & 0xffff;
    let word = (word | word << 8) & 0x00ff_00ff;
    (word | word << 4) & 0x0f0f_0f0f
}

/// Four values of a stream of `bits`-bit values, from value `first` on, as four bytes.
fn bytes_at(words: &[u32], bits: usize, first: usize) -> u32 {
    let value = |index: usize| {
        let (word, shift) = (index * bits / 32, index * bits % 32);
        let high = words.get(word + 1).copied().unwrap_or(0);
        let window = u64::from(high) << 32 | u64::from(words[word]);
        (window >> shift) as u32 & ((1 << bits) - 1)
    };
    (0..4).fold(0, |bytes, i| bytes | value(first + i) << (8 * i))
}

/// Packs dense weights, [n, k] numbers of the packed format as bytes, into `dst` of `packed.bytes()`.
///
/// # Panics
/// If `packed` is not dense, or a buffer's length does not fit it.
pub fn pack_dense(packed: &Packed, weights: &[u8], dst: &mut [u8]) {
    let Format::Dense(float) = packed.format else { panic!("dense weights into {packed:?}") };
    let (n, k, size) = (packed.n, packed.k, float.bytes());
    assert_eq!(weights.len(), n * k * size, "bytes of {n} x {k} weights");
    packed.check(dst);
    let rows = rows_of(packed, dst);
    pool::run(packed.blocks(), |block| {
        // SAFETY: each block is one task's.
        let dst = unsafe { rows.row(block) };
        let source =
            &weights[block * LANES * k * size..(block * LANES * k * size + LANES * k * size).min(n * k * size)];
        match size {
            2 => transpose::<2>(source, k, dst),
            _ => transpose::<4>(source, k, dst),
        }
    });
}

/// [up to 16][k] numbers of `SIZE` bytes → [k][16], the missing ones zero.
fn transpose<const SIZE: usize>(source: &[u8], k: usize, dst: &mut [u8]) {
    let (source, _) = source.as_chunks::<SIZE>();
    let (dst, _) = dst.as_chunks_mut::<SIZE>();
    // 64 inputs at a time, so that what is written stays in the cache.
    for first in (0..k).step_by(64) {
        let inputs = first..(first + 64).min(k);
        for lane in 0..LANES {
            let row = source.get(lane * k..(lane + 1) * k);
            for input in inputs.clone() {
                dst[input * LANES + lane] = row.map_or([0; SIZE], |row| row[input]);
            }
        }
    }
}

/// Writes the weights of output `row`, `packed.k` values: exactly scale * q + bias, rounded as f32 twice.
///
/// # Panics
/// If the row is not in the matrix or a buffer's length does not fit it.
pub fn unpack_row(packed: &Packed, data: &[u8], row: usize, out: &mut [f32]) {
    packed.check(data);
    assert!(row < packed.n, "row {row} of a matrix of {} rows", packed.n);
    assert_eq!(out.len(), packed.k, "values of a row");
    let block = &data[row / LANES * packed.block_bytes()..][..packed.block_bytes()];
    let lane = row % LANES;
    match packed.format {
        Format::Dense(float) => {
            let size = float.bytes();
            for (values, out) in block.chunks_exact(LANES * size).zip(out) {
                *out = float.read(&values[lane * size..]);
            }
        }
        Format::Affine { bits, group, scales } => {
            let size = scales.bytes();
            for (values, out) in block.chunks_exact(packed.group_bytes()).zip(out.chunks_exact_mut(group)) {
                let scale = scales.read(&values[lane * size..]);
                let bias = scales.read(&values[(LANES + lane) * size..]);
                unpack_group(bits, scale, bias, lane, &values[2 * LANES * size..], out);
            }
        }
    }
}

fn unpack_group(bits: usize, scale: f32, bias: f32, lane: usize, quants: &[u8], out: &mut [f32]) {
    let (lines, _) = quants.as_chunks::<64>();
    for (line, out) in lines.iter().zip(out.chunks_exact_mut(32 / bits)) {
        let quad = &line[lane * 4..][..4];
        for (i, out) in out.iter_mut().enumerate() {
            let q = match (bits, i) {
                (8, _) => quad[i],
                (_, ..4) => quad[i] & 15,
                _ => quad[i - 4] >> 4,
            };
            *out = scale * f32::from(q) + bias;
        }
    }
}

/// Writes the rows `ids` of a packed matrix: the look-up in an embedding table. `out`: [ids, k].
///
/// # Panics
/// If an id is not in the table or a shape does not fit.
pub fn embedding(packed: &Packed, data: &[u8], ids: &[u32], out: RowsMut) {
    packed.check(data);
    let rows = out.share(ids.len(), packed.k, "embedding");
    let many = ids.len().div_ceil(8);
    pool::run(many, |task| {
        for index in super::rows::chunk(task, 8, ids.len()) {
            // SAFETY: each row is one task's.
            unpack_row(packed, data, ids[index] as usize, unsafe { rows.row(index) });
        }
    });
}

#[cfg(test)]
pub(crate) mod tests;
