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
    /// The answer ends before the first of these. Reasoning and tool calls are not watched.
    pub stop: Vec<String>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    pub tool_choice: ToolChoice,
    /// Whether an answer may call more than once.
    pub parallel_tool_calls: bool,
    /// What the answer's text must be.
    pub format: Format,
    pub thinking: Thinking,
    /// The last message is the assistant's and is gone on with, instead of being answered.
    pub continue_final: bool,
    /// How many answers; 0 is 1.
    pub answers: usize,
    /// Tells the log probability of each token, and of this many others beside it.
    pub logprobs: Option<usize>,
    /// Extra variables for the chat template.
    pub template_variables: Map<String, Value>,
}

impl Request {
    /// The tools that the answer may call.
    pub fn callable(&self) -> &[Tool] {
        match self.tool_choice {
            ToolChoice::None => &[],
            _ => &self.tools,
        }
    }
}

/// How much the model is to think, where it can.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thinking {
    /// `None` leaves it to the template.
    pub enabled: Option<bool>,
    /// As the template spells it: none, minimal, low, medium, high, xhigh, max.
    pub effort: Option<String>,
    /// The most tokens to think; then the thought is ended and the answer begins.
    pub budget: Option<usize>,
}

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    /// JSON Schema of the arguments; an empty object where the request has none.
    pub parameters: Value,
    /// Whether the arguments must satisfy the schema.
    pub strict: bool,
    /// The function as the request describes it, its fields in their order: name, description, parameters …
    pub definition: Map<String, Value>,
}

/// Whether the model calls a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model sees fit.
    #[default]
    Auto,
    /// Never: tools are neither shown nor parsed.
    None,
    /// At least one call, of any tool.
    Required,
    /// A call of this tool.
    Named(String),
}

/// What the answer's text must be.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Format {
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that satisfies this schema.
    JsonSchema(Value),
    /// Text that matches this regular expression as a whole.
    Regex(String),
    /// Text of this grammar, in llguidance's dialect of Lark.
    Lark(String),
    /// Text of this grammar, in the EBNF of GGML's grammars (`root ::= …`).
    Ebnf(String),
    /// One of these.
    Choice(Vec<String>),
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
    pub dry: Option<Dry>,
    pub logit_bias: Vec<(u32, f32)>,
    /// `None` draws a new one for each request.
    pub seed: Option<u64>,
}

/// "Don't repeat yourself" (p-e-w, text-generation-webui #5677): a token that would make the text's end repeat what
/// stands earlier loses `multiplier * base ^ (repeated - allowed_length)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dry {
    /// 0 is off.
    pub multiplier: f32,
    pub base: f32,
    /// Repetitions up to this many tokens are free.
    pub allowed_length: usize,
    /// How many of the last tokens are looked at; `None` is all.
    pub range: Option<usize>,
    /// No repetition reaches across these.
    pub sequence_breakers: Vec<String>,
}

impl Dry {
    /// The values its author recommends.
    pub const BASE: f32 = 1.75;
    pub const ALLOWED_LENGTH: usize = 2;

    /// The breakers its author recommends.
    pub fn breakers() -> Vec<String> {
        ["\n", ":", "\"", "*"].map(str::to_owned).into()
    }
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// The speaker's name, for templates that render it.
    pub name: Option<String>,
    /// What the assistant thought before it said `content`.
    pub reasoning: Option<String>,
    /// What the assistant called.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's message answers.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of text alone.
    pub fn new(role: Role, content: impl Into<String>) -> Message {
        let content = content.into();
        Message { role, content, name: None, reasoning: None, tool_calls: Vec::new(), tool_call_id: None }
    }
}

/// A call of a tool, in a conversation's past.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}
