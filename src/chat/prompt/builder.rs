//! From a request to the tokens of its prompt.

use std::sync::Arc;

use super::{conversation::Conversation, template::Template, tokenizer::Tokenizer, tool_prompt, unsupported};
use crate::chat::{Dialect, Error, Field, Phase, Request, Thinking};

/// A conversation as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// At least one.
    pub tokens: Vec<u32>,
    /// What the prompt's end has begun: a thought, or the answer.
    pub starts: Phase,
    /// Whether the prompt's end has closed a thought, so that the answer will have none.
    pub ends_thought: bool,
    /// Whether the prompt's end has begun the answer's text, where that is a message of its own.
    pub begins_text: bool,
    /// Whether the answer goes on with a text that the prompt has begun, a message's or a thought's.
    pub goes_on: bool,
    /// What of the request the chat template leaves out.
    pub unrendered: Vec<Field>,
}

/// Makes the prompts of one model.
pub(in crate::chat) struct PromptBuilder {
    /// The model's.
    pub tokenizer: Arc<Tokenizer>,
    /// `None` where the model has none, and takes no messages.
    pub template: Option<Template>,
    /// Says how calls of the past are written and what begins a thought.
    pub dialect: &'static Dialect,
}

impl PromptBuilder {
    /// The prompt of a request that is to think so much.
    ///
    /// # Errors
    /// No messages, a model without a template, or messages that the template refuses.
    pub(in crate::chat) fn build(&self, request: &Request, thinking: &Thinking) -> Result<Prompt, Error> {
        if request.messages.is_empty() {
            return Err(wrong("there are no messages; send at least one"));
        }
        unsupported::refuse_media(request)?;
        let Some(template) = &self.template else {
            return Err(wrong("this model has no chat template, so it cannot take messages; use a chat model"));
        };
        let asked = Conversation { thinking, ..Conversation::from(request) };
        let with_tools = tool_prompt::with_tools(asked, template, self.dialect);
        let rendered = template.render(tool_prompt::with_ids(with_tools, self.dialect.call_ids))?;
        let tokens = self.tokenizer.encode_rendered(&rendered)?;
        if tokens.is_empty() {
            return Err(wrong("the model's chat template makes nothing of these messages"));
        }
        let starts = match request.messages.last().filter(|_| request.continue_final) {
            // The thought that the last message has begun goes on.
            Some(last) if self.dialect.leaves_open(&last.text()) => Phase::Reasoning,
            _ => self.dialect.starts_in(&rendered.text),
        };
        let ends_with_text = |text: &str| rendered.text.trim_end().ends_with(text.trim_end());
        Ok(Prompt {
            tokens,
            starts,
            ends_thought: self.dialect.ends_thought(&rendered.text),
            begins_text: request.continue_final || self.dialect.turns.is_some_and(|turns| ends_with_text(turns.text)),
            goes_on: request.continue_final && request.messages.last().is_some_and(|last| !last.text().is_empty()),
            unrendered: unsupported::unrendered(request, &rendered.text),
        })
    }
}

fn wrong(message: &str) -> Error {
    Error::Request { field: Field::Messages, message: message.to_owned() }
}
