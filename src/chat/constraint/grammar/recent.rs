//! The grammars that were compiled last. An agent sends the same tools and schemas with every turn.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::Grammar;

/// How many are kept, and the bytes of the longest source among them.
const KEPT: usize = 64;
const LONGEST: usize = 1 << 20;

/// Grammars by what they were compiled from, the last used first.
#[derive(Default)]
pub(super) struct Recent(Mutex<VecDeque<(String, Grammar)>>);

impl Recent {
    /// The grammar of this source, compiled if it is not at hand. What fails is not kept.
    pub(super) fn get<E>(&self, source: String, compile: impl FnOnce() -> Result<Grammar, E>) -> Result<Grammar, E> {
        if let Some(grammar) = self.find(&source) {
            return Ok(grammar);
        }
        let grammar = compile()?;
        if source.len() <= LONGEST {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_front((source, Grammar(grammar.matcher())));
            kept.truncate(KEPT);
        }
        Ok(grammar)
    }

    fn find(&self, source: &str) -> Option<Grammar> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(own, _)| own == source)?;
        let found = kept.remove(at)?;
        let grammar = Grammar(found.1.matcher());
        kept.push_front(found);
        Some(grammar)
    }
}
