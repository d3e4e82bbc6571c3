//! Vendors' JSON on one side, mettle's own requests and events on the other. A vendor's folder reads a body with
//! `from_wire`, where all validation is, and writes an answer by implementing [`Reply`].
//!
//! What is not here: sockets, status codes, and anything that runs a model.

pub mod openai;
mod refusal;
pub mod sse;

pub use refusal::{Kind, Refusal};

use crate::chat::{Event, Reason};

/// How a vendor writes one answer: streamed, the frames of its events one after the other; otherwise the fold of the
/// very same events.
pub trait Reply: Send + 'static {
    /// What is sent for this event, ready for the wire; empty where the vendor sends nothing. The frames of
    /// [`Event::Finished`] end the stream.
    fn frames(&mut self, event: Event) -> String;

    /// The body of the whole answer.
    ///
    /// # Errors
    /// The answer failed, or the server closed before it was complete.
    fn body(self, whole: Whole) -> Result<String, Refusal>;
}

/// An answer in full: the fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Whole {
    pub text: String,
    pub usage: Usage,
    /// `None` until the answer has ended.
    pub reason: Option<Reason>,
}

/// What an answer took, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt: usize,
    /// Of the prompt's, the ones that were remembered and not computed again.
    pub cached: usize,
    pub completion: usize,
    /// Of the completion's, those of thoughts.
    pub reasoning: usize,
}

impl Whole {
    /// Takes the next event in.
    pub fn add(&mut self, event: Event) {
        self.usage.add(&event);
        match event {
            Event::Text(text) => self.text.push_str(&text),
            Event::Finished(finished) => self.reason = Some(finished.reason),
            _ => {}
        }
    }
}

impl Usage {
    /// Takes the counts of an event in, if it has any.
    pub fn add(&mut self, event: &Event) {
        match *event {
            Event::Started { prompt_tokens, cached_tokens } => {
                self.prompt = prompt_tokens;
                self.cached = cached_tokens;
            }
            Event::Finished(ref finished) => {
                self.completion = finished.completion_tokens;
                self.reasoning = finished.reasoning_tokens;
            }
            _ => {}
        }
    }
}
