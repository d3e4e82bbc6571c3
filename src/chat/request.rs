//! A chat request in mettle's own words, whatever protocol it came by.

use std::{borrow::Cow, num::NonZeroUsize};

use serde_json::{Map, Value};

pub use crate::engine::{Dry, Sampling};

/// What to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub messages: Vec<Message>,
    /// What it leaves out comes from the model's defaults, then from mettle's.
    pub sampling: Sampling,
    /// The texts that no repetition reaches across, where `sampling` has DRY; [`Request::DRY_BREAKERS`] are usual.
    pub dry_breakers: Vec<String>,
    /// The most tokens to generate; `None` lets the answer fill the context.
    pub max_tokens: Option<usize>,
    /// Goes on past the tokens that end an answer, as far as `max_tokens`.
    pub ignore_eos: bool,
    /// The answer ends before the first of these. Reasoning and tool calls are not watched.
    pub stop: Vec<String>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    pub tool_use: ToolChoice,
    pub parallel_calls: ParallelCalls,
    /// What the answer's text must be.
    pub format: Format,
    pub thinking: Thinking,
    /// The last message is the assistant's and is gone on with, instead of being answered.
    pub continue_final: bool,
    /// How many answers.
    pub answers: NonZeroUsize,
    /// Tells the log probability of each token, and of this many others beside it.
    pub logprobs: Option<usize>,
    /// Extra variables for the chat template.
    pub template_variables: Map<String, Value>,
}

impl Request {
    /// The sequence breakers that DRY's author recommends.
    pub const DRY_BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

    /// One answer to these messages, with nothing else asked for.
    pub fn new(messages: Vec<Message>) -> Request {
        Request {
            messages,
            sampling: Sampling::default(),
            dry_breakers: Vec::new(),
            max_tokens: None,
            ignore_eos: false,
            stop: Vec::new(),
            tools: Vec::new(),
            tool_use: ToolChoice::Auto,
            parallel_calls: ParallelCalls::default(),
            format: Format::Text,
            thinking: Thinking::default(),
            continue_final: false,
            answers: NonZeroUsize::MIN,
            logprobs: None,
            template_variables: Map::new(),
        }
    }

    /// The tools that the answer may call.
    pub fn callable(&self) -> &[Tool] {
        match self.tool_use {
            ToolChoice::None => &[],
            _ => &self.tools,
        }
    }

    /// Whether an answer may call more than once, by all that the request says.
    pub fn parallel(&self) -> ParallelCalls {
        match (self.parallel_calls, &self.tool_use) {
            (ParallelCalls::Distinct, ToolChoice::Named(_)) => ParallelCalls::Forbidden,
            (asked, _) => asked,
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
    /// What it does, for the model to read.
    pub description: Option<String>,
    /// JSON Schema of the arguments; an empty object where the request has none.
    pub parameters: Value,
    /// Whether the arguments must satisfy the schema.
    pub strict: bool,
    /// Which of these the request has, in its order: templates write a tool as it was written.
    pub given: Vec<ToolField>,
}

/// What a request may say of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolField {
    Name,
    Description,
    Parameters,
    Strict,
}

impl Tool {
    /// A tool of these alone.
    pub fn new(name: impl Into<String>, parameters: Value) -> Tool {
        let given = vec![ToolField::Name, ToolField::Parameters];
        Tool { name: name.into(), description: None, parameters, strict: false, given }
    }
}

/// Whether an answer may call more than once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ParallelCalls {
    /// As often as the model likes.
    Allowed,
    /// The request does not say: as often as the model has another call to make, and once where a tool is named.
    #[default]
    Distinct,
    Forbidden,
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

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    /// The speaker's name, for templates that render it.
    pub name: Option<String>,
    /// What is said, thought, called and shown, in this order.
    pub content: Vec<Part>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    /// What the assistant thought.
    Reasoning(String),
    /// What the assistant called.
    ToolCall(ToolCall),
    /// What a call came to. Stands in a message of [`Role::Tool`], one in each.
    ToolResult(ToolResult),
    Picture(Media),
    Sound(Media),
    Document(Media),
}

/// A call of a tool, in a conversation's past.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// The result of a tool's call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call: Option<String>,
    pub content: Vec<Part>,
}

/// A picture, a sound or a document as the request has it: nothing is fetched or decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Media {
    /// Where it is; `data:` URLs have it in themselves.
    Url(String),
    /// A file of this kind (a media type or a format's name), in Base64.
    Base64 { kind: String, data: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

impl Message {
    /// A message of text alone; of a tool, a result that names no call.
    pub fn new(role: Role, text: impl Into<String>) -> Message {
        let text = Part::Text(text.into());
        let part = match role {
            Role::Tool => Part::ToolResult(ToolResult { call: None, content: vec![text] }),
            _ => text,
        };
        Message { role, name: None, content: vec![part] }
    }

    /// What this call came to.
    pub fn tool_result(call: impl Into<String>, text: impl Into<String>) -> Message {
        let result = ToolResult { call: Some(call.into()), content: vec![Part::Text(text.into())] };
        Message { role: Role::Tool, name: None, content: vec![Part::ToolResult(result)] }
    }

    /// The same message with one more part at its end.
    #[must_use]
    pub fn with(mut self, part: Part) -> Message {
        self.content.push(part);
        self
    }

    /// The text of all parts together, with nothing between them; that of a tool's result is among it.
    pub fn text(&self) -> Cow<'_, str> {
        joined(self.content.iter().flat_map(texts)).unwrap_or_default()
    }

    /// The reasoning of all parts together; `None` where there is no such part.
    pub fn reasoning(&self) -> Option<Cow<'_, str>> {
        joined(self.content.iter().filter_map(|part| match part {
            Part::Reasoning(text) => Some(text.as_str()),
            _ => None,
        }))
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The id of the call whose result this is.
    pub fn answered_call(&self) -> Option<&str> {
        self.content.iter().find_map(|part| match part {
            Part::ToolResult(result) => result.call.as_deref(),
            _ => None,
        })
    }

    /// Puts this text in the place of all texts; what else the message has stays.
    pub fn set_text(&mut self, text: String) {
        let content = self.content.iter_mut().find_map(|part| match part {
            Part::ToolResult(result) => Some(&mut result.content),
            _ => None,
        });
        let content = match content {
            Some(content) => content,
            None => &mut self.content,
        };
        let is_text = |part: &Part| matches!(part, Part::Text(_));
        let at = content.iter().position(is_text);
        content.retain(|part| !is_text(part));
        content.insert(at.unwrap_or(content.len()), Part::Text(text));
    }

    /// The ids of the calls that it makes or answers.
    pub fn call_ids(&self) -> impl Iterator<Item = &String> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(&call.id),
            Part::ToolResult(result) => result.call.as_ref(),
            _ => None,
        })
    }

    /// [`Message::call_ids`], to be changed.
    pub fn call_ids_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.content.iter_mut().filter_map(|part| match part {
            Part::ToolCall(call) => Some(&mut call.id),
            Part::ToolResult(result) => result.call.as_mut(),
            _ => None,
        })
    }
}

fn texts(part: &Part) -> Box<dyn Iterator<Item = &str> + '_> {
    match part {
        Part::Text(text) => Box::new(std::iter::once(text.as_str())),
        Part::ToolResult(result) => Box::new(result.content.iter().flat_map(texts)),
        _ => Box::new(std::iter::empty()),
    }
}

/// These pieces as one text, without a copy where there is one only.
fn joined<'a>(mut pieces: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let first = pieces.next()?;
    let Some(second) = pieces.next() else { return Some(Cow::Borrowed(first)) };
    let mut text = format!("{first}{second}");
    text.extend(pieces);
    Some(Cow::Owned(text))
}
