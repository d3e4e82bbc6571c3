//! Text in, events out: a conversation becomes a prompt by the model's own chat template, the prompt becomes tokens,
//! the engine's tokens become text again, and the answer ends where the request said it should.
//!
//! The main path: [`Model::generate`] renders, tokenises and submits; [`Answers`] decode what the engine
//! sends, tell thoughts, text and calls apart, and stop where the request said.

mod answer;
mod contract;
mod dialect;
mod error;
mod event;
mod generate;
mod grammar;
mod input;
mod json;
mod load;
mod logprobs;
mod loops;
mod output;
mod plain_text;
mod python;
mod request;
mod sampling;
mod schema;
mod split;
mod stop;
mod teach;
mod template;
mod tokenizer;
mod tools;
mod vocabulary;

pub use answer::Answers;
pub use dialect::{DIALECTS, Dialect, Names, Tags, Turns};
pub use error::Error;
pub use event::{Cut, Event, Finished, Logprob, Reason, TokenLogprob, ToolEvent};
pub use generate::{Model, Prompt};
pub use load::LoadError;
pub use request::{Dry, Format, Message, Overrides, Request, Role, Thinking, Tool, ToolCall, ToolChoice};
pub use split::{Piece, Splitter};
pub use template::{Rendered, Template, ThinkingControl};
pub use tokenizer::{ControlToken, Decoder, Tokenizer};
