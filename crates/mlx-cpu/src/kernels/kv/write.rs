//! Writing one position of one head into a page.

use super::{Format, GROUP, Layout};
use crate::kernels::{
    float,
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// Writes a head's key and value, `dim` numbers each, to a position of a page.
#[inline(always)]
pub fn write<S: Simd>(s: S, layout: &Layout, page: &mut [u8], head: usize, position: usize, k: &[f32], v: &[f32]) {
    let Layout { format, positions, dim, .. } = *layout;
    assert!(position < positions && k.len() == dim && v.len() == dim, "a position of a page");
    let (keys, values) = layout.parts(head);
    let mut row = Scratch::<u8>::new(4 * dim.next_multiple_of(GROUP));
    let (numbers, scales) = page[keys].split_at_mut(layout.key_numbers());
    encode(
        s,
        format,
        k,
        &mut row,
        &mut scales.chunks_exact_mut(2 * positions).map(|scales| &mut scales[2 * position..]),
    );
    match format {
        Format::F32 => scatter::<4>(&row[..4 * dim], numbers, position, positions),
        Format::F16 | Format::BF16 => scatter::<2>(&row[..2 * dim], numbers, position, positions),
        Format::Int8 => scatter::<1>(&row[..dim], numbers, position, positions),
        Format::Int4 => {
            for (pair, column) in
                row[..dim.next_multiple_of(2)].chunks_exact(2).zip(numbers.chunks_exact_mut(positions))
            {
                column[position] = pair[0] | pair[1] << 4;
            }
        }
    }
    let (numbers, scales) = page[values].split_at_mut(layout.value() * positions);
    encode(
        s,
        format,
        v,
        &mut row,
        &mut scales.chunks_exact_mut(2 * positions).map(|scales| &mut scales[2 * position..]),
    );
    let numbers = &mut numbers[position * layout.value()..][..layout.value()];
    match format {
        Format::Int4 => {
            for (to, pair) in numbers.chunks_exact_mut(LANES).zip(row.chunks_exact(2 * LANES)) {
                for i in 0..LANES {
                    to[i] = pair[i] | pair[LANES + i] << 4;
                }
            }
        }
        _ => numbers.copy_from_slice(&row[..layout.value()]),
    }
}

/// Spreads numbers of `SIZE` bytes, one to each row of `positions`.
#[inline(always)]
fn scatter<const SIZE: usize>(numbers: &[u8], to: &mut [u8], position: usize, positions: usize) {
    let (numbers, _) = numbers.as_chunks::<SIZE>();
    let (to, _) = to.as_chunks_mut::<SIZE>();
    for (number, row) in numbers.iter().zip(to.chunks_exact_mut(positions)) {
        row[position] = *number;
    }
}

/// Puts numbers into `row` as pages store them, though 4 bits are a byte each still, with zeros up to a whole vector
/// and, quantized ones, up to a whole group. `scales` takes each group's scale and then its bias.
#[inline(always)]
fn encode<'a, S: Simd>(
    s: S,
    format: Format,
    x: &[f32],
    row: &mut [u8],
    scales: &mut impl Iterator<Item = &'a mut [u8]>,
) {
    let levels = match format {
        Format::Int8 => (-127.0, 127.0),
        Format::Int4 => (0.0, 15.0),
        Format::F32 | Format::F16 | Format::BF16 => return encode_floats(s, format, x, row),
    };
    for (x, row) in x.chunks(GROUP).zip(row.chunks_exact_mut(GROUP)) {
        for number in quantize(s, x, levels, row) {
            scales.next().expect("a scale and a bias a group")[..2].copy_from_slice(&number.to_ne_bytes());
        }
    }
}

#[inline(always)]
fn encode_floats<S: Simd>(s: S, format: Format, x: &[f32], row: &mut [u8]) {
    for (i, x) in x.chunks(LANES).enumerate() {
        let vector = s.read_part(x);
        match format {
            // SAFETY: so goes each arm: as many bytes are there, which the slicing checks.
            Format::F32 => unsafe { s.store(row[64 * i..][..64].as_mut_ptr().cast(), vector) },
            // SAFETY: as above.
            Format::F16 => unsafe { s.store_f16(row[32 * i..][..32].as_mut_ptr().cast(), vector) },
            _ => {
                let (to, _) = row[32 * i..][..32].as_chunks_mut::<2>();
                to.fill([0; 2]);
                for (to, x) in to.iter_mut().zip(x) {
                    *to = float::f32_to_bf16(*x).to_ne_bytes();
                }
            }
        }
    }
}

/// Quantizes up to 32 numbers, zeros after them, to whole ones; gives scale and bias as f16.
#[inline(always)]
fn quantize<S: Simd>(s: S, x: &[f32], (lowest, highest): (f32, f32), to: &mut [u8]) -> [u16; 2] {
    let (a, b) = x.split_at(x.len().min(LANES));
    let halves = [s.read_part(a), s.read_part(b)];
    let negated = halves.map(|half| s.sub(s.zero(), half));
    let most = s.largest(s.max(halves[0], halves[1]));
    let least = -s.largest(s.max(negated[0], negated[1]));
    let scale = float::f32_to_f16((most - least) / (highest - lowest));
    let step = float::f16_to_f32(scale);
    // So that the least number quantizes to the lowest level.
    let bias = float::f32_to_f16(least - lowest * step);
    let inverse = s.splat(if step > 0.0 { 1.0 / step } else { 0.0 });
    let offset = s.splat(float::f16_to_f32(bias));
    for (half, to) in halves.into_iter().zip(to.chunks_exact_mut(LANES)) {
        let level = s.max(s.mul(s.sub(half, offset), inverse), s.splat(lowest));
        let level = s.select_lt(s.splat(highest), level, s.splat(highest), level);
        // SAFETY: 16 bytes are there; the levels lie within -127..=127, and what is not a number is the lowest.
        unsafe { s.store_i8(to.as_mut_ptr().cast(), level) };
    }
    [scale, bias]
}
