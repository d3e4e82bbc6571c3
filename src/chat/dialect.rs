//! What a family of models writes: its thoughts, its calls, its quirks. Data, chosen by what the model says of itself.

use super::{
    Cut,
    split::{Answer, Program},
    tools::Format,
};

mod table;

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
}

impl Dialect {
    /// What the end of a prompt has begun.
    pub fn starts_in(&self, prompt: &str) -> Cut {
        match &self.reasoning {
            Some(tags) if tags.open_at_the_end(prompt) || tags.always && !self.ends_thought(prompt) => Cut::Reasoning,
            _ => Cut::Text,
        }
    }

    /// Whether a prompt ends with a thought that it has closed, so that the answer begins without one.
    pub fn ends_thought(&self, prompt: &str) -> bool {
        let tags = self.reasoning.as_ref();
        tags.is_some_and(|tags| tags.close.iter().any(|mark| prompt.trim_end().ends_with(mark)))
    }
}

impl Tags {
    fn open_at_the_end(&self, prompt: &str) -> bool {
        self.open.iter().any(|mark| prompt.trim_end().ends_with(mark))
    }
}
