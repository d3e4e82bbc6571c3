//! What goes into the engine and what comes out: a [`Job`] of token ids, a stream of [`Step`]s.

use tokio::sync::mpsc::UnboundedSender;

use super::{guide::Guide, runner::Drawn, sampling::Sampling};

/// One sequence to generate. Dropping the receiver of `steps` cancels it: the scheduler frees the row at its next
/// tick.
#[derive(Debug)]
pub struct Job {
    /// The whole prompt as token ids, at least one.
    pub prompt: Vec<u32>,
    pub sampling: Sampling,
    /// How many tokens to generate at most, at least 1.
    pub max_tokens: usize,
    /// Ids that end the answer. They are not sent as [`Step::Token`].
    pub stop_tokens: Vec<u32>,
    /// Says what the answer may be; `None` lets it be anything.
    pub guide: Option<Box<dyn Guide>>,
    /// Tells of each token how likely it was, and of this many others beside it. Forced tokens are then computed one
    /// by one.
    pub logprobs: Option<usize>,
    /// Unbounded, so that the device thread never waits for a reader; `max_tokens` bounds it.
    pub steps: UnboundedSender<Step>,
}

impl Job {
    /// A greedy job that nothing but its length ends.
    pub fn new(prompt: Vec<u32>, max_tokens: usize, steps: UnboundedSender<Step>) -> Job {
        let (sampling, stop_tokens) = (Sampling::default(), Vec::new());
        Job { prompt, sampling, max_tokens, stop_tokens, guide: None, logprobs: None, steps }
    }
}

/// What the device thread says of a job, in this order: `Started`, any number of `Token`, one `Finished`.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The job has a row. `cached` of its prompt tokens were remembered and not computed again.
    Started {
        cached: usize,
    },
    Token(Drawn),
    Finished(Finish),
}

/// Why a job ended. Every job ends with exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its answer with one of `stop_tokens`, or its guide says that it is complete.
    Stop,
    /// `max_tokens` were generated, or the model's context is full.
    Length,
    /// The forward pass or the guide failed; the text says how.
    Failed(String),
    /// The engine is closing.
    Closing,
}
