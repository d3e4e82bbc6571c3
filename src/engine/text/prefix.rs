//! Remembered prefixes: states of earlier sequences that a new one may start from.
//!
//! They are kept in the lexicographic order of what they hold. There, the entry that shares the longest beginning with
//! a prompt stands right before or right behind the prompt's own place.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
    sync::Arc,
};

use super::job::TokenPrompt;
use crate::engine::token::TokenId;

/// What a position of a sequence holds: a token, or a piece of the media that the token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u64);

impl From<TokenId> for Key {
    fn from(id: TokenId) -> Key {
        Key(u64::from(id.0))
    }
}

impl Key {
    /// Of a place within media. All token ids lie below.
    fn of_media(hash: u64, offset: usize) -> Key {
        Key(hash.wrapping_add(offset as u64) | 1 << 63)
    }

    /// Of each position of a prompt.
    pub fn of_prompt(prompt: &TokenPrompt) -> Vec<Key> {
        let mut keys: Vec<Key> = prompt.tokens.iter().map(|&id| Key::from(id)).collect();
        for media in &prompt.media {
            let place = &mut keys[media.start..media.start + media.length];
            for (offset, key) in place.iter_mut().enumerate() {
                *key = Key::of_media(media.hash, offset);
            }
        }
        keys
    }
}

/// States by what they hold, the least recently used forgotten first once they take too many bytes.
pub struct Prefixes<State> {
    entries: BTreeMap<Arc<[Key]>, Entry<State>>,
    /// The entries by their last use.
    uses: BTreeMap<u64, Arc<[Key]>>,
    /// Of all entries.
    bytes: usize,
    budget: usize,
    clock: u64,
    /// States can be cut at any length, so that one holds all its beginnings.
    cuts: bool,
}

struct Entry<State> {
    state: State,
    bytes: usize,
    used: u64,
}

/// What is remembered of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<State> {
    /// The longest state that holds the first tokens of the prompt but not all of them, with its length.
    pub state: Option<(State, usize)>,
    /// How many tokens the prompt shares with the entry that shares the most, whether or not its state is of use.
    pub shared: usize,
}

impl<State> Prefixes<State> {
    /// `budget` in bytes; 0 remembers nothing. `cuts` says whether states can be cut at any length.
    pub fn new(budget: usize, cuts: bool) -> Prefixes<State> {
        Prefixes { entries: BTreeMap::new(), uses: BTreeMap::new(), bytes: 0, budget, clock: 0, cuts }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Looks for a state to start from. `cut` makes the state of an entry as it was after so many tokens, where that
    /// can be done.
    pub fn find(&mut self, prompt: &[Key], cut: impl Fn(&State, usize) -> Option<State>) -> Found<State> {
        let limit = prompt.len().saturating_sub(1);
        let before = self.entries.range::<[Key], _>((Unbounded, Included(prompt))).next_back();
        let behind = self.entries.range::<[Key], _>((Excluded(prompt), Unbounded)).next();
        let neighbours = [before, behind].into_iter().flatten();
        let nearest = neighbours.map(|(keys, entry)| (common(keys, prompt), keys, entry)).max_by_key(|near| near.0);
        let Some((shared, keys, entry)) = nearest else { return Found { state: None, shared: 0 } };
        let mut length = shared.min(limit);
        let state = if length > 0 { cut(&entry.state, length) } else { None };
        if let Some(state) = state {
            let keys = Arc::clone(keys);
            self.touch(&keys);
            return Found { state: Some((state, length)), shared };
        }
        // Of the entries that the prompt begins with, the longest whose state is as long as its keys.
        while length > 0 {
            let shorter = self.entries.range::<[Key], _>((Unbounded, Included(&prompt[..length]))).next_back();
            let Some((keys, entry)) = shorter else { break };
            let within = common(keys, &prompt[..length]);
            if within < keys.len() {
                length = within;
                continue;
            }
            if let Some(state) = cut(&entry.state, within) {
                let keys = Arc::clone(keys);
                self.touch(&keys);
                return Found { state: Some((state, within)), shared };
            }
            length = within.saturating_sub(1);
        }
        Found { state: None, shared }
    }

    /// Remembers a state that holds `keys`. One that can be cut takes the place of the entry it begins with, and is
    /// itself not needed where an entry begins with it.
    pub fn insert(&mut self, keys: &[Key], state: State, bytes: usize) {
        let at_least = self.entries.range::<[Key], _>((Included(keys), Unbounded)).next();
        let is_known = |known: &[Key]| if self.cuts { known.starts_with(keys) } else { known == keys };
        if let Some((known, _)) = at_least.filter(|(known, _)| is_known(known)) {
            let known = Arc::clone(known);
            return self.touch(&known);
        }
        if keys.is_empty() || bytes > self.budget {
            return;
        }
        if self.cuts {
            // No entry begins with another one, so that it is the one right before.
            let before = self.entries.range::<[Key], _>((Unbounded, Excluded(keys))).next_back();
            if let Some(start) = before.map(|(start, _)| Arc::clone(start)).filter(|start| keys.starts_with(start)) {
                self.forget(&start);
            }
        }
        self.clock += 1;
        let keys: Arc<[Key]> = keys.into();
        self.uses.insert(self.clock, Arc::clone(&keys));
        self.entries.insert(keys, Entry { state, bytes, used: self.clock });
        self.bytes += bytes;
        self.shrink_to(self.budget);
    }

    /// Forgets the state of exactly these keys.
    pub fn forget(&mut self, keys: &[Key]) {
        if let Some(entry) = self.entries.remove(keys) {
            self.uses.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }

    /// Forgets states of at least so many bytes, or all.
    pub fn shed(&mut self, bytes: usize) {
        self.shrink_to(self.bytes.saturating_sub(bytes));
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let (_, oldest) = self.uses.pop_first().expect("more than no bytes need an entry");
            let entry = self.entries.remove(&oldest).expect("each use is an entry's");
            self.bytes -= entry.bytes;
        }
    }

    /// The entry was used just now.
    fn touch(&mut self, keys: &Arc<[Key]>) {
        self.clock += 1;
        let entry = self.entries.get_mut(keys).expect("it was just found");
        self.uses.remove(&entry.used);
        entry.used = self.clock;
        self.uses.insert(self.clock, Arc::clone(keys));
    }
}

/// How many keys the two start with in common.
fn common(a: &[Key], b: &[Key]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests;
