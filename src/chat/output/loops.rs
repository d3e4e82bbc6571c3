//! Sees a model that repeats itself without end.

use std::collections::VecDeque;

/// The longest block of tokens whose repetition is seen.
const PERIOD: usize = 256;
/// A loop is a block that has come this often again, and this many tokens of it: lists of numbers and tables repeat
/// themselves too, but end.
const REPEATS: usize = 7;
const TOKENS: usize = 400;

/// Watches the tokens of one answer.
#[derive(Debug)]
pub(in crate::chat) struct Loops {
    /// The last tokens, the latest first.
    last: VecDeque<u32>,
    /// For each period from 1 on, how many of the latest tokens are the same as the one a period before.
    runs: Vec<usize>,
}

impl Loops {
    /// Before the first token.
    pub(in crate::chat) fn new() -> Loops {
        Loops { last: VecDeque::with_capacity(PERIOD + 1), runs: vec![0; PERIOD] }
    }

    /// Whether the answer is a loop now. `patience` multiplies how long it may go on.
    pub(in crate::chat) fn push(&mut self, token: u32, patience: usize) -> bool {
        let mut found = false;
        for (run, (before, period)) in self.runs.iter_mut().zip(self.last.iter().zip(1..)) {
            *run = if *before == token { *run + 1 } else { 0 };
            found |= *run >= patience * TOKENS.max(REPEATS * period);
        }
        self.last.truncate(PERIOD - 1);
        self.last.push_front(token);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of tokens after which a loop was seen.
    fn seen(tokens: impl IntoIterator<Item = u32>) -> Option<usize> {
        let mut loops = Loops::new();
        tokens.into_iter().position(|token| loops.push(token, 1))
    }

    #[test]
    fn loops() {
        assert_eq!(seen(std::iter::repeat_n(7, 1000)), Some(400));
        assert_eq!(seen((0..10_000).map(|index| index % 10)), Some(409));
        assert_eq!(seen((0..10_000).map(|index| index % 200)), Some(1599));
        assert_eq!(seen((0..10_000).map(|index| index % 300)), None);
        assert_eq!(seen((0..10_000).map(|index| index / 399)), None);
        // Numbered lines repeat everything but the number.
        assert_eq!(seen((0..10_000).map(|index| if index % 10 == 0 { index } else { index % 10 })), None);
    }
}
