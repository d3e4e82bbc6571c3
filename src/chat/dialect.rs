//! What a family of models writes: its thoughts, its calls, its quirks. Data, chosen by what the model says of itself.

use super::{
    split::{Answer, Program},
    tools::Format,
};

mod table;
mod tagged;

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
