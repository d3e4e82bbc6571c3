//! A chat request in mettle's own words, whatever protocol it came by.

use serde_json::{Map, Value};

/// What to generate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    pub messages: Vec<Message>,
    pub sampling: Overrides,
    /// The most tokens to generate; `None` lets the answer fill the context.
    pub max_tokens: Option<usize>,
    /// Goes on past the tokens that end an answer, as far as `max_tokens`.
    pub ignore_eos: bool,
    /// The answer ends before the first of these.
    pub stop: Vec<String>,
    /// Extra variables for the chat template.
    pub template_variables: Map<String, Value>,
}

/// The sampling fields the request sets. What it leaves out comes from the model's generation_config, then from
/// mettle's defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub presence_penalty: Option<f32>,
    pub frequency_penalty: Option<f32>,
    pub logit_bias: Vec<(u32, f32)>,
    /// `None` draws a new one for each request.
    pub seed: Option<u64>,
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// The speaker's name, for templates that render it.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}
