//! Drawing tokens as one node.

use mlx_rs::Array;

pub use crate::kernels::adjust::Adjustment;
use crate::{
    Error,
    glue::{fits, with_rows},
    kernels::sample::{self, Choice, Draw},
    op::{Dtype, Output, apply_one},
};

/// How one row's token is drawn. See [`Choice`] for the exact definition.
#[derive(Debug, Clone)]
pub struct Sample {
    /// 0 takes the most likely token.
    pub temperature: f32,
    /// 0 keeps all.
    pub top_k: u32,
    /// 1 keeps all.
    pub top_p: f32,
    /// 0 keeps all.
    pub min_p: f32,
    /// The random number, in `[0, 1)`.
    pub u: f32,
    /// Changes to single logits before anything else, each id at most once.
    pub adjustments: Vec<Adjustment>,
    /// The tokens to choose from: bit `b` of word `w` is the token `32 * w + b`. `None` is all.
    pub allowed: Option<Vec<u32>>,
}

/// A token for each row of `logits` `[rows, vocabulary]`, as `[rows]` u32; 0 where none is allowed.
///
/// # Errors
/// A number of rows that does not fit. An adjusted id outside of the vocabulary is left out.
pub fn sample(logits: &Array, rows: Vec<Sample>) -> Result<Array, Error> {
    fits(logits.ndim() == 2 && logits.dim(0) as usize == rows.len(), || {
        format!("{} draws from logits of {:?}", rows.len(), logits.shape())
    })?;
    let shape = [rows.len() as i32];
    let output = Output { shape: &shape, dtype: Dtype::U32, donor: None };
    apply_one(c"mettle::sample", &[logits], output, move |inputs, output| {
        let draws: Vec<Draw> = rows.iter().map(draw).collect();
        with_rows(&inputs[0], 1, |logits| sample::sample(logits, &draws, output.slice()));
    })
}

fn draw(row: &Sample) -> Draw<'_> {
    let Sample { temperature, top_k, top_p, min_p, u, .. } = *row;
    let choice = Choice { temperature, top_k: top_k as usize, top_p, min_p, u };
    Draw { choice, adjustments: &row.adjustments, allowed: row.allowed.as_deref() }
}
