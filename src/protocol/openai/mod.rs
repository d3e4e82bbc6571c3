//! OpenAI's API: chat completions, the list of models, and the form of its errors.

mod chat;
mod embeddings;
pub mod error;
mod examples;
mod format;
mod message;
pub mod models;
mod request;
mod thinking;
pub mod tools;
mod wire;

pub use embeddings::EmbeddingsEndpoint;
pub use request::ChatCompletions;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;
