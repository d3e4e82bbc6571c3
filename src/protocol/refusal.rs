//! Why there is no answer, in nobody's words yet: the server makes a status of it, a vendor's folder a body.

use crate::chat::{self, Field};

/// A request that gets no answer, or an answer that came to no good end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: Kind,
    /// Where in the request it lies, such as `messages[0].content`.
    pub field: Option<String>,
    /// What was wrong and what to do about it.
    pub message: String,
}

/// Whose fault it is, and what the caller can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is wrong.
    Invalid,
    /// The prompt does not fit the model.
    TooLong,
    /// No such model here.
    UnknownModel,
    /// No such path here.
    UnknownPath,
    /// The path does not take this method.
    Method,
    /// The body is larger than the server takes.
    TooLarge,
    /// Too much to do; the same request may succeed in a moment.
    Busy,
    /// The server is closing.
    Closing,
    /// Our fault.
    Internal,
}

impl Refusal {
    /// A refusal that concerns the request as a whole.
    pub fn new(kind: Kind, message: impl Into<String>) -> Refusal {
        Refusal { kind, field: None, message: message.into() }
    }

    /// A wrong field. The message opens with its name.
    pub fn field(field: impl Into<String>, problem: impl std::fmt::Display) -> Refusal {
        let field = field.into();
        Refusal { kind: Kind::Invalid, message: format!("{field}: {problem}"), field: Some(field) }
    }

    /// The server closed before the answer was complete.
    pub fn closing() -> Refusal {
        Refusal::new(Kind::Closing, chat::Error::Closing.to_string())
    }

    /// What the chat layer refuses. `name` is how the vendor calls a field.
    pub fn of_chat(error: &chat::Error, name: impl Fn(Field) -> String) -> Refusal {
        let message = error.to_string();
        match error {
            chat::Error::Request { field, .. } => Refusal::field(name(*field), message),
            chat::Error::TooLong { .. } => Refusal { kind: Kind::TooLong, field: Some(name(Field::Messages)), message },
            chat::Error::Busy { .. } => Refusal::new(Kind::Busy, message),
            chat::Error::Closing => Refusal::new(Kind::Closing, message),
            chat::Error::Internal(_) => Refusal::new(Kind::Internal, message),
        }
    }
}
