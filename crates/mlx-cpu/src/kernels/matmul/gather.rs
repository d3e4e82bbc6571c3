//! Rows times matrices of a stack, each row with the one it chose: the experts of a mixture.
//!
//! Rows are put in the order of their matrices first, so that each matrix is read once for all its rows.

use super::{Job, Mode, Output, Segment, multiply};
use crate::kernels::{
    pack::Packed,
    pool,
    rows::{Rows, RowsMut, chunk},
    scratch::Scratch,
};

/// A product of activations with a stack of matrices of one shape and format.
#[derive(Clone, Copy)]
pub struct Gather<'a> {
    /// One matrix.
    pub packed: &'a Packed,
    /// The stack: matrices of `packed.bytes()`, one after the other.
    pub data: &'a [u8],
    /// [m, k], or fewer rows that each stand for the same number of neighbouring ones.
    pub x: Rows<'a>,
    /// The matrix of each of the m rows.
    pub matrices: &'a [u32],
    pub mode: Mode,
}

/// Computes `out`[i] = x[i] W[matrices[i]]ᵀ, [m, n]. Where x has m / c rows, its row i / c is taken for x[i].
///
/// # Panics
/// If the shapes do not fit or a matrix is not in the stack.
pub fn gather(op: &Gather, out: RowsMut) {
    let (packed, m) = (op.packed, op.matrices.len());
    let stack = op.data.len() / packed.bytes();
    assert_eq!(op.data.len(), stack * packed.bytes(), "bytes of a stack of {packed:?}");
    assert_eq!(op.x.width, packed.k, "the activations' width and the weights' inputs");
    op.x.check("activations");
    let out = out.share(m, packed.n, "gather");
    if m == 0 {
        return;
    }
    let copies = m.checked_div(op.x.count).unwrap_or(0);
    assert_eq!(copies * op.x.count, m, "{} rows of activations for {m} products", op.x.count);
    let (order, segments) = sorted(op.matrices, stack);
    let mut x = Scratch::<f32>::new(m * packed.k);
    copy_rows(&op.x, |row| order[row] as usize / copies, &mut x);
    let job = Job { packed, data: op.data, x: Rows::packed(&x, packed.k), segments: &segments };
    multiply(&job, &Output { rows: out, add: None, order: Some(&order) }, op.mode);
}

/// The rows in the order of their matrices, and the runs of those that share one.
fn sorted(matrices: &[u32], stack: usize) -> (Vec<u32>, Vec<Segment>) {
    let mut order: Vec<u32> = (0..matrices.len() as u32).collect();
    order.sort_by_key(|&row| matrices[row as usize]);
    let mut segments: Vec<Segment> = Vec::new();
    for (at, &row) in order.iter().enumerate() {
        let matrix = matrices[row as usize] as usize;
        assert!(matrix < stack, "matrix {matrix} of a stack of {stack}");
        match segments.last_mut() {
            Some(last) if last.matrix == matrix => last.rows.end = at + 1,
            _ => segments.push(Segment { matrix, rows: at..at + 1 }),
        }
    }
    (order, segments)
}

/// Writes the rows that `source` names.
fn copy_rows(x: &Rows, source: impl Fn(usize) -> usize + Sync, to: &mut [f32]) {
    /// Rows a task copies.
    const ROWS: usize = 16;
    let (count, width) = (to.len() / x.width, x.width);
    let rows = RowsMut::packed(to, width).share(count, width, "copied rows");
    pool::run_worth(4 * count * width, count.div_ceil(ROWS), |task| {
        for row in chunk(task, ROWS, count) {
            // SAFETY: each row is one task's.
            unsafe { rows.row(row) }.copy_from_slice(x.row(source(row)));
        }
    });
}
