//! Weight matrices as the matmul kernels read them: blocks of 16 outputs, each block one stream.
//!
//! A matrix has n outputs (rows) of k inputs. A block is 16 neighbouring outputs; the last one is padded with zeros.
//! - Dense: [k][16] values.
//! - Affine (value = scale * q + bias): for each group of inputs the 16 scales, the 16 biases and the q in bit planes.
//! - Micro of 4 bits: for each group the 16 scales, a byte each, and the codes as a plane of 4 bits; of 8 bits: the 16
//!   scales and [group][16] codes.
//!
//! `planes` says what a plane is.

mod planes;

use super::{
    float::{bf16_to_f32, e2m1, e4m3, e8m0, f16_to_f32},
    pool,
    rows::{RowsMut, SharedRows},
    simd::{LANES, kind},
};

/// Outputs of a block.
pub const BLOCK: usize = LANES;

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

    /// The number that `bytes`, little-endian, begin with. Exact.
    ///
    /// # Panics
    /// If there are fewer bytes than a number has.
    pub fn read(self, bytes: &[u8]) -> f32 {
        match self {
            Float::F16 => f16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]])),
            Float::BF16 => bf16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]])),
            Float::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        }
    }
}

/// MLX's formats of small floats: a group of numbers shares a scale, a byte of its own kind, and there is no bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Micro {
    /// e2m1 in groups of 32, scales e8m0.
    Mxfp4,
    /// e2m1 in groups of 16, scales e4m3.
    Nvfp4,
    /// e4m3 in groups of 32, scales e8m0.
    Mxfp8,
}

impl Micro {
    /// Bits of one number.
    pub const fn bits(self) -> usize {
        match self {
            Micro::Mxfp4 | Micro::Nvfp4 => 4,
            Micro::Mxfp8 => 8,
        }
    }

    /// Inputs that share a scale.
    pub const fn group(self) -> usize {
        match self {
            Micro::Nvfp4 => 16,
            Micro::Mxfp4 | Micro::Mxfp8 => 32,
        }
    }

    /// The numbers that a little-endian stream of codes and its groups' scales stand for.
    pub fn read(self, codes: &[u8], scales: &[u8]) -> Vec<f32> {
        let numbers = codes.len() * 8 / self.bits();
        (0..numbers).map(|i| self.number(codes, i) * self.scale(scales[i / self.group()])).collect()
    }

    fn number(self, codes: &[u8], index: usize) -> f32 {
        match self {
            Micro::Mxfp8 => e4m3(codes[index]),
            _ => e2m1(codes[index / 2] >> (index % 2 * 4) & 15),
        }
    }

    /// The scale a byte stands for.
    fn scale(self, byte: u8) -> f32 {
        match self {
            Micro::Nvfp4 => e4m3(byte),
            Micro::Mxfp4 | Micro::Mxfp8 => e8m0(byte),
        }
    }
}

/// How packed weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// scale * q + bias with q of `bits` (2, 3, 4, 5, 6 or 8) and one scale and bias for `group` (32, 64 or 128) inputs.
    Affine {
        bits: usize,
        group: usize,
        scales: Float,
    },
    Micro(Micro),
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
    /// Bits of one q. A row is one little-endian stream of bits, k * bits / 32 words long.
    pub bits: usize,
    pub weights: &'a [u32],
    /// [n, k / group] numbers of the packed format's `scales`, as bytes.
    pub scales: &'a [u8],
    /// As `scales`.
    pub biases: &'a [u8],
}

impl Packed {
    /// The packed form of MLX's affine weights.
    ///
    /// # Errors
    /// A bit width or group no kernel reads, or inputs that are not whole groups.
    pub fn affine(n: usize, k: usize, bits: usize, group: usize, scales: Float) -> Result<Packed, String> {
        if ![2, 3, 4, 5, 6, 8].contains(&bits) {
            return Err(format!("{bits}-bit weights: the CPU kernels read 2, 3, 4, 5, 6 and 8 bits"));
        }
        if ![32, 64, 128].contains(&group) {
            return Err(format!("quantization groups of {group}: the CPU kernels read 32, 64 and 128"));
        }
        whole_groups(k, group)?;
        Ok(Packed { n, k, format: Format::Affine { bits, group, scales } })
    }

    /// The packed form of MLX's small floats.
    ///
    /// # Errors
    /// Inputs that are not whole groups.
    pub fn micro(n: usize, k: usize, micro: Micro) -> Result<Packed, String> {
        whole_groups(k, micro.group())?;
        Ok(Packed { n, k, format: Format::Micro(micro) })
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
            Format::Dense(float) => self.k * LANES * float.bytes(),
            _ => self.k / self.group() * self.group_bytes(),
        }
    }

    /// Inputs that share a scale; all of dense weights.
    pub(crate) fn group(&self) -> usize {
        match self.format {
            Format::Affine { group, .. } => group,
            Format::Micro(micro) => micro.group(),
            Format::Dense(_) => self.k,
        }
    }

    /// Bytes of one group of a block; 0 of dense weights.
    pub(crate) fn group_bytes(&self) -> usize {
        match self.format {
            Format::Affine { bits, group, .. } => self.head_bytes() + LANES * group * bits / 8,
            Format::Micro(micro) => self.head_bytes() + LANES * micro.group() * micro.bits() / 8,
            Format::Dense(_) => 0,
        }
    }

    /// Bytes of a group's scales and biases, which come first.
    pub(crate) fn head_bytes(&self) -> usize {
        match self.format {
            Format::Affine { scales, .. } => LANES * 2 * scales.bytes(),
            Format::Micro(_) => LANES,
            Format::Dense(_) => 0,
        }
    }

    /// How integer kernels read the weights; `None` where they are no integers.
    pub(crate) fn kind(&self) -> Option<u8> {
        match self.format {
            Format::Affine { bits, .. } => Some(kind::of_bits(bits)),
            Format::Micro(Micro::Mxfp4) => Some(kind::E2M1),
            Format::Micro(Micro::Nvfp4) => Some(kind::E2M1_16),
            Format::Micro(Micro::Mxfp8) | Format::Dense(_) => None,
        }
    }

    pub(crate) fn check(&self, data: &[u8]) {
        assert_eq!(data.len(), self.bytes(), "bytes of the packed weights {self:?}");
    }
}

fn whole_groups(k: usize, group: usize) -> Result<(), String> {
    if k.is_multiple_of(group) {
        return Ok(());
    }
    Err(format!("{k} inputs are not whole quantization groups of {group}"))
}

/// Packs MLX's affine weights into `dst` of `packed.bytes()`.
///
/// # Panics
/// If `packed` is not the affine format of these bits, or a buffer's length does not fit it.
pub fn pack_affine(packed: &Packed, source: &Affine, dst: &mut [u8]) {
    let Format::Affine { bits, group, scales } = packed.format else { panic!("affine weights into {packed:?}") };
    let (n, k, size) = (packed.n, packed.k, scales.bytes());
    assert_eq!(source.bits, bits, "the format for these bits");
    assert_eq!(source.scales.len(), n * k / group * size, "bytes of scales");
    assert_eq!(source.biases.len(), source.scales.len(), "bytes of biases");
    pack_groups(packed, bits, source.weights, dst, |index, lane, head| {
        let (scales, biases) = head.split_at_mut(LANES * size);
        scales[lane * size..][..size].copy_from_slice(&source.scales[index * size..][..size]);
        biases[lane * size..][..size].copy_from_slice(&source.biases[index * size..][..size]);
    });
}

/// Packs MLX's small floats into `dst` of `packed.bytes()`. `weights` are `n` rows, each a little-endian stream of codes;
/// `scales` [n, k / group].
///
/// # Panics
/// If `packed` is not such a format, or a buffer's length does not fit it.
pub fn pack_micro(packed: &Packed, weights: &[u32], scales: &[u8], dst: &mut [u8]) {
    let Format::Micro(micro) = packed.format else { panic!("small floats into {packed:?}") };
    assert_eq!(scales.len(), packed.n * packed.k / micro.group(), "bytes of scales");
    pack_groups(packed, micro.bits(), weights, dst, |index, lane, head| head[lane] = scales[index]);
}

/// Packs the q or codes of every group; `head` is given the group's index, the lane and the scales and biases to write.
fn pack_groups(
    packed: &Packed,
    bits: usize,
    weights: &[u32],
    dst: &mut [u8],
    head: impl Fn(usize, usize, &mut [u8]) + Sync,
) {
    let (n, k, group) = (packed.n, packed.k, packed.group());
    assert_eq!(weights.len(), n * k * bits / 32, "words of {n} x {k} weights");
    packed.check(dst);
    let rows = rows_of(packed, dst);
    let words = group * bits / 32;
    pool::run(packed.blocks(), |block| {
        // SAFETY: each block is one task's.
        let dst = unsafe { rows.row(block) };
        dst.fill(0);
        for (lane, row) in (block * LANES..((block + 1) * LANES).min(n)).enumerate() {
            for (g, dst) in dst.chunks_exact_mut(packed.group_bytes()).enumerate() {
                let index = row * (k / group) + g;
                let (dst_head, quants) = dst.split_at_mut(packed.head_bytes());
                head(index, lane, dst_head);
                let words = &weights[index * words..][..words];
                match packed.format {
                    Format::Micro(Micro::Mxfp8) => planes::pack_bytes(words, lane, quants),
                    _ => planes::pack(words, bits, lane, quants),
                }
            }
        }
    });
}

fn rows_of<'a>(packed: &Packed, dst: &'a mut [u8]) -> SharedRows<'a, u8> {
    let (count, width) = (packed.blocks(), packed.block_bytes());
    RowsMut { data: dst, count, stride: width, width }.share(count, width, "packed weights")
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
        _ => {
            let groups = block.chunks_exact(packed.group_bytes());
            for (values, out) in groups.zip(out.chunks_exact_mut(packed.group())) {
                let (head, quants) = values.split_at(packed.head_bytes());
                unpack_group(packed.format, head, quants, lane, out);
            }
        }
    }
}

fn unpack_group(format: Format, head: &[u8], quants: &[u8], lane: usize, out: &mut [f32]) {
    match format {
        Format::Affine { bits, scales, .. } => {
            let size = scales.bytes();
            let (scale, bias) = (scales.read(&head[lane * size..]), scales.read(&head[(LANES + lane) * size..]));
            planes::unpack(quants, bits, lane, out, |q| scale * f32::from(q) + bias);
        }
        Format::Micro(Micro::Mxfp8) => {
            let scale = e8m0(head[lane]);
            for (out, codes) in out.iter_mut().zip(quants.chunks_exact(LANES)) {
                *out = e4m3(codes[lane]) * scale;
            }
        }
        Format::Micro(micro) => {
            let scale = micro.scale(head[lane]);
            planes::unpack(quants, 4, lane, out, |code| e2m1(code) * scale);
        }
        Format::Dense(_) => unreachable!("dense weights have no groups"),
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
