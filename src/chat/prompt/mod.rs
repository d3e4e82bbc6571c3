//! How a conversation becomes tokens: the chat template, tools for templates that know none, the tokenizer.

pub(in crate::chat) mod plain_text;
pub(in crate::chat) mod template;
pub(in crate::chat) mod tokenizer;
pub(in crate::chat) mod tool_prompt;
pub(in crate::chat) mod vocabulary;
