//! What penalties and biases do to single logits before a token is drawn. Made anew for every token, as a function of
//! prompt and answer alone, so it has to be quick: a pass over the tokens, no ordered map.

use super::{runner::Draw, sampling::Dry};

/// A logit becomes (logit / penalty if it is positive, else logit * penalty) + offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    pub id: u32,
    pub penalty: f32,
    pub offset: f32,
}

impl Draw<'_> {
    /// The changes to single logits, each id once. None for most requests.
    pub fn adjustments(&self) -> Vec<Adjustment> {
        let sampling = self.sampling;
        let repetition = sampling.repetition_penalty.unwrap_or(1.0);
        let presence = sampling.presence_penalty.unwrap_or(0.0);
        let frequency = sampling.frequency_penalty.unwrap_or(0.0);
        let repeats = repetition != 1.0;
        let counts = presence != 0.0 || frequency != 0.0;
        let dry = sampling.dry.as_ref().map(|dry| self.dry(dry)).unwrap_or_default();
        let prompt = if repeats { self.prompt } else { &[] };
        let answer = if repeats || counts { self.answer } else { &[] };
        let offsets = dry.iter().map(|(id, loss)| (*id, -loss)).chain(sampling.logit_bias.iter().copied());
        let biased = offsets.clone().map(|(id, _)| id);
        let mut adjustments = Adjustments::over(prompt.iter().chain(answer).copied().chain(biased));
        for &id in prompt {
            adjustments.at(id).penalty = repetition;
        }
        for &id in answer {
            let (adjustment, first) = adjustments.in_answer(id);
            adjustment.penalty = repetition;
            adjustment.offset -= frequency + if first { presence } else { 0.0 };
        }
        offsets.for_each(|(id, offset)| adjustments.at(id).offset += offset);
        adjustments.list
    }

    /// The tokens that DRY penalises and what they lose, each once.
    fn dry(&self, dry: &Dry) -> Vec<(u32, f32)> {
        if dry.multiplier == 0.0 {
            return Vec::new();
        }
        let range = dry.range.unwrap_or(usize::MAX);
        // The last token first: what a match follows is then what begins the list.
        let text: Vec<u32> = self.answer.iter().rev().chain(self.prompt.iter().rev()).take(range).copied().collect();
        let unbroken = text.iter().position(|id| dry.breakers.contains(*id)).unwrap_or(text.len());
        if unbroken < dry.allowed_length.max(1) {
            return Vec::new();
        }
        let mut longest: Vec<(u32, usize)> = Vec::new();
        for (at, length) in matches(&text).into_iter().enumerate().skip(1) {
            // What stood after the earlier occurrence.
            let (next, length) = (text[at - 1], length.min(unbroken));
            if length >= dry.allowed_length.max(1) && !dry.breakers.contains(next) {
                longest.push((next, length));
            }
        }
        // Of several occurrences before the same token the longest counts.
        longest.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        longest.dedup_by_key(|(id, _)| *id);
        let loss = |length: usize| {
            let exponent = i32::try_from(length - dry.allowed_length.min(length)).unwrap_or(i32::MAX);
            (dry.multiplier * dry.base.powi(exponent)).min(f32::MAX)
        };
        longest.into_iter().map(|(id, length)| (id, loss(length))).collect()
    }
}

/// For each place, how many tokens from there on are those that the list begins with: the Z algorithm (Gusfield 1997),
/// which looks at every token a constant number of times.
fn matches(tokens: &[u32]) -> Vec<usize> {
    let mut lengths = vec![0; tokens.len()];
    // The match that reaches furthest: tokens[start..end] is tokens[..end - start].
    let (mut start, mut end) = (0, 0);
    for at in 1..tokens.len() {
        let mut length = if at < end { lengths[at - start].min(end - at) } else { 0 };
        while at + length < tokens.len() && tokens[length] == tokens[at + length] {
            length += 1;
        }
        if at + length > end {
            (start, end) = (at, at + length);
        }
        lengths[at] = length;
    }
    lengths
}

/// Adjustments in the making, found by id through a table as wide as the greatest of them.
struct Adjustments {
    list: Vec<Adjustment>,
    /// Place in the list plus 1; 0 is none. The highest bit says that the answer has the token.
    places: Vec<u32>,
}

const IN_ANSWER: u32 = 1 << 31;

impl Adjustments {
    fn over(ids: impl Iterator<Item = u32>) -> Adjustments {
        let width = ids.max().map_or(0, |greatest| greatest as usize + 1);
        Adjustments { list: Vec::new(), places: vec![0; width] }
    }

    fn at(&mut self, id: u32) -> &mut Adjustment {
        let place = &mut self.places[id as usize];
        if *place == 0 {
            self.list.push(Adjustment { id, penalty: 1.0, offset: 0.0 });
            *place = self.list.len() as u32;
        }
        &mut self.list[(*place & !IN_ANSWER) as usize - 1]
    }

    /// One more of the answer's tokens, and whether it is the first of its kind there.
    fn in_answer(&mut self, id: u32) -> (&mut Adjustment, bool) {
        self.at(id);
        let first = self.places[id as usize] & IN_ANSWER == 0;
        self.places[id as usize] |= IN_ANSWER;
        (self.at(id), first)
    }
}

#[cfg(test)]
mod tests;
