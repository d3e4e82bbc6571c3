//! What a vendor's endpoint is: how its requests are read, how its answers are written, and how it says no.

use super::{Known, Notes, Peek, Refusal};
use crate::chat::Field;

/// One endpoint of one vendor. The server has one handler for all of them.
pub trait Wire: Send + Sync + 'static {
    /// What is asked for, in nobody's words.
    type Task: Send + 'static;
    type Reply: Reply;

    /// The media type of an answer that is sent as it comes.
    const STREAM_TYPE: &'static str;

    /// What a stream that has nothing to say sends, so that it is seen to live.
    const KEEP_ALIVE: &'static str;

    /// Bodies that have, together, every field that this endpoint knows.
    const EXAMPLES: &'static [&'static str];

    /// What decides whether there is room for a request, found without reading the rest; `None` where the body is no
    /// request at all.
    fn peek(body: &[u8]) -> Option<Peek>;

    /// Reads a body. All validation is here, but for what the model alone can judge, such as the prompt's length.
    /// `model` is what the answer calls the model where the request does not name one.
    ///
    /// # Errors
    /// [`Kind::Invalid`](super::Kind::Invalid), with the field if it is a field's fault.
    fn from_wire(body: &[u8], model: &str, notes: &Notes) -> Result<Asked<Self::Task, Self::Reply>, Refusal>;

    /// Where a part of a request stands in a body.
    fn field_name(field: Field) -> String;

    /// How a request is refused.
    fn refused(refusal: &Refusal) -> Refused;

    /// Every field that this endpoint knows, and what becomes of it.
    fn known_fields() -> Vec<Known> {
        let notes = Notes::of_all();
        for example in Self::EXAMPLES {
            let read = Self::from_wire(example.as_bytes(), "", &notes);
            assert!(read.is_ok(), "an example that is refused is a bug: {example}");
        }
        notes.known()
    }
}

/// A request that was read.
#[derive(Debug)]
pub struct Asked<T, R> {
    pub task: T,
    pub reply: R,
    /// Whether the answer is sent as it comes.
    pub stream: bool,
}

/// How a vendor writes the answers to one request: streamed, the frames of their events one after the other; otherwise
/// the fold of the very same events.
pub trait Reply: Send + 'static {
    type Event: Send + 'static;
    /// An answer in full.
    type Whole: Fold<Self::Event> + Send;

    /// What is sent for this event of answer number `answer`, ready for the wire; empty where the vendor sends nothing.
    /// The frames of the last answer's last event end the stream.
    fn frames(&mut self, answer: usize, event: Self::Event) -> String;

    /// The body of the whole answers, in JSON.
    ///
    /// # Errors
    /// An answer failed, or the server closed before it was complete.
    fn body(self, answers: Vec<Self::Whole>) -> Result<String, Refusal>;
}

/// What events add up to.
pub trait Fold<E>: Default {
    /// Takes the next event in.
    fn add(&mut self, event: E);
}

/// A refusal as a vendor sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Of HTTP.
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
    /// Seconds after which the same request may succeed, for the header Retry-After.
    pub retry_after: Option<u32>,
}
