//! A set of token ids, a bit each: what a guide allows, what ends a repetition.

use super::token::TokenId;

/// Ids beyond the last word are not in the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenSet {
    words: Vec<u32>,
}

impl TokenSet {
    /// Bit `b` of word `w` is the id `32 * w + b`.
    pub fn from_words(words: Vec<u32>) -> TokenSet {
        TokenSet { words }
    }

    /// The bits, 32 ids a word, the lowest id in the lowest bit.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Whether an id is in it.
    pub fn contains(&self, id: impl Into<TokenId>) -> bool {
        let TokenId(id) = id.into();
        self.words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    /// Adds an id.
    pub fn insert(&mut self, id: impl Into<TokenId>) {
        let TokenId(id) = id.into();
        let word = id as usize / 32;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (id % 32);
    }

    /// Whether it has no id.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many ids it has.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The ids in order.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> {
        self.words.iter().zip((0..).step_by(32)).flat_map(|(word, first)| {
            let rest = |left: &u32| Some(left & (left - 1)).filter(|left| *left != 0);
            let lefts = std::iter::successors(Some(*word).filter(|word| *word != 0), rest);
            lefts.map(move |left| TokenId(first + left.trailing_zeros()))
        })
    }
}

impl<T: Into<TokenId>> FromIterator<T> for TokenSet {
    fn from_iter<I: IntoIterator<Item = T>>(ids: I) -> TokenSet {
        let mut set = TokenSet::default();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_in() {
        for ids in [&[][..], &[0], &[31, 32], &[5, 63, 64, 1000]] {
            let set: TokenSet = ids.iter().rev().copied().collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), ids);
            assert_eq!((set.len(), set.is_empty()), (ids.len(), ids.is_empty()));
            assert!((0..2000u32).all(|id| set.contains(id) == ids.contains(&id)), "{ids:?}");
        }
        let full = TokenSet::from_words(vec![u32::MAX; 2]);
        assert_eq!((full.iter().count(), full.contains(63u32), full.contains(64u32)), (64, true, false));
    }
}
