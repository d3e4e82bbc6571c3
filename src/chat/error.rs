//! Why a request is not answered, told apart at birth.

use crate::{checkpoint, engine::SubmitError};

/// Nothing was generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller's to mend: says what is wrong with this part of the request, and the fix.
    #[error("{message}")]
    Request { field: Field, message: String },
    /// The conversation is too long for the model.
    #[error(
        "the prompt is {prompt} tokens long, but the model's context holds {context} tokens, prompt and answer together; shorten the prompt"
    )]
    TooLong { prompt: usize, context: usize },
    /// Too much to do; there is likely to be room after so many seconds.
    #[error("{waiting} requests are waiting already, the limit is {limit}; try again in {retry_after} s")]
    Busy { waiting: usize, limit: usize, retry_after: u64 },
    /// The model failed before and answers no more.
    #[error("{reason}")]
    Dead { reason: String },
    /// The engine is closing.
    #[error("the server is closing")]
    Closing,
    /// Our fault.
    #[error("{0}")]
    Internal(String),
}

impl From<SubmitError> for Error {
    fn from(error: SubmitError) -> Error {
        match error {
            SubmitError::Full { waiting, limit, retry_after } => Error::Busy { waiting, limit, retry_after },
            SubmitError::TooMany { asked, limit } => {
                let message = format!(
                    "{asked} answers at once are more than the {limit} that this server takes on; ask for fewer"
                );
                Error::Request { field: Field::Answers, message }
            }
            SubmitError::Closed => Error::Closing,
            SubmitError::Dead { reason } => Error::Dead { reason },
        }
    }
}

/// The part of a [`Request`](super::Request) or an [`EmbeddingRequest`](super::EmbeddingRequest) that an error is about.
/// Every vendor has a name of its own for it, and the folder of its protocol maps this one to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Which model is to answer.
    Model,
    /// The conversation as a whole.
    Messages,
    /// One part of what a message says. Both are counted from 0, and of the parts only those that are no reasoning
    /// and no tool call.
    Part {
        message: usize,
        part: usize,
    },
    /// The name of a message's speaker.
    Name {
        message: usize,
    },
    /// What the assistant thought before a message.
    Reasoning {
        message: usize,
    },
    /// The most tokens of an answer.
    MaxTokens,
    /// How many answers there are to be.
    Answers,
    LogitBias,
    /// How many log probabilities are wanted beside each token's own.
    TopLogprobs,
    Tools,
    /// What the answer's text must be.
    Format,
    /// Whether the model is to think.
    Thinking,
    /// How hard it is to think.
    ThinkingEffort,
    /// How long it may think.
    ThinkingBudget,
    /// Extra variables for the chat template.
    TemplateVariables,
    /// The texts to make vectors of; one of them where it is known which.
    Input(Option<usize>),
    /// How many numbers a vector has.
    Dimensions,
}

/// A tokenizer or a chat template that cannot be used; says which and why.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The files.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// The tokenizer.
    #[error("the model's tokenizer cannot be used: {0}")]
    Tokenizer(String),
    /// The chat template.
    #[error("the model's chat template cannot be used: {0}")]
    Template(String),
    /// A dialect that nothing is called by.
    #[error("{0}")]
    Dialect(String),
}
