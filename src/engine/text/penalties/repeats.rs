//! What of a text's end stands in it already, for DRY. Kept from token to token: a token only looks at the places where
//! it stood before.

use std::collections::HashMap;

use crate::engine::{text::sampling::Dry, token::TokenId};

/// The repetitions that prompt and answer end with.
#[derive(Debug, Clone)]
pub struct Repeats {
    dry: Dry,
    text: Vec<TokenId>,
    /// Where each token stands, in order.
    places: HashMap<TokenId, Vec<usize>>,
    /// In order of their ends. No repetition reaches across a breaker.
    matches: Vec<Match>,
}

/// The text before `end` ends with the last `length` tokens of the whole text.
#[derive(Debug, Clone, Copy)]
struct Match {
    end: usize,
    length: usize,
}

impl Repeats {
    /// Of a prompt, in time proportional to its length.
    pub fn new(dry: &Dry, prompt: &[TokenId]) -> Repeats {
        let backwards: Vec<TokenId> = prompt.iter().rev().copied().collect();
        let unbroken = backwards.iter().position(|&id| dry.breakers.contains(id)).unwrap_or(prompt.len());
        let lengths = shared_with_beginning(&backwards);
        let of_end = |end: usize| Match { end, length: lengths[prompt.len() - end].min(unbroken) };
        let matches = (1..prompt.len()).map(of_end).filter(|found| found.length > 0).collect();
        let mut places: HashMap<TokenId, Vec<usize>> = HashMap::new();
        for (place, &id) in prompt.iter().enumerate() {
            places.entry(id).or_default().push(place);
        }
        Repeats { dry: dry.clone(), text: prompt.to_vec(), places, matches }
    }

    /// One more token.
    pub fn push(&mut self, id: TokenId) {
        let places = self.places.entry(id).or_default();
        let mut known = self.matches.iter().peekable();
        let longer = |&place: &usize| {
            while known.next_if(|before| before.end < place).is_some() {}
            let before = known.next_if(|before| before.end == place).map_or(0, |before| before.length);
            Match { end: place + 1, length: before + 1 }
        };
        let is_breaker = self.dry.breakers.contains(id);
        self.matches = if is_breaker { Vec::new() } else { places.iter().map(longer).collect() };
        places.push(self.text.len());
        self.text.push(id);
    }

    /// The tokens that would go on with a repetition and what they lose, each once.
    pub fn losses(&self) -> Vec<(TokenId, f32)> {
        let Dry { multiplier, base, allowed_length, range, breakers } = &self.dry;
        let begin = self.text.len().saturating_sub(range.unwrap_or(usize::MAX));
        let mut longest: Vec<(TokenId, usize)> = Vec::new();
        for found in &self.matches {
            let next = self.text[found.end];
            let length = found.length.min(found.end.saturating_sub(begin));
            if length >= (*allowed_length).max(1) && !breakers.contains(next) {
                longest.push((next, length));
            }
        }
        // Of several occurrences before the same token the longest counts.
        longest.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        longest.dedup_by_key(|(id, _)| *id);
        let loss = |length: usize| {
            let exponent = i32::try_from(length - (*allowed_length).min(length)).unwrap_or(i32::MAX);
            (multiplier * base.powi(exponent)).min(f32::MAX)
        };
        longest.into_iter().map(|(id, length)| (id, loss(length))).collect()
    }
}

/// For each place, how many tokens from there on are those that the list begins with: the Z algorithm (Gusfield 1997),
/// which looks at every token a constant number of times.
fn shared_with_beginning(tokens: &[TokenId]) -> Vec<usize> {
    let mut lengths = vec![0; tokens.len()];
    // The match that reaches furthest: tokens[start..end] is tokens[..end - start].
    let mut start = 0;
    let mut end = 0;
    for at in 1..tokens.len() {
        let mut length = if at < end { lengths[at - start].min(end - at) } else { 0 };
        while at + length < tokens.len() && tokens[length] == tokens[at + length] {
            length += 1;
        }
        if at + length > end {
            start = at;
            end = at + length;
        }
        lengths[at] = length;
    }
    lengths
}
