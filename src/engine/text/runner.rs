//! The one thing text generation asks of a model: run these rows and say the next tokens.

use super::{drawn::Accepted, guides::Pending, job::Media, penalties::Penalties, sampling::Sampling};
use crate::engine::{failure::RunError, token::TokenId};

/// A loaded model, as the scheduler sees it. Lives on the device thread and never leaves it.
///
/// A forward pass is submitted and then collected, so that a runner whose device works by itself can compute while the
/// next pass is prepared. A runner that does all at once does it in either of the two.
pub trait Runner {
    /// What a sequence has in memory: its keys and values, its recurrent states. Cheap to clone: clones share
    /// their buffers until one of them is written to.
    type State: Clone;

    /// A submitted pass. It may be dropped instead of being collected.
    type Pass;

    /// The most tokens a sequence may hold, prompt and answer together.
    fn context(&self) -> usize;

    /// The state of a sequence of no tokens.
    fn fresh(&mut self) -> Self::State;

    /// Starts one forward pass over all rows at once: appends each row's tokens to its state and draws tokens for each
    /// row that asks. Prompts and answers may be mixed. A row's result must not depend on its company.
    ///
    /// # Errors
    /// Every row's state is then undefined and must be dropped.
    fn submit(&mut self, rows: &mut [Row<'_, Self::State>]) -> Result<Self::Pass, RunError>;

    /// Waits for a pass; what it accepted, one entry a row, in order: nothing for a row that did not ask, and at most
    /// [`Draw::most`] for one that did. Where it is several, the state holds all of them but the last one.
    ///
    /// # Errors
    /// Every row's state is then undefined and must be dropped.
    fn collect(&mut self, pass: Self::Pass) -> Result<Vec<Accepted>, RunError>;

    /// Whether a pass may be submitted before the one in front of it is collected, with rows of [`Tokens::Drawn`].
    /// Such a runner is asked for one token a row, and accepts one.
    fn pipelines(&self) -> bool {
        false
    }

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
    /// Not yet in `state`.
    pub tokens: Tokens<'a>,
    /// Where the first of `tokens` stands in the sequence, which is how many tokens `state` holds.
    pub position: usize,
    /// What some of the tokens stand for; it may begin before them and end behind them.
    pub media: &'a [Media],
    /// Draw what follows the last of `tokens`; `None` inside a prompt.
    pub draw: Option<Draw<'a>>,
}

/// What a row adds to its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens<'a> {
    /// These. None where the last pass accepted none for a row that draws: it goes on with that.
    Ids(&'a [TokenId]),
    /// The token that this row of the pass submitted last draws. It may still be on the device.
    Drawn { row: usize },
}

impl Tokens<'_> {
    pub fn len(&self) -> usize {
        match self {
            Tokens::Ids(ids) => ids.len(),
            Tokens::Drawn { .. } => 1,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What drawing tokens needs.
pub struct Draw<'a> {
    pub sampling: &'a Sampling,
    /// How many tokens the answer has before the first that is drawn: which of the request's random numbers to use.
    pub index: usize,
    /// What changes single logits first.
    pub penalties: &'a Penalties,
    /// Knows which tokens may be drawn, once the pass is computed: to ask earlier is to wait longer.
    pub mask: Option<&'a Pending>,
    /// Tell how likely the drawn token was, and this many others.
    pub logprobs: Option<usize>,
    /// How many tokens to accept at most, at least 1.
    pub most: usize,
}
