//! Who may say how an answer goes on. Grammars and the limits of thinking are guides.

use std::sync::Arc;

use crate::engine::{token::TokenId, token_set::TokenSet};

/// Is told the tokens of one answer and says which may come next. Lives on the guide threads, which think while the
/// device computes.
pub trait Guide: Send {
    /// What may follow, now that the answer has these tokens more; none at its start. A guide that forces tokens may
    /// be told fewer of them than it forced, and is then asked again. Stop tokens end the answer and are not told.
    ///
    /// # Errors
    /// A text that fails the job; so do a panic, and advice that allows nothing.
    fn advise(&mut self, taken: &[TokenId]) -> Result<Advice, String>;
}

/// How an answer may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// With any token.
    Free,
    /// With one of these. The job's stop tokens are allowed where they are among them.
    Mask(Arc<TokenSet>),
    /// With these, at least one, whatever the model makes of them. They are computed in one pass.
    Force(Vec<TokenId>),
    /// Not at all: it is complete.
    End,
}

impl std::fmt::Debug for dyn Guide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guide")
    }
}
