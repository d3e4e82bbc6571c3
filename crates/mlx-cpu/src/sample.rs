//! Drawing tokens as one node, and how likely they were as another.

use mlx_rs::Array;

pub use crate::kernels::{adjust::Adjustment, logprobs::Asked, sample::Choice};
use crate::{
    Error,
    glue::{fits, with_rows},
    kernels::{
        logprobs,
        rows::RowsMut,
        sample::{self, Draw},
    },
    op::{Dtype, Output, apply_one},
};

/// How one row's token is drawn.
#[derive(Debug, Clone)]
pub struct Sample {
    pub choice: Choice,
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
    Draw { choice: row.choice, adjustments: &row.adjustments, allowed: row.allowed.as_deref() }
}

/// How likely tokens are by each of `asked`'s rows of `logits` `[rows, vocabulary]`: of the row's own in `drawn` `[rows]`
/// u32 and of the most likely ones. `[asked, 1 + 2 * most]` u32, where `most` is the largest `top`: the bits of the drawn
/// token's log probability, then ids and bits of log probabilities, most likely first.
///
/// # Errors
/// Shapes that do not fit, a row that is not there, more tokens than the vocabulary has.
pub fn logprobs(logits: &Array, drawn: &Array, asked: Vec<Asked>) -> Result<Array, Error> {
    let fit = logits.ndim() == 2 && drawn.shape() == [logits.dim(0)] && drawn.dtype() == mlx_rs::Dtype::Uint32;
    fits(fit, || format!("log probabilities of {:?} by {:?}", drawn.shape(), logits.shape()))?;
    let there = |asked: &Asked| asked.row < logits.dim(0) as usize && asked.top <= logits.dim(1) as usize;
    fits(asked.iter().all(there), || format!("{asked:?} of {:?}", logits.shape()))?;
    let most = asked.iter().map(|asked| asked.top).max().unwrap_or(0);
    let width = logprobs::width(most);
    let shape = [asked.len() as i32, width as i32];
    let output = Output { shape: &shape, dtype: Dtype::U32, donor: None };
    apply_one(c"mettle::logprobs", &[logits, drawn], output, move |inputs, output| {
        let drawn = inputs[1].gather::<u32>();
        let results = RowsMut::packed(output.slice(), width);
        with_rows(&inputs[0], 1, |logits| logprobs::logprobs(logits, &drawn, &asked, results));
    })
}
