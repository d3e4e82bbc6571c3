//! Text in, events out: a conversation becomes a prompt by the model's own chat template, the prompt becomes tokens,
//! the engine's tokens become text again, and the answer ends where the request said it should.
//!
//! The main path: [`Model::generate`] renders, tokenises and submits; [`Answers`] decode what the engine
//! sends, tell thoughts, text and calls apart, and stop where the request said.

mod answer;
mod constraint;
mod dialect;
mod embedding;
mod error;
mod event;
mod generate;
mod load;
mod logprobs;
mod output;
mod prompt;
mod python;
mod request;
mod sampling;
mod schema;

pub use answer::Answers;
pub use dialect::{DIALECTS, Dialect, FORMATS, Names, ReasoningTags, ToolFormat, Turns};
pub use embedding::{EmbeddingRequest, Embeddings, Input};
pub use error::{Error, Field};
pub use event::{Event, Finished, Logprob, Phase, Reason, TokenLogprob, ToolEvent};
pub use generate::{Model, Prompt};
pub use load::LoadError;
pub use output::splitter::{Piece, Splitter};
pub use output::tools::render_turn;
pub use output::{Beginning, SpecialTokens};
pub use prompt::template::{Rendered, Template, ThinkingControl};
pub use prompt::tokenizer::{ControlToken, Decoder, Tokenizer};
pub use request::{
    Dry, Format, Media, Message, Overrides, ParallelCalls, Part, Request, Role, Thinking, Tool, ToolCall, ToolChoice,
    ToolField, ToolResult,
};
