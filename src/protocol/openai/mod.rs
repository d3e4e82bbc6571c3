//! OpenAI's API: chat completions, the list of models, and the form of its errors.

pub mod chat;
pub mod error;
mod fields;
mod format;
mod message;
pub mod models;
mod request;
mod thinking;
pub mod tools;
mod wire;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;
