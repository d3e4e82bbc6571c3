//! Which tokens a forward pass computes. Rows of any length lie one after the other on a single token axis; only
//! attention and the recurrences know where one ends.

use mlx_rs::{Array, ops};

use super::Error;

/// One sequence's tokens within the flat token axis.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Where they start on the flat axis.
    pub start: usize,
    /// How many there are.
    pub length: usize,
    /// How many tokens the sequence's state holds already, so the position of the first of these.
    pub offset: usize,
}

/// A forward pass.
pub struct Batch {
    pub tokens: Array, // [total] u32
    /// The rows, in the order of their tokens.
    pub segments: Vec<Segment>,
}

impl Batch {
    /// Lays rows of (tokens, offset) side by side.
    pub fn new<'a>(rows: impl Iterator<Item = (&'a [u32], usize)>) -> Batch {
        let (mut tokens, mut segments) = (Vec::new(), Vec::new());
        for (row, offset) in rows {
            segments.push(Segment { start: tokens.len(), length: row.len(), offset });
            tokens.extend_from_slice(row);
        }
        Batch { tokens: Array::from_slice(&tokens, &[tokens.len() as i32]), segments }
    }
}

/// The segments' outputs, at least one, on the flat token axis again.
pub fn joined(mut outputs: Vec<Array>) -> Result<Array, Error> {
    match outputs.len() {
        1 => Ok(outputs.remove(0)),
        _ => Ok(ops::concatenate(&outputs, 0)?),
    }
}
