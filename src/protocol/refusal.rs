//! Why there is no answer, in nobody's words yet: a vendor's folder makes a status and a body of it.

use crate::chat::{self, Field, Reason};

/// A request that gets no answer, or an answer that came to no good end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: Kind,
    /// Where in the request it lies, such as `messages[0].content`.
    pub field: Option<String>,
    /// What was wrong and what to do about it.
    pub message: String,
    /// Seconds after which the same request may succeed.
    pub retry_after: Option<u32>,
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
    /// The body is compressed in a way that the server does not take.
    Encoding,
    /// The body did not come.
    TooSlow,
    /// The page that asks may not.
    Forbidden,
    /// Too much to do; the same request may succeed in a moment.
    Busy,
    /// The model is being loaded.
    Loading,
    /// The model has failed, or could not be loaded.
    Failed,
    /// The server is closing.
    Closing,
    /// Our fault.
    Internal,
}

impl Kind {
    /// The status that HTTP has for it; a vendor whose clients expect another has its own.
    pub fn status(self) -> u16 {
        match self {
            Kind::Invalid | Kind::TooLong => 400,
            Kind::UnknownModel | Kind::UnknownPath => 404,
            Kind::Method => 405,
            Kind::TooLarge => 413,
            Kind::TooSlow => 408,
            Kind::Encoding => 415,
            Kind::Forbidden => 403,
            Kind::Busy => 429,
            Kind::Loading | Kind::Closing => 503,
            Kind::Failed | Kind::Internal => 500,
        }
    }
}

impl Refusal {
    /// A refusal that concerns the request as a whole.
    pub fn new(kind: Kind, message: impl Into<String>) -> Refusal {
        Refusal { kind, field: None, message: message.into(), retry_after: None }
    }

    /// A wrong field. The message opens with its name.
    pub fn field(field: impl Into<String>, problem: impl std::fmt::Display) -> Refusal {
        Refusal::new(Kind::Invalid, problem.to_string()).at(field)
    }

    /// The same refusal, of this field.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Refusal {
        let field = field.into();
        Refusal { message: format!("{field}: {}", self.message), field: Some(field), ..self }
    }

    /// The same refusal, for so many seconds.
    #[must_use]
    pub fn after(self, seconds: u32) -> Refusal {
        Refusal { retry_after: Some(seconds), ..self }
    }

    /// The server closed before the answer was complete.
    pub fn closing() -> Refusal {
        Refusal::new(Kind::Closing, chat::Error::Closing.to_string()).after(1)
    }

    /// What an answer that came to no good end is instead. `None` for one that ended as answers do.
    pub fn of_end(reason: &Reason) -> Option<Refusal> {
        match reason {
            Reason::Failed(text) => Some(Refusal::new(Kind::Internal, format!("the answer failed: {text}"))),
            Reason::Closing => Some(Refusal::closing()),
            Reason::Stop | Reason::StopString(_) | Reason::ToolCalls | Reason::Length(_) | Reason::Loop(_) => None,
        }
    }

    /// What the chat layer refuses. `name` is how the vendor calls a field.
    pub fn of_chat(error: &chat::Error, name: impl Fn(Field) -> String) -> Refusal {
        let message = error.to_string();
        match error {
            chat::Error::Request { field, .. } => Refusal::field(name(*field), message),
            chat::Error::TooLong { .. } => {
                Refusal { field: Some(name(Field::Messages)), ..Refusal::new(Kind::TooLong, message) }
            }
            chat::Error::Busy { retry_after, .. } => {
                Refusal::new(Kind::Busy, message).after(u32::try_from(*retry_after).unwrap_or(u32::MAX))
            }
            chat::Error::Dead { .. } => Refusal::new(Kind::Failed, message),
            chat::Error::Closing => Refusal::closing(),
            chat::Error::Internal(_) => Refusal::new(Kind::Internal, message),
        }
    }
}
