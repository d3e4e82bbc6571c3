//! The one thing the engine asks of a model: run these rows and say the next tokens.

use super::{guides::Pending, logprobs::Logprobs, sampling::Sampling};
use crate::engine::failure::RunError;

/// A loaded model, as the scheduler sees it. Lives on the device thread and never leaves it.
pub trait Runner {
    /// What a sequence has in memory: its keys and values, its recurrent states. Cheap to clone: clones share
    /// their buffers until one of them is written to.
    type State: Clone;

    /// The most tokens a sequence may hold, prompt and answer together.
    fn context(&self) -> usize;

    /// The state of a sequence of no tokens.
    fn fresh(&mut self) -> Self::State;

    /// One forward pass over all rows at once: appends each row's tokens to its state and draws a token for each
    /// row that asks. Returns one entry a row, in order. A row's result must not depend on its company.
    /// On an error every row's state is undefined and must be dropped.
    fn forward(&mut self, rows: &mut [Row<'_, Self::State>]) -> Result<Vec<Option<Drawn>>, RunError>;

    /// The state as it was after its first `length` tokens, or `None` where it cannot be cut there (a recurrent
    /// state only exists at the length it has).
    fn cut(&self, state: &Self::State, length: usize) -> Option<Self::State>;

    /// Whether [`Runner::cut`] works at every length.
    fn cuts(&self) -> bool;

    /// The memory a state holds, in bytes.
    fn bytes(&self, state: &Self::State) -> usize;
}

/// One sequence's part of a forward pass: a chunk of its prompt, or the tokens it took last.
pub struct Row<'a, State> {
    pub state: &'a mut State,
    /// At least one token, not yet in `state`.
    pub tokens: &'a [u32],
    /// Draw the token that follows the last of `tokens`; `None` inside a prompt.
    pub draw: Option<Draw<'a>>,
}

/// What drawing a token needs.
pub struct Draw<'a> {
    pub sampling: &'a Sampling,
    pub prompt: &'a [u32],
    /// The answer so far.
    pub answer: &'a [u32],
    /// Knows which tokens may be drawn, once the pass is computed: to ask earlier is to wait longer.
    pub mask: Option<&'a Pending>,
    /// Tell how likely the drawn token was, and this many others.
    pub logprobs: Option<usize>,
}

/// A drawn token.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    pub id: u32,
    /// Where the job asks for them. Boxed, as most do not.
    pub logprobs: Option<Box<Logprobs>>,
}

impl From<u32> for Drawn {
    fn from(id: u32) -> Drawn {
        Drawn { id, logprobs: None }
    }
}
