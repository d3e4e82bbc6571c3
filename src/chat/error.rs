//! Why a request is not answered, told apart at birth.

/// Nothing was generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller's to mend: names the field and the fix.
    #[error("{message}")]
    Request { field: &'static str, message: String },
    /// The conversation is too long for the model.
    #[error(
        "the prompt is {prompt} tokens long, but the model's context holds {context} tokens, prompt and answer together; shorten the messages"
    )]
    TooLong { prompt: usize, context: usize },
    /// Too much to do; try again.
    #[error("{waiting} requests are waiting already, the limit is {limit}; try again in a moment")]
    Busy { waiting: usize, limit: usize },
    /// The engine is closing.
    #[error("the server is closing")]
    Closing,
    /// Our fault.
    #[error("{0}")]
    Internal(String),
}
