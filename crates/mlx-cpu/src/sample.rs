//! Drawing tokens as one node.

use mlx_rs::Array;

use crate::{
    Error,
    glue::{fits, with_rows},
    kernels::{
        rows::Rows,
        sample::{self, Choice},
    },
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
}

/// A logit becomes (logit / penalty if it is positive, else logit * penalty) + offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    pub id: u32,
    pub penalty: f32,
    pub offset: f32,
}

/// A token for each row of `logits` `[rows, vocabulary]`, as `[rows]` u32.
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
        let choices: Vec<Choice> = rows.iter().map(choice).collect();
        with_rows(&inputs[0], 1, |logits| {
            if rows.iter().all(|row| row.adjustments.is_empty()) {
                return sample::sample(logits, &choices, output.slice());
            }
            let adjusted = adjusted(logits, &rows);
            sample::sample(Rows::packed(&adjusted, logits.width), &choices, output.slice());
        });
    })
}

fn choice(row: &Sample) -> Choice {
    let Sample { temperature, top_k, top_p, min_p, u, .. } = *row;
    Choice { temperature, top_k: top_k as usize, top_p, min_p, u }
}

fn adjusted(logits: Rows, rows: &[Sample]) -> Vec<f32> {
    let mut adjusted = Vec::with_capacity(logits.count * logits.width);
    for (index, row) in rows.iter().enumerate() {
        let start = adjusted.len();
        adjusted.extend_from_slice(&logits.data[index * logits.stride..][..logits.width]);
        for &Adjustment { id, penalty, offset } in &row.adjustments {
            if let Some(logit) = adjusted[start..].get_mut(id as usize) {
                *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty } + offset;
            }
        }
    }
    adjusted
}
