//! A few rows times weights that are floats: some blocks at a time, each weight widened in a register and used at once.
//! Decoding reads them no slower than they come.

use super::{AHEAD, Job, Output, Task};
use crate::kernels::{
    level::Kernel,
    pack::{Float, Format, Micro},
    simd::{LANES, Simd},
};

/// The most blocks of a tile.
pub(super) const BLOCKS: usize = 4;

/// Formats of weights, as const arguments.
const F16: u8 = 0;
const BF16: u8 = 1;
const F32: u8 = 2;
const MXFP8: u8 = 3;
/// Inputs that share a scale in mxfp8.
const GROUP: usize = 32;

/// Bytes of one input of a block.
const fn width(form: u8) -> usize {
    match form {
        F16 | BF16 => 2 * LANES,
        F32 => 4 * LANES,
        _ => LANES,
    }
}

pub(super) struct Direct<'a> {
    pub job: &'a Job<'a>,
    pub out: &'a Output<'a>,
    pub task: &'a Task,
}

impl Kernel for Direct<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match self.job.packed.format {
            Format::Dense(Float::F16) => self.rows_of::<S, F16>(s),
            Format::Dense(Float::BF16) => self.rows_of::<S, BF16>(s),
            Format::Dense(Float::F32) => self.rows_of::<S, F32>(s),
            Format::Micro(Micro::Mxfp8) => self.rows_of::<S, MXFP8>(s),
            other => unreachable!("{other:?} are no floats"),
        }
    }
}

impl Direct<'_> {
    /// Four results of 16 lanes at a time: as many sums in flight keep the multipliers busy.
    #[inline(always)]
    fn rows_of<S: Simd, const FORM: u8>(&self, s: S) {
        let mut row = self.task.rows.start;
        while row < self.task.rows.end {
            row += match self.task.rows.end - row {
                4.. => self.blocks_of::<S, 4, 1, FORM>(s, row),
                2.. => self.blocks_of::<S, 2, 2, FORM>(s, row),
                _ => self.blocks_of::<S, 1, BLOCKS, FORM>(s, row),
            };
        }
    }

    /// `R` rows from `row` on times all blocks, `C` at a time while there are as many; gives `R`.
    #[inline(always)]
    fn blocks_of<S: Simd, const R: usize, const C: usize, const FORM: u8>(&self, s: S, row: usize) -> usize {
        let &Direct { job, out, task } = self;
        let mut block = task.blocks.start;
        while block < task.blocks.end {
            if task.blocks.end - block >= C {
                s.call(DirectTile::<R, C, FORM> { job, out, matrix: task.matrix, block, row });
                block += C;
            } else {
                s.call(DirectTile::<R, 1, FORM> { job, out, matrix: task.matrix, block, row });
                block += 1;
            }
        }
        R
    }
}

/// `R` rows from `row` on times `C` blocks from `block` on.
struct DirectTile<'a, const R: usize, const C: usize, const FORM: u8> {
    job: &'a Job<'a>,
    out: &'a Output<'a>,
    matrix: usize,
    block: usize,
    row: usize,
}

impl<const R: usize, const C: usize, const FORM: u8> Kernel for DirectTile<'_, R, C, FORM> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (packed, x) = (self.job.packed, &self.job.x);
        let bytes = packed.block_bytes();
        let blocks = &self.job.matrix(self.matrix)[self.block * bytes..][..C * bytes];
        let rows: [&[f32]; R] = std::array::from_fn(|r| x.row(self.row + r));
        let mut acc = [[s.zero(); C]; R];
        let (mut scales, mut at) = ([s.zero(); C], 0);
        for input in 0..packed.k {
            // SAFETY: the blocks hold every input's values and, in front of each group's, its scales; the rows hold
            // every input.
            unsafe {
                if FORM == MXFP8 && input % GROUP == 0 {
                    for c in 0..C {
                        scales[c] = s.load_e8m0(blocks.as_ptr().add(c * bytes + at));
                    }
                    at += LANES;
                }
                let mut w = [s.zero(); C];
                for c in 0..C {
                    let from = blocks.as_ptr().add(c * bytes + at);
                    if at % 64 < width(FORM) {
                        s.prefetch(from.wrapping_add(AHEAD));
                    }
                    w[c] = match FORM {
                        F16 => s.load_f16(from.cast()),
                        BF16 => s.load_bf16(from.cast()),
                        F32 => s.load(from.cast()),
                        _ => s.mul(s.load_e4m3(from), scales[c]),
                    };
                }
                for r in 0..R {
                    let value = s.splat(*rows[r].get_unchecked(input));
                    for c in 0..C {
                        acc[r][c] = s.fma(w[c], value, acc[r][c]);
                    }
                }
            }
            at += width(FORM);
        }
        for r in 0..R {
            for c in 0..C {
                // SAFETY: these blocks and rows are this task's.
                unsafe { self.out.put(s, self.row + r, self.block + c, acc[r][c]) }
            }
        }
    }
}
