//! How a conversation becomes tokens: the chat template, tools for templates that have no place for them, the tokenizer.
//!
//! The main path: [`PromptBuilder::build`] puts tools into the text where the template needs that, renders the template
//! and encodes the text, in which people's words are no control tokens.

mod added;
mod builder;
mod conversation;
mod mended;
pub(in crate::chat) mod plain_text;
pub(in crate::chat) mod template;
pub(in crate::chat) mod tokenizer;
pub(in crate::chat) mod tool_prompt;
mod unsupported;
pub(in crate::chat) mod vocabulary;

pub use builder::Prompt;
pub(in crate::chat) use builder::PromptBuilder;
pub use conversation::Conversation;
