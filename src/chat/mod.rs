//! Text in, events out: a conversation becomes a prompt by the model's own chat template, the prompt becomes tokens,
//! the engine's tokens become text again, and the answer ends where the request said it should.
//!
//! The main path: [`Model::generate`] renders, tokenises and submits; [`Events`] decodes what the engine sends, holds
//! back what may still become a stop string, and says the rest.

mod error;
mod event;
mod generate;
mod grammar;
mod load;
mod logprobs;
mod python;
mod request;
mod sampling;
mod stop;
mod template;
mod tokenizer;
mod vocabulary;

pub use error::Error;
pub use event::{Cut, Event, Finished, Logprob, Reason, TokenLogprob, ToolEvent};
pub use generate::{Events, Model};
pub use load::LoadError;
pub use request::{Dry, Format, Message, Overrides, Request, Role, Thinking, Tool, ToolCall, ToolChoice};
pub use template::Template;
pub use tokenizer::{Decoder, Tokenizer};
