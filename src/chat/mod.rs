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

pub use answer::Answers;
pub use dialect::{DIALECTS, Dialect, FORMATS, Names, ReasoningTags, ToolFormat, Turns};
pub use embedding::{
    EmbedFuture, EmbedPermit, EmbeddingInput, EmbeddingModel, EmbeddingRequest, Embeddings, EngineVectors, Vectors,
};
pub use error::{Error, Field, LoadError};
pub use event::{Event, Finished, Logprob, Phase, Reason, TokenLogprob, ToolEvent};
pub use generate::{Model, ModelParts, Permit};
pub use output::splitter::{Piece, Splitter};
pub use output::tools::render_turn;
pub use output::{Beginning, SpecialTokens};
pub use prompt::{
    Conversation, Prompt,
    template::Template,
    tokenizer::{ControlToken, Decoder, Rendered, Tokenizer},
};
pub use request::{
    Dry, Format, Media, Message, ParallelCalls, Part, Request, Role, Sampling, Thinking, Tool, ToolCall, ToolChoice,
    ToolField, ToolResult,
};

/// Made tokenizers, for tests of other layers.
#[cfg(test)]
pub(crate) use prompt::tokenizer::tests as made_tokenizers;
