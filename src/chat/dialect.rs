//! What a family of models writes: its thoughts, its calls, its quirks. Data, chosen by what the model says of itself.

use super::{
    Phase,
    output::{
        splitter::{Answer, Program},
        tools::Format,
    },
};

mod choose;
mod table;
mod tagged;

pub use choose::{Choice, Names, choose};
pub use table::DIALECTS;

/// How a family writes.
pub struct Dialect {
    pub name: &'static str,
    /// The `model_type`s of configurations whose models write so.
    pub model_types: &'static [&'static str],
    /// A chat template with all of these texts belongs to such a model, whatever its type.
    pub template_marks: &'static [&'static str],
    /// Special tokens that end an answer, beside those of the model's own configuration.
    pub stop_tokens: &'static [&'static str],
    /// How answers are read.
    pub program: fn(Answer) -> Program,
    /// `None` where it does not think, or not between marks.
    pub reasoning: Option<Tags>,
    /// The formats of its calls, the one it writes first, then others that it has been seen to write.
    pub tools: &'static [&'static Format],
    /// What ids its template takes for calls.
    pub call_ids: CallIds,
    /// Where thoughts, calls and text are messages of their own.
    pub turns: Option<Turns>,
}

/// How an answer goes from one of its messages to the next, for an answer that is held to something: a model that is
/// free to writes it by itself.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Ends a thought.
    pub end: &'static str,
    /// Begins the next message; the prompt's end has begun the first.
    pub begin: &'static str,
    /// Makes it text.
    pub text: &'static str,
}

/// What a call's id looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIds {
    /// `call_` and 24 characters, as OpenAI's are.
    Long,
    /// Nine letters and digits; the template refuses others.
    Nine,
}

impl CallIds {
    /// Whether an id that the model gave can stay.
    pub fn allow(self, id: &str) -> bool {
        match self {
            CallIds::Long => !id.is_empty(),
            CallIds::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }
}

impl Dialect {
    /// What the end of this prompt has begun already: a thought where it ends with the mark that opens one, or where
    /// models of this dialect think unasked and it does not end with the mark that closes one.
    pub fn starts_in(&self, prompt: &str) -> Phase {
        let Some(tags) = &self.reasoning else { return Phase::Text };
        let end = prompt.trim_end();
        let ends_with = |marks: &[&str]| marks.iter().any(|mark| end.ends_with(mark));
        match ends_with(tags.open) || tags.always && !ends_with(tags.close) {
            true => Phase::Reasoning,
            false => Phase::Text,
        }
    }

    /// Whether a text begins a thought and does not end it.
    pub fn leaves_open(&self, text: &str) -> bool {
        let last = |marks: &[&str]| marks.iter().filter_map(|mark| text.rfind(mark)).max();
        self.reasoning.as_ref().is_some_and(|tags| last(tags.open).is_some_and(|at| Some(at) > last(tags.close)))
    }

    /// Whether a prompt ends with a thought that it has closed, so that the answer begins without one.
    pub fn ends_thought(&self, prompt: &str) -> bool {
        let tags = self.reasoning.as_ref();
        tags.is_some_and(|tags| tags.close.iter().any(|mark| prompt.trim_end().ends_with(mark)))
    }
}

/// Marks around thoughts.
#[derive(Debug, Clone)]
pub struct Tags {
    pub open: &'static [&'static str],
    pub close: &'static [&'static str],
    /// It thinks even where the prompt does not begin a thought.
    pub always: bool,
    /// A call ends a thought that was not closed.
    pub calls_inside: bool,
    /// Another thought may begin in the middle of an answer.
    pub again: bool,
}
