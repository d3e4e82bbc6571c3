//! Weights of a few bits as bit planes: the form that unpacks in registers with shifts and masks alone, whatever the
//! number of bits.
//!
//! A plane of w bits (1, 2, 4 or 8) holds w bits of each weight. A line of it is 64 bytes, 16 outputs × 4 bytes; a byte
//! holds, from its lowest bits on, w bits of each of 8 / w weights that lie four inputs apart. So a line of 4 bits has the
//! next four inputs in the low nibbles and the four after them in the high ones, and 32 weights of 16 outputs take w
//! lines. Every 32 weights have the planes of their bits one after the other, the lowest bits first.

/// Inputs whose planes lie side by side.
const PART: usize = 32;

/// The planes of so many bits.
const fn planes(bits: usize) -> &'static [usize] {
    match bits {
        2 => &[2],
        3 => &[2, 1],
        4 => &[4],
        5 => &[4, 1],
        6 => &[4, 2],
        _ => &[8],
    }
}

/// Puts one output's group, a stream of `bits`-bit numbers, where `lane` is in the block's.
pub(super) fn pack(words: &[u32], bits: usize, lane: usize, quants: &mut [u8]) {
    let inputs = words.len() * 32 / bits;
    let (mut line, quads) = (0, inputs.min(PART) / 4);
    for first in (0..inputs / 4).step_by(quads) {
        let mut taken = 0;
        for &width in planes(bits) {
            let (per_line, mask) = (8 / width, u32::from(u8::MAX >> (8 - width)) * 0x0101_0101);
            for part in (0..quads).step_by(per_line) {
                let word = (0..per_line)
                    .fold(0, |word, i| word | (quad(words, bits, first + part + i) >> taken & mask) << (width * i));
                quants[line * 64 + lane * 4..][..4].copy_from_slice(&word.to_le_bytes());
                line += 1;
            }
            taken += width;
        }
    }
}

/// Puts one output's group of bytes into [group][16].
pub(super) fn pack_bytes(words: &[u32], lane: usize, quants: &mut [u8]) {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    for (to, byte) in quants.chunks_exact_mut(super::LANES).zip(bytes) {
        to[lane] = byte;
    }
}

/// Gives `value` each weight of one output's group.
pub(super) fn unpack(quants: &[u8], bits: usize, lane: usize, out: &mut [f32], value: impl Fn(u8) -> f32) {
    let part_bytes = quants.len() / out.len().div_ceil(PART);
    for (quants, out) in quants.chunks_exact(part_bytes).zip(out.chunks_mut(PART)) {
        for (i, out) in out.iter_mut().enumerate() {
            let (mut line, mut taken, mut q) = (0, 0, 0);
            for &width in planes(bits) {
                let per_line = 8 / width;
                let byte = quants[(line + i / 4 / per_line) * 64 + lane * 4 + i % 4];
                q |= (byte >> (width * (i / 4 % per_line)) & u8::MAX >> (8 - width)) << taken;
                line += width;
                taken += width;
            }
            *out = value(q);
        }
    }
}

/// Four numbers of a stream of `bits`-bit ones, from number 4 * `index` on, as four bytes.
fn quad(words: &[u32], bits: usize, index: usize) -> u32 {
    match bits {
        8 => words[index],
        4 => spread(words[index / 2] >> (index % 2 * 16)),
        _ => (0..4).fold(0, |bytes, i| bytes | number(words, bits, 4 * index + i) << (8 * i)),
    }
}

/// The lower four nibbles as four bytes.
fn spread(word: u32) -> u32 {
    let word = word & 0xffff;
    let word = (word | word << 8) & 0x00ff_00ff;
    (word | word << 4) & 0x0f0f_0f0f
}

fn number(words: &[u32], bits: usize, index: usize) -> u32 {
    let (word, shift) = (index * bits / 32, index * bits % 32);
    let high = words.get(word + 1).copied().unwrap_or(0);
    let window = u64::from(high) << 32 | u64::from(words[word]);
    (window >> shift) as u32 & ((1 << bits) - 1)
}
