//! What penalties and biases do to single logits before a token is drawn. Kept from token to token, so that a token
//! costs the same behind a long prompt as behind a short one.

mod repeats;

use std::collections::HashMap;

use super::sampling::Sampling;
use crate::engine::token::TokenId;
use repeats::Repeats;

/// A logit becomes (logit / penalty if it is positive, else logit * penalty) + offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    pub id: TokenId,
    pub penalty: f32,
    pub offset: f32,
}

/// The penalties of one sequence.
#[derive(Debug, Clone)]
pub struct Penalties {
    repetition: f32,
    presence: f32,
    frequency: f32,
    /// Each id once.
    list: Vec<Adjustment>,
    /// Where in the list an id stands, and whether the answer has it.
    places: HashMap<TokenId, (usize, bool)>,
    repeats: Option<Repeats>,
}

impl Penalties {
    /// Before the first token of an answer.
    pub fn new(sampling: &Sampling, prompt: &[TokenId]) -> Penalties {
        let dry = sampling.dry.as_ref().filter(|dry| dry.multiplier != 0.0);
        let mut penalties = Penalties {
            repetition: sampling.repetition_penalty.unwrap_or(1.0),
            presence: sampling.presence_penalty.unwrap_or(0.0),
            frequency: sampling.frequency_penalty.unwrap_or(0.0),
            list: Vec::new(),
            places: HashMap::new(),
            repeats: dry.map(|dry| Repeats::new(dry, prompt)),
        };
        for &(id, bias) in &sampling.logit_bias {
            penalties.at(TokenId(id)).0.offset += bias;
        }
        if penalties.repetition != 1.0 {
            for &id in prompt {
                penalties.at(id).0.penalty = penalties.repetition;
            }
        }
        penalties
    }

    /// Whether they change with the tokens of the answer.
    pub fn depend_on_answer(&self) -> bool {
        self.count_tokens() || self.repeats.is_some()
    }

    fn count_tokens(&self) -> bool {
        self.repetition != 1.0 || self.presence != 0.0 || self.frequency != 0.0
    }

    /// One more token of the answer.
    pub fn push(&mut self, id: TokenId) {
        if let Some(repeats) = &mut self.repeats {
            repeats.push(id);
        }
        if self.count_tokens() {
            let (repetition, presence, frequency) = (self.repetition, self.presence, self.frequency);
            let (adjustment, in_answer) = self.at(id);
            adjustment.penalty = repetition;
            adjustment.offset -= frequency + if *in_answer { 0.0 } else { presence };
            *in_answer = true;
        }
    }

    /// The changes to single logits, each id once. None for most requests.
    pub fn adjustments(&self) -> Vec<Adjustment> {
        let mut list = self.list.clone();
        for (id, loss) in self.repeats.iter().flat_map(Repeats::losses) {
            match self.places.get(&id) {
                Some((place, _)) => list[*place].offset -= loss,
                None => list.push(Adjustment { id, penalty: 1.0, offset: -loss }),
            }
        }
        list
    }

    fn at(&mut self, id: TokenId) -> (&mut Adjustment, &mut bool) {
        let list = &mut self.list;
        let (place, in_answer) = self.places.entry(id).or_insert_with(|| {
            list.push(Adjustment { id, penalty: 1.0, offset: 0.0 });
            (list.len() - 1, false)
        });
        (&mut list[*place], in_answer)
    }
}

#[cfg(test)]
mod tests;
