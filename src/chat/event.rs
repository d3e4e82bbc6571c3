//! What an answer consists of. A streamed answer sends these one by one, any other is the fold over them.

/// In this order: `Started`, any number of `Text`, one `Finished`.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Started { prompt_tokens: usize, cached_tokens: usize },
    Text(String),
    Finished { reason: Reason, completion_tokens: usize },
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The model ended it, or a stop string was met.
    Stop,
    /// `max_tokens` or the context is used up.
    Length,
    /// Our fault; the text says what happened.
    Failed(String),
    /// The server is closing.
    Closing,
}
