//! Which tokens a forward pass computes. Rows of any length lie one after the other on a single token axis; only
//! attention and the recurrences know where one ends.

use mlx_rs::{Array, ops, ops::indexing::take_axis};

use super::Error;
use crate::engine::Tokens;

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

/// The tokens that a pass drew, on the device.
pub struct DrawnTokens {
    pub ids: Array, // [drawn] u32
    /// For each row of the pass, where among `ids` its token is.
    pub places: Vec<Option<usize>>,
}

impl Batch {
    /// Lays rows of (ids, offset) side by side.
    pub fn new<'a>(rows: impl Iterator<Item = (&'a [u32], usize)>) -> Batch {
        let mut ids = Vec::new();
        let mut segments = Vec::new();
        for (row, offset) in rows {
            segments.push(Segment { start: ids.len(), length: row.len(), offset });
            ids.extend_from_slice(row);
        }
        Batch { tokens: Array::from_slice(&ids, &[ids.len() as i32]), segments }
    }

    /// Lays rows of (tokens, offset) side by side, some of them what the pass before `drew`.
    ///
    /// # Errors
    /// A row that asks for a token that the pass before did not draw.
    pub fn of_rows<'a>(
        rows: impl Iterator<Item = (Tokens<'a>, usize)>,
        drew: Option<&DrawnTokens>,
    ) -> Result<Batch, Error> {
        let mut ids = Vec::new();
        let mut segments = Vec::new();
        let mut drawn = Vec::new();
        for (tokens, offset) in rows {
            segments.push(Segment { start: ids.len(), length: tokens.len(), offset });
            match tokens {
                Tokens::Ids(row) => ids.extend(row.iter().map(|id| id.0)),
                Tokens::Drawn { row } => {
                    let place = drew.and_then(|drew| drew.places.get(row).copied().flatten());
                    let Some(place) = place else {
                        return Err(Error(format!("row {row} of the last pass drew no token; this is a bug")));
                    };
                    drawn.push((ids.len(), place));
                    ids.push(0);
                }
            }
        }
        let tokens = match drew {
            Some(drew) if !drawn.is_empty() => with_drawn(&ids, &drawn, &drew.ids)?,
            _ => Array::from_slice(&ids, &[ids.len() as i32]),
        };
        Ok(Batch { tokens, segments })
    }
}

/// The ids with drawn tokens at their positions, by (position, place among the drawn).
fn with_drawn(ids: &[u32], drawn: &[(usize, usize)], drawn_ids: &Array) -> Result<Array, Error> {
    // Mostly every row goes on with the token that it drew.
    let is_same = drawn.len() == ids.len() && drawn.iter().all(|(position, place)| position == place);
    if is_same && drawn_ids.dim(0) as usize == ids.len() {
        return Ok(drawn_ids.clone());
    }
    let length = ids.len() as i32;
    let all = ops::concatenate(&[&Array::from_slice(ids, &[length]), drawn_ids], 0)?;
    let mut sources: Vec<u32> = (0..length as u32).collect();
    for &(position, place) in drawn {
        sources[position] = (ids.len() + place) as u32;
    }
    Ok(take_axis(&all, Array::from_slice(&sources, &[length]), 0)?)
}

/// The segments' outputs, at least one, on the flat token axis again.
pub fn joined(mut outputs: Vec<Array>) -> Result<Array, Error> {
    match outputs.len() {
        1 => Ok(outputs.remove(0)),
        _ => Ok(ops::concatenate(&outputs, 0)?),
    }
}
