//! y = x Wᵀ for packed weights, with activations in integers or exact.
//!
//! Whatever the number of rows and threads, an output sees the same operations in the same order: a row's result has
//! the same bits alone and in a batch.

mod affine;
#[cfg(target_arch = "x86_64")]
mod amx;
mod dense;
mod direct;
mod gather;
mod group;
mod quantize;

pub use gather::{Gather, gather};

use super::{
    level::level,
    pack::Packed,
    rows::{Rows, RowsMut, SharedRows, chunk},
    simd::{LANES, Simd},
};

/// How many bytes ahead of the packed weights in use others are asked for.
const AHEAD: usize = 4096;

/// How activations meet quantized weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Activations are rounded to two int8, with a scale for each 32 of a row, 16 where the weights' groups are of 16.
    /// Weights that are no integers, dense ones and mxfp8, ignore it.
    Fast,
    /// f32 activations times the weights' exact values.
    Exact,
}

/// A product of activations and packed weights.
#[derive(Clone, Copy)]
pub struct Matmul<'a> {
    pub packed: &'a Packed,
    /// `packed.bytes()` long.
    pub data: &'a [u8],
    /// [m, k]
    pub x: Rows<'a>,
    /// [m, n], added to the product: a residual.
    pub add: Option<Rows<'a>>,
    pub mode: Mode,
}

/// Computes x Wᵀ (+ add) into `out`, [m, n].
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul(op: &Matmul, out: RowsMut) {
    op.packed.check(op.data);
    assert_eq!(op.x.width, op.packed.k, "the activations' width and the weights' inputs");
    op.x.check("activations");
    if let Some(add) = op.add {
        assert_eq!((add.count, add.width), (op.x.count, op.packed.n), "the residual's rows and width");
        add.check("residual");
    }
    let out = Output { rows: out.share(op.x.count, op.packed.n, "matmul"), add: op.add, order: None };
    let segments = [Segment { matrix: 0, rows: 0..op.x.count }];
    multiply(&Job { packed: op.packed, data: op.data, x: op.x, segments: &segments }, &out, op.mode);
}

fn multiply(job: &Job, out: &Output, mode: Mode) {
    match (job.packed.kind(), mode) {
        (Some(_), Mode::Fast) => affine::multiply(job, out, level()),
        _ => dense::multiply(job, out, level()),
    }
}

/// What is multiplied: rows with the matrices of a stack, each row with one of them.
struct Job<'a> {
    packed: &'a Packed,
    /// All matrices, one after the other.
    data: &'a [u8],
    /// [m, k]
    x: Rows<'a>,
    segments: &'a [Segment],
}

impl<'a> Job<'a> {
    fn matrix(&self, index: usize) -> &'a [u8] {
        &self.data[index * self.packed.bytes()..][..self.packed.bytes()]
    }
}

/// Neighbouring rows that meet the same matrix.
struct Segment {
    matrix: usize,
    rows: std::ops::Range<usize>,
}

/// Some rows of a segment times some blocks of its matrix.
struct Task {
    matrix: usize,
    blocks: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
}

/// Shares out the segments; `size` says how many blocks and rows a task of a segment of so many rows takes.
fn tasks(job: &Job, size: impl Fn(usize) -> (usize, usize)) -> Vec<Task> {
    let blocks = job.packed.blocks();
    let mut tasks = Vec::new();
    for Segment { matrix, rows } in job.segments {
        let (width, height) = size(rows.len());
        for index in 0..blocks.div_ceil(width) {
            for part in 0..rows.len().div_ceil(height) {
                let part = chunk(part, height, rows.len());
                let rows = rows.start + part.start..rows.start + part.end;
                tasks.push(Task { matrix: *matrix, blocks: chunk(index, width, blocks), rows });
            }
        }
    }
    tasks
}

/// Where results go, and what is added to them on the way.
#[derive(Clone, Copy)]
struct Output<'a> {
    rows: SharedRows<'a>,
    add: Option<Rows<'a>>,
    /// The output's row for each row of the job; `None` where they are the same.
    order: Option<&'a [u32]>,
}

impl Output<'_> {
    /// Writes the 16 results of `row` for `block`, or as many as the block has.
    ///
    /// # Safety
    /// No other thread works on this row and block.
    #[inline(always)]
    unsafe fn put<S: Simd>(&self, s: S, row: usize, block: usize, mut value: S::F) {
        let start = block * LANES;
        let width = LANES.min(self.rows.width - start);
        let row = self.order.map_or(row, |order| order[row] as usize);
        // SAFETY: the caller's promise.
        let out = unsafe { self.rows.part(row, start, width) };
        if let Some(add) = self.add {
            value = s.add(value, s.read_part(&add.row(row)[start..start + width]));
        }
        if width == LANES {
            s.write(out, value);
        } else {
            s.write_part(out, value);
        }
    }
}

/// How many blocks a task takes: enough tasks to share out evenly, none so small that taking it shows.
fn blocks_a_task(blocks: usize, block_cost: usize, threads: usize) -> usize {
    /// Bytes read, or thereabouts; a microsecond's worth.
    const LEAST: usize = 16 << 10;
    let fair = blocks.div_ceil(threads * 4);
    fair.max(LEAST.div_ceil(block_cost.max(1))).max(1)
}

#[cfg(test)]
mod tests;
