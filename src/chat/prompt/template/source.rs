//! What a template's text tells about what it reads.

use std::collections::HashSet;

/// The text of a template, and of what it includes.
#[derive(Debug)]
pub(super) struct Source {
    text: String,
    /// What it reads and does not set itself.
    variables: HashSet<String>,
}

impl Source {
    pub(super) fn new(text: String, variables: HashSet<String>) -> Source {
        Source { text, variables }
    }

    /// Whether it is of a family that is told of tools in these two variables, as Firefunction is.
    pub(super) fn reads_functions(&self) -> bool {
        let reads = |name: &str| self.variables.contains(name);
        reads("functions") && reads("datetime") && !reads("tools")
    }

    /// Whether the text holds this anywhere.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.text.contains(word)
    }

    /// Whether it reads a message's field of this name: `.name`, `'name'` or `"name"`.
    pub(super) fn reads_field(&self, field: &str) -> bool {
        self.text.match_indices(field).any(|(at, _)| {
            let before = self.text[..at].chars().next_back();
            let after = self.text[at + field.len()..].chars().next();
            let ends = !after.is_some_and(|after| after.is_alphanumeric() || after == '_');
            matches!(before, Some('.' | '\'' | '"')) && ends
        })
    }
}
