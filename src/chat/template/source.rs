//! What a template's text tells about what it reads.

/// The text of a template, and of what it includes.
#[derive(Debug)]
pub(super) struct Source(String);

impl Source {
    pub(super) fn new(text: String) -> Source {
        Source(text)
    }

    /// Whether the text holds this anywhere.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// Whether it reads a message's field of this name: `.name`, `'name'` or `"name"`.
    pub(super) fn reads_field(&self, field: &str) -> bool {
        self.0.match_indices(field).any(|(at, _)| {
            let before = self.0[..at].chars().next_back();
            let after = self.0[at + field.len()..].chars().next();
            let ends = !after.is_some_and(|after| after.is_alphanumeric() || after == '_');
            matches!(before, Some('.' | '\'' | '"')) && ends
        })
    }
}
