//! What goes into text generation and what comes out: a [`Job`] of token ids, a stream of [`Step`]s.

use std::{any::Any, fmt, sync::Arc};

use tokio::sync::mpsc::UnboundedSender;

use super::{drawn::Drawn, guide::Guide, sampling::Sampling};
use crate::engine::{failure::RunError, token::TokenId};

/// One sequence to generate. Dropping the receiver of `steps` cancels it: the scheduler frees the row at its next
/// tick.
#[derive(Debug)]
pub struct Job {
    pub prompt: TokenPrompt,
    pub sampling: Sampling,
    /// How many tokens to generate at most, at least 1.
    pub max_tokens: usize,
    /// Ids that end the answer. They are not sent as [`Step::Token`].
    pub stop_tokens: Vec<TokenId>,
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
    pub fn new(prompt: impl Into<TokenPrompt>, max_tokens: usize, steps: UnboundedSender<Step>) -> Job {
        Job {
            prompt: prompt.into(),
            sampling: Sampling::default(),
            max_tokens,
            stop_tokens: Vec::new(),
            guide: None,
            logprobs: None,
            steps,
        }
    }
}

/// What a sequence begins with.
#[derive(Debug, Clone, Default)]
pub struct TokenPrompt {
    /// The whole prompt as token ids, at least one.
    pub tokens: Vec<TokenId>,
    /// What some of the tokens stand for, in order.
    pub media: Vec<Media>,
}

/// A picture or a sound within a prompt. The ids at its place mean nothing by themselves.
#[derive(Clone)]
pub struct Media {
    /// The first token that stands for it.
    pub start: usize,
    /// How many tokens stand for it, at least 1.
    pub length: usize,
    /// Of its contents, by a function that nobody can make collide: two media of one hash are the same to remembered
    /// prefixes.
    pub hash: u64,
    /// What the runner reads. The engine does not look into it.
    pub data: Arc<dyn Any + Send + Sync>,
}

impl<T: Into<TokenId>> From<Vec<T>> for TokenPrompt {
    fn from(tokens: Vec<T>) -> TokenPrompt {
        TokenPrompt { tokens: tokens.into_iter().map(Into::into).collect(), media: Vec::new() }
    }
}

impl TokenPrompt {
    /// The media that have a token among `length` from `start` on.
    pub(super) fn media_within(&self, start: usize, length: usize) -> &[Media] {
        let first = self.media.partition_point(|media| media.start + media.length <= start);
        let end = self.media.partition_point(|media| media.start < start + length);
        &self.media[first..end.max(first)]
    }

    /// # Errors
    /// Media that overlap, stand in another order than their tokens, or have no tokens.
    pub(super) fn check(&self) -> Result<(), RunError> {
        let mut free = 0;
        for media in &self.media {
            let end = media.start.saturating_add(media.length);
            if media.start < free || media.length == 0 || end > self.tokens.len() {
                let Media { start, length, .. } = media;
                let all = self.tokens.len();
                return Err(RunError(format!("media at {start} of {length} tokens do not fit a prompt of {all}")));
            }
            free = end;
        }
        Ok(())
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Media { start, length, hash, .. } = self;
        f.debug_struct("Media").field("start", start).field("length", length).field("hash", hash).finish()
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
