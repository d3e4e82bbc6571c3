//! f32 activations times f32 weights: dense weights, and the exact mode of affine ones. Weights become f32 a panel of
//! inputs at a time, in the first-level cache, and all rows pass over them.

use super::{AHEAD, Matmul, Output, blocks_a_task};
use crate::kernels::{
    level::{Kernel, Level},
    pack::{Float, Format},
    pool,
    rows::chunk,
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// Inputs of a panel: whole groups of any format.
const PANEL: usize = 128;
const ROW_CHUNK: usize = 240;

pub(super) fn multiply(op: &Matmul, out: &Output, level: Level) {
    let (m, blocks) = (op.x.count, op.packed.blocks());
    let width = level.run(TileBlocks);
    let size = match m {
        0..=8 => blocks_a_task(blocks, op.packed.block_bytes(), pool::threads()).next_multiple_of(width),
        _ => width,
    };
    let chunks = m.div_ceil(ROW_CHUNK);
    pool::run(blocks.div_ceil(size) * chunks, |task| {
        let rows = chunk(task % chunks, ROW_CHUNK, m);
        let blocks = chunk(task / chunks, size, blocks);
        level.run(Task { op, out, blocks, rows });
    });
}

struct TileBlocks;

impl Kernel for TileBlocks {
    type Out = usize;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        S::FLOAT_TILE.1
    }
}

struct Task<'a> {
    op: &'a Matmul<'a>,
    out: &'a Output<'a>,
    blocks: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
}

impl Kernel for Task<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut block = self.blocks.start;
        while block < self.blocks.end {
            if S::FLOAT_TILE.1 > 1 && self.blocks.end - block > 1 {
                self.panels::<S, 2>(s, block);
                block += 2;
            } else {
                self.panels::<S, 1>(s, block);
                block += 1;
            }
        }
    }
}

impl Task<'_> {
    /// All rows and inputs of `C` blocks.
    #[inline(always)]
    fn panels<S: Simd, const C: usize>(&self, s: S, block: usize) {
        if C > S::FLOAT_TILE.1 {
            unreachable!("no tile has more blocks");
        }
        let packed = self.op.packed;
        let mut panel = Scratch::<f32>::new(C * PANEL * LANES);
        let mut sums = Scratch::<f32>::new(self.rows.len() * C * LANES);
        sums.fill(0.0);
        for first in (0..packed.k).step_by(PANEL) {
            let inputs = (packed.k - first).min(PANEL);
            let mut weights = [std::ptr::null::<f32>(); C];
            for (c, panel) in panel.chunks_exact_mut(PANEL * LANES).enumerate() {
                let bytes = &self.op.data[(block + c) * packed.block_bytes()..][..packed.block_bytes()];
                weights[c] = unpack(s, packed.format, bytes, first, inputs, panel);
            }
            let mut row = 0;
            while row < self.rows.len() {
                let left = self.rows.len() - row;
                let sums = &mut sums[row * C * LANES..];
                let x = self.op.x.data[(self.rows.start + row) * self.op.x.stride + first..].as_ptr();
                // The panels hold `inputs` inputs, `x` as many of each of the rows left.
                let stride = self.op.x.stride;
                row += match left.min(S::FLOAT_TILE.0) {
                    12.. => s.call(DenseTile::<12, C> { weights, inputs, x, stride, sums }),
                    6.. => s.call(DenseTile::<6, C> { weights, inputs, x, stride, sums }),
                    4.. => s.call(DenseTile::<4, C> { weights, inputs, x, stride, sums }),
                    2.. => s.call(DenseTile::<2, C> { weights, inputs, x, stride, sums }),
                    _ => s.call(DenseTile::<1, C> { weights, inputs, x, stride, sums }),
                };
            }
        }
        for (row, sums) in self.rows.clone().zip(sums.chunks_exact(C * LANES)) {
            for c in 0..C {
                // SAFETY: these blocks and rows are this task's.
                unsafe { self.out.put(s, row, block + c, s.read(&sums[c * LANES..])) }
            }
        }
    }
}

/// Adds the products of `R` rows of `x`, `stride` apart, with `C` panels of weights to sums kept in memory; gives `R`.
/// Whoever makes one sees to it that panels and rows hold `inputs` inputs.
struct DenseTile<'a, const R: usize, const C: usize> {
    weights: [*const f32; C],
    inputs: usize,
    x: *const f32,
    stride: usize,
    /// [R, C, 16] and maybe more
    sums: &'a mut [f32],
}

impl<const R: usize, const C: usize> Kernel for DenseTile<'_, R, C> {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        if R > S::FLOAT_TILE.0 {
            unreachable!("no tile has more rows");
        }
        let sums = &mut self.sums[..R * C * LANES];
        let mut acc = [[s.zero(); C]; R];
        for r in 0..R {
            for c in 0..C {
                acc[r][c] = s.read(&sums[(r * C + c) * LANES..]);
            }
        }
        for input in 0..self.inputs {
            // SAFETY: the maker's promise.
            unsafe {
                let mut w = [s.zero(); C];
                for c in 0..C {
                    w[c] = s.load(self.weights[c].add(input * LANES));
                }
                for r in 0..R {
                    let x = s.splat(*self.x.add(r * self.stride + input));
                    for c in 0..C {
                        acc[r][c] = s.fma(w[c], x, acc[r][c]);
                    }
                }
            }
        }
        for r in 0..R {
            for c in 0..C {
                s.write(&mut sums[(r * C + c) * LANES..], acc[r][c]);
            }
        }
        R
    }
}

/// The `inputs` inputs of a block from `first` on as f32: where they lie, or written to `panel`.
#[inline(always)]
fn unpack<S: Simd>(s: S, format: Format, block: &[u8], first: usize, inputs: usize, panel: &mut [f32]) -> *const f32 {
    let panel = &mut panel[..inputs * LANES];
    match format {
        Format::Dense(Float::F32) => return block[first * LANES * 4..][..inputs * LANES * 4].as_ptr().cast(),
        Format::Dense(float) => {
            let halves = &block[first * LANES * 2..][..inputs * LANES * 2];
            for (from, to) in halves.chunks_exact(LANES * 2).zip(panel.chunks_exact_mut(LANES)) {
                s.prefetch(from.as_ptr().wrapping_add(AHEAD));
                // SAFETY: 16 numbers of two bytes are there.
                s.write(to, unsafe { load(s, float, from) });
            }
        }
        Format::Affine { bits, group, scales } => {
            let numbers = LANES * scales.bytes();
            let bytes = 2 * numbers + LANES * group * bits / 8;
            let groups = &block[first / group * bytes..][..inputs / group * bytes];
            for (from, to) in groups.chunks_exact(bytes).zip(panel.chunks_exact_mut(group * LANES)) {
                // SAFETY: 16 scales and 16 biases begin the group.
                let (scale, bias) = unsafe { (load(s, scales, from), load(s, scales, &from[numbers..])) };
                unpack_group(s, bits, scale, bias, &from[2 * numbers..], to);
            }
        }
    }
    panel.as_ptr()
}

/// # Safety
/// 16 numbers of the format are in `from`.
#[inline(always)]
unsafe fn load<S: Simd>(s: S, float: Float, from: &[u8]) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        match float {
            Float::F16 => s.load_f16(from.as_ptr().cast()),
            Float::BF16 => s.load_bf16(from.as_ptr().cast()),
            Float::F32 => s.load(from.as_ptr().cast()),
        }
    }
}

#[inline(always)]
fn unpack_group<S: Simd>(s: S, bits: usize, scale: S::F, bias: S::F, quants: &[u8], to: &mut [f32]) {
    let value = |q: S::F| s.add(s.mul(scale, q), bias);
    let inputs = 32 / bits;
    for (line, to) in quants.chunks_exact(64).zip(to.chunks_exact_mut(inputs * LANES)) {
        // SAFETY: 64 bytes are there.
        let words = unsafe { s.load_u32(line.as_ptr()) };
        if bits == 8 {
            s.write(to, value(s.bits_to_f32::<0>(words, 255)));
            s.write(&mut to[LANES..], value(s.bits_to_f32::<8>(words, 255)));
            s.write(&mut to[2 * LANES..], value(s.bits_to_f32::<16>(words, 255)));
            s.write(&mut to[3 * LANES..], value(s.bits_to_f32::<24>(words, 255)));
        } else {
            s.write(to, value(s.bits_to_f32::<0>(words, 15)));
            s.write(&mut to[LANES..], value(s.bits_to_f32::<8>(words, 15)));
            s.write(&mut to[2 * LANES..], value(s.bits_to_f32::<16>(words, 15)));
            s.write(&mut to[3 * LANES..], value(s.bits_to_f32::<24>(words, 15)));
            s.write(&mut to[4 * LANES..], value(s.bits_to_f32::<4>(words, 15)));
            s.write(&mut to[5 * LANES..], value(s.bits_to_f32::<12>(words, 15)));
            s.write(&mut to[6 * LANES..], value(s.bits_to_f32::<20>(words, 15)));
            s.write(&mut to[7 * LANES..], value(s.bits_to_f32::<28>(words, 15)));
        }
    }
}
