//! The grammars that were compiled last. An agent sends the same tools and schemas with every turn.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use super::Grammar;
use crate::chat::Format;

/// How many are remembered, and the bytes of the longest source among them.
const GRAMMARS: usize = 64;
const LONGEST: usize = 1 << 20;

/// What a grammar was compiled from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat::constraint) struct Key {
    kind: &'static str,
    source: String,
}

impl Key {
    /// `kind` says how the source is read.
    pub(in crate::chat::constraint) fn new(kind: &'static str, source: String) -> Key {
        Key { kind, source }
    }

    /// What a format's grammar is remembered by.
    pub(in crate::chat::constraint) fn of(format: &Format) -> Key {
        match format {
            Format::Text => Key::new("text", String::new()),
            Format::JsonObject => Key::new("any object", String::new()),
            Format::JsonSchema(schema) => Key::new("schema", schema.to_string()),
            Format::Regex(regex) => Key::new("regex", regex.clone()),
            Format::Lark(text) => Key::new("lark", text.clone()),
            Format::Ebnf(text) => Key::new("ebnf", text.clone()),
            Format::Choice(choices) => Key::new("choice", Value::from(choices.clone()).to_string()),
        }
    }

    /// The key of a grammar that is made of two sources.
    pub(in crate::chat::constraint) fn with(mut self, other: Key) -> Key {
        self.source.push_str(&format!("\n{}\n{}", other.kind, other.source));
        self
    }
}

/// Grammars by what they were compiled from, the last used first.
#[derive(Default)]
pub(super) struct Recent(Mutex<VecDeque<(Key, Grammar)>>);

impl Recent {
    /// The grammar of this source, compiled if it is not at hand. What fails is not remembered.
    pub(super) fn get<E>(&self, key: Key, compile: impl FnOnce() -> Result<Grammar, E>) -> Result<Grammar, E> {
        if let Some(grammar) = self.find(&key) {
            return Ok(grammar);
        }
        let grammar = compile()?;
        if key.source.len() <= LONGEST {
            let mut grammars = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            grammars.push_front((key, Grammar(grammar.matcher())));
            grammars.truncate(GRAMMARS);
        }
        Ok(grammar)
    }

    fn find(&self, key: &Key) -> Option<Grammar> {
        let mut grammars = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = grammars.iter().position(|(own, _)| own == key)?;
        let found = grammars.remove(at)?;
        let grammar = Grammar(found.1.matcher());
        grammars.push_front(found);
        Some(grammar)
    }
}
