//! f32 activations times f32 weights: dense weights, the exact mode of all others, and mxfp8, whose weights are no
//! integers. Weights become f32 a panel of inputs at a time, in the first-level cache, and all rows pass over them.

use super::{
    AHEAD, Job, Output, Task as Share, blocks_a_task,
    direct::{self, Direct},
    group::{ANY, Shape, for_kind},
    tasks,
};
use crate::kernels::{
    level::{Kernel, Level},
    pack::{Float, Format, Packed},
    pool,
    scratch::Scratch,
    simd::{LANES, Simd, kind},
};

/// Inputs of a panel: whole groups of any format.
const PANEL: usize = 128;
const ROW_CHUNK: usize = 240;
/// Up to so many rows floats are not written to a panel.
const FEW_ROWS: usize = 8;

pub(super) fn multiply(job: &Job, out: &Output, level: Level) {
    let blocks = job.segments.len() * job.packed.blocks();
    let width = level.run(TileBlocks);
    let few = blocks_a_task(blocks, job.packed.block_bytes(), pool::threads()).next_multiple_of(direct::BLOCKS);
    let shares = tasks(job, |rows| if rows <= FEW_ROWS { (few, rows) } else { (width, ROW_CHUNK) });
    let floats = job.packed.kind().is_none();
    pool::run(shares.len(), |index| match &shares[index] {
        task if floats && task.rows.len() <= FEW_ROWS => level.run(Direct { job, out, task }),
        share => level.run(Task { job, out, share }),
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
    job: &'a Job<'a>,
    out: &'a Output<'a>,
    share: &'a Share,
}

impl Kernel for Task<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let blocks = &self.share.blocks;
        let mut block = blocks.start;
        while block < blocks.end {
            if S::FLOAT_TILE.1 > 1 && blocks.end - block > 1 {
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
        let (packed, x, rows) = (self.job.packed, &self.job.x, &self.share.rows);
        let mut panel = Scratch::<f32>::new(C * PANEL * LANES);
        let mut sums = Scratch::<f32>::new(rows.len() * C * LANES);
        sums.fill(0.0);
        for first in (0..packed.k).step_by(PANEL) {
            let inputs = (packed.k - first).min(PANEL);
            let mut weights = [std::ptr::null::<f32>(); C];
            for (c, panel) in panel.chunks_exact_mut(PANEL * LANES).enumerate() {
                let start = (block + c) * packed.block_bytes();
                let bytes = &self.job.matrix(self.share.matrix)[start..][..packed.block_bytes()];
                weights[c] = unpack(s, packed, bytes, first, &mut panel[..inputs * LANES]);
            }
            let mut row = 0;
            while row < rows.len() {
                let left = rows.len() - row;
                let sums = &mut sums[row * C * LANES..];
                let (stride, x) = (x.stride, x.data[(rows.start + row) * x.stride + first..].as_ptr());
                // The panels hold `inputs` inputs, `x` as many of each of the rows left.
                row += match left.min(S::FLOAT_TILE.0) {
                    12.. => s.call(DenseTile::<12, C> { weights, inputs, x, stride, sums }),
                    6.. => s.call(DenseTile::<6, C> { weights, inputs, x, stride, sums }),
                    4.. => s.call(DenseTile::<4, C> { weights, inputs, x, stride, sums }),
                    2.. => s.call(DenseTile::<2, C> { weights, inputs, x, stride, sums }),
                    _ => s.call(DenseTile::<1, C> { weights, inputs, x, stride, sums }),
                };
            }
        }
        for (row, sums) in rows.clone().zip(sums.chunks_exact(C * LANES)) {
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

/// The inputs of a block from `first` on as f32, as many as fit into `panel`: where they lie, or written there.
#[inline(always)]
fn unpack<S: Simd>(s: S, packed: &Packed, block: &[u8], first: usize, panel: &mut [f32]) -> *const f32 {
    let inputs = panel.len() / LANES;
    match packed.format {
        Format::Dense(Float::F32) => return block[first * LANES * 4..][..inputs * LANES * 4].as_ptr().cast(),
        Format::Dense(float) => {
            let halves = &block[first * LANES * 2..][..inputs * LANES * 2];
            for (from, to) in halves.chunks_exact(LANES * 2).zip(panel.chunks_exact_mut(LANES)) {
                s.prefetch(from.as_ptr().wrapping_add(AHEAD));
                // SAFETY: 16 numbers of two bytes are there.
                let values = unsafe {
                    match float {
                        Float::BF16 => s.load_bf16(from.as_ptr().cast()),
                        _ => s.load_f16(from.as_ptr().cast()),
                    }
                };
                s.write(to, values);
            }
        }
        _ => {
            let (group, bytes) = (packed.group(), packed.group_bytes());
            let groups = &block[first / group * bytes..][..inputs / group * bytes];
            match packed.kind() {
                Some(kind) => for_kind!(s, kind, UnpackIntegers { shape: Shape::packed(packed), groups, panel }),
                None => s.call(UnpackMxfp8 { groups, panel }),
            }
        }
    }
    panel.as_ptr()
}

/// Writes groups of integers as f32: scale * q + bias, rounded twice.
struct UnpackIntegers<'a, const KIND: u8> {
    shape: Shape,
    groups: &'a [u8],
    panel: &'a mut [f32],
}

impl<const KIND: u8> Kernel for UnpackIntegers<'_, KIND> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let inputs = kind::inputs(KIND);
        let mut parts = self.panel.chunks_exact_mut(inputs * LANES);
        let mut bytes = [0; 32 * LANES];
        for group in self.groups.chunks_exact(self.shape.group_bytes) {
            let (head, quants) = group.split_at(self.shape.head_bytes);
            // SAFETY: the head is there.
            let (scale, bias) = unsafe { self.shape.numbers::<S, ANY>(s, head.as_ptr()) };
            let value = |q: S::F| s.add(s.mul(scale, q), bias);
            for (quants, to) in quants.chunks_exact(kind::bytes(KIND)).zip(&mut parts) {
                s.prefetch(quants.as_ptr().wrapping_add(AHEAD));
                // SAFETY: the kind's bytes are there, and room for a byte of each weight.
                unsafe { s.unpack::<KIND>(quants.as_ptr(), bytes.as_mut_ptr()) };
                for (line, to) in bytes.chunks_exact(64).zip(to.chunks_exact_mut(4 * LANES)) {
                    // SAFETY: 64 bytes are there.
                    let words = unsafe { s.load_u32(line.as_ptr()) };
                    s.write(to, value(s.bits_to_f32::<0>(words, 255)));
                    s.write(&mut to[LANES..], value(s.bits_to_f32::<8>(words, 255)));
                    s.write(&mut to[2 * LANES..], value(s.bits_to_f32::<16>(words, 255)));
                    s.write(&mut to[3 * LANES..], value(s.bits_to_f32::<24>(words, 255)));
                }
            }
        }
    }
}

/// Writes groups of mxfp8 as f32.
struct UnpackMxfp8<'a> {
    groups: &'a [u8],
    panel: &'a mut [f32],
}

impl Kernel for UnpackMxfp8<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        /// Inputs of a group.
        const GROUP: usize = 32;
        for (group, to) in self.groups.chunks_exact(LANES * (1 + GROUP)).zip(self.panel.chunks_exact_mut(GROUP * LANES))
        {
            // SAFETY: 16 scales begin the group, and 16 codes follow for each input.
            unsafe {
                let scale = s.load_e8m0(group.as_ptr());
                for (i, to) in to.chunks_exact_mut(LANES).enumerate() {
                    let from = group.as_ptr().add(LANES * (1 + i));
                    if i % 4 == 0 {
                        s.prefetch(from.wrapping_add(AHEAD));
                    }
                    s.write(to, s.mul(s.load_e4m3(from), scale));
                }
            }
        }
    }
}
