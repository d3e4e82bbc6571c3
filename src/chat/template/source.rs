//! What a template's text tells about what it reads.

use std::collections::HashSet;

/// The texts of a template and of what it may include.
#[derive(Debug)]
pub(super) struct Source {
    text: String,
    variables: HashSet<String>,
}

impl Source {
    pub(super) fn new(text: String, variables: HashSet<String>) -> Source {
        Source { text, variables }
    }

    /// Whether the text holds this anywhere.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.text.contains(word)
    }

    /// Whether it reads a variable of this name.
    pub(super) fn reads(&self, variable: &str) -> bool {
        self.variables.contains(variable)
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

    /// Whether thinking is switched by words in the messages, and by no variable.
    pub(super) fn flags_messages(&self) -> bool {
        self.mentions("'/no_think' in content") && !self.reads("enable_thinking")
    }
}
