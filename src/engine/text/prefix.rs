//! Remembered prefixes: states of earlier sequences that a new one may start from.

/// States by the tokens they hold, the least recently used forgotten first once they take too many bytes.
pub struct Prefixes<State> {
    entries: Vec<Entry<State>>,
    budget: usize,
    clock: u64,
}

struct Entry<State> {
    tokens: Vec<u32>,
    state: State,
    bytes: usize,
    used: u64,
}

impl<State> Prefixes<State> {
    /// `budget` in bytes; 0 remembers nothing.
    pub fn new(budget: usize) -> Prefixes<State> {
        Prefixes { entries: Vec::new(), budget, clock: 0 }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// The longest state that holds the first tokens of `prompt` but not all of them, with its length. `cut` makes
    /// the state of an entry as it was after so many tokens, where that can be done.
    pub fn find(&mut self, prompt: &[u32], cut: impl Fn(&State, usize) -> Option<State>) -> Option<(State, usize)> {
        self.clock += 1;
        let limit = prompt.len().saturating_sub(1);
        let mut candidates: Vec<(usize, usize)> = self
            .entries
            .iter()
            .enumerate()
            .map(|(index, entry)| (common(&entry.tokens, prompt).min(limit), index))
            .filter(|(shared, _)| *shared > 0)
            .collect();
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        for (shared, index) in candidates {
            if let Some(state) = cut(&self.entries[index].state, shared) {
                self.entries[index].used = self.clock;
                return Some((state, shared));
            }
        }
        None
    }

    /// How many tokens `prompt` shares with the entry that shares the most, whether or not its state is of use.
    pub fn shared(&self, prompt: &[u32]) -> usize {
        self.entries.iter().map(|entry| common(&entry.tokens, prompt)).max().unwrap_or(0)
    }

    /// Forgets the state of exactly these tokens.
    pub fn forget(&mut self, tokens: &[u32]) {
        self.entries.retain(|entry| entry.tokens != tokens);
    }

    /// Remembers a state that holds `tokens`. One that `contains` others (a state that can be cut anywhere) takes the
    /// place of the entries it starts with, and is itself not needed where an entry starts with it.
    pub fn insert(&mut self, tokens: Vec<u32>, state: State, bytes: usize, contains: bool) {
        self.clock += 1;
        let clock = self.clock;
        let known = self.entries.iter_mut().find(|entry| match contains {
            true => entry.tokens.starts_with(&tokens),
            false => entry.tokens == tokens,
        });
        if let Some(known) = known {
            known.used = clock;
            return;
        }
        if tokens.is_empty() || bytes > self.budget {
            return;
        }
        if contains {
            self.entries.retain(|entry| !tokens.starts_with(&entry.tokens));
        }
        self.entries.push(Entry { tokens, state, bytes, used: clock });
        self.shrink_to(self.budget);
    }

    /// Forgets states of so many bytes, or all.
    pub fn shed(&mut self, bytes: usize) {
        self.shrink_to(self.bytes().saturating_sub(bytes));
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes() > bytes {
            let oldest = (0..self.entries.len()).min_by_key(|&index| self.entries[index].used);
            self.entries.swap_remove(oldest.expect("more than no bytes need an entry"));
        }
    }
}

/// How many tokens the two start with in common.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(budget: usize) -> Prefixes<&'static str> {
        Prefixes::new(budget)
    }

    #[test]
    fn the_longest_shared_start_wins_and_never_all_of_the_prompt() {
        let mut prefixes = store(100);
        prefixes.insert(vec![1, 2, 3], "a", 1, true);
        prefixes.insert(vec![1, 2, 4, 5], "b", 1, true);
        let found =
            |prefixes: &mut Prefixes<&'static str>, prompt: &[u32]| prefixes.find(prompt, |state, _| Some(*state));
        assert_eq!(found(&mut prefixes, &[1, 2, 4, 9]), Some(("b", 3)));
        assert_eq!(found(&mut prefixes, &[1, 2, 3]), Some(("b", 2)), "the last token is computed again");
        assert_eq!(found(&mut prefixes, &[1, 2, 3, 3]), Some(("a", 3)));
        assert_eq!(found(&mut prefixes, &[7]), None);
    }

    #[test]
    fn a_longer_entry_takes_the_place_of_its_beginning_only_if_it_can_be_cut() {
        for contains in [true, false] {
            let mut prefixes = store(100);
            prefixes.insert(vec![1, 2], "short", 1, contains);
            prefixes.insert(vec![1, 2, 3], "long", 1, contains);
            assert_eq!(prefixes.len(), if contains { 1 } else { 2 });
            prefixes.insert(vec![1], "shorter", 1, contains);
            assert_eq!(prefixes.len(), if contains { 1 } else { 3 });
        }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut prefixes = store(10);
        prefixes.insert(vec![1, 1], "a", 4, true);
        prefixes.insert(vec![2, 2], "b", 4, true);
        assert!(prefixes.find(&[1, 1, 1], |state, _| Some(*state)).is_some());
        prefixes.insert(vec![3, 3], "c", 4, true);
        assert!(prefixes.find(&[2, 2, 2], |state, _| Some(*state)).is_none(), "b was used longest ago");
        assert!(prefixes.find(&[1, 1, 1], |state, _| Some(*state)).is_some());
        prefixes.insert(vec![4, 4], "too large", 11, true);
        assert_eq!((prefixes.len(), prefixes.bytes()), (2, 8));
    }
}
