//! What happens to a row of logits before a token is chosen from it: single logits are changed, and tokens that are
//! not allowed are left out.

use std::borrow::Cow;

/// A logit becomes (logit / penalty if it is positive, else logit * penalty) + offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    pub id: u32,
    pub penalty: f32,
    pub offset: f32,
}

/// Logits to choose from.
pub(super) struct Adjusted<'a> {
    pub logits: Cow<'a, [f32]>,
    /// Whose logits these are, in order; `None` for all tokens.
    ids: Option<Vec<u32>>,
}

impl<'a> Adjusted<'a> {
    /// A row after adjustments, each id at most once. `allowed` has a bit for each token, 32 to a word, and none for
    /// those beyond its end. Leaving tokens out is as if their logits were -infinity, but for a row of nothing else.
    pub fn of(logits: &'a [f32], adjustments: &[Adjustment], allowed: Option<&[u32]>) -> Self {
        let (mut logits, ids) = match allowed {
            None => (Cow::Borrowed(logits), None),
            Some(words) => {
                let (logits, ids) = gather(logits, words);
                (Cow::Owned(logits), Some(ids))
            }
        };
        for &Adjustment { id, penalty, offset } in adjustments {
            let place = match &ids {
                None => Some(id as usize).filter(|place| *place < logits.len()),
                Some(ids) => ids.binary_search(&id).ok(),
            };
            if let Some(place) = place {
                let logit = &mut logits.to_mut()[place];
                *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty } + offset;
            }
        }
        Adjusted { logits, ids }
    }

    /// The token whose logit stands at `place`.
    pub fn id(&self, place: u32) -> u32 {
        self.ids.as_ref().map_or(place, |ids| ids[place as usize])
    }
}

/// The logits of the tokens in `words`, and the tokens.
fn gather(logits: &[f32], words: &[u32]) -> (Vec<f32>, Vec<u32>) {
    let count = words.iter().map(|word| word.count_ones() as usize).sum();
    let (mut kept, mut ids) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for ((word, logits), first) in words.iter().zip(logits.chunks(32)).zip((0u32..).step_by(32)) {
        if *word == u32::MAX {
            kept.extend_from_slice(logits);
            ids.extend((first..).take(logits.len()));
            continue;
        }
        let mut left = *word;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            if let Some(logit) = logits.get(bit as usize) {
                kept.push(*logit);
                ids.push(first + bit);
            }
        }
    }
    (kept, ids)
}
