//! The JSON of chat completions, whole and in chunks.

use serde::Serialize;

use crate::{
    chat::{Logprob, Phase, Reason, TokenLogprob},
    protocol::{Refusal, Usage},
};

#[derive(Serialize)]
pub(super) struct CompletionWire<'a, C> {
    pub id: &'a str,
    pub object: &'static str,
    pub created: u64,
    pub model: &'a str,
    pub system_fingerprint: &'static str,
    pub choices: &'a [C],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Option<UsageWire>>,
}

#[derive(Serialize)]
pub(super) struct Choice<'a> {
    pub index: usize,
    pub message: Message<'a>,
    pub logprobs: Option<Logprobs>,
    pub finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_details: Option<Details>,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub role: &'static str,
    pub content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<MessageCall<'a>>>,
    pub refusal: Option<()>,
}

#[derive(Serialize)]
pub(super) struct MessageCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> MessageCall<'a> {
    pub(super) fn new(id: &'a str, name: &'a str, arguments: &'a str) -> MessageCall<'a> {
        MessageCall { id, r#type: "function", function: Function { name, arguments } }
    }
}

#[derive(Serialize)]
pub(super) struct ChunkChoice<'a> {
    pub index: usize,
    pub delta: Delta<'a>,
    pub logprobs: Option<Logprobs>,
    pub finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_details: Option<Details>,
}

#[derive(Default, Serialize)]
pub(super) struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<[DeltaCall<'a>; 1]>,
}

#[derive(Serialize)]
pub(super) struct DeltaCall<'a> {
    pub index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    pub function: DeltaFunction<'a>,
}

#[derive(Serialize)]
pub(super) struct DeltaFunction<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    pub arguments: &'a str,
}

/// Log probabilities of the tokens of an answer, of its text as of its thoughts and calls.
#[derive(Serialize)]
pub(super) struct Logprobs {
    content: Vec<TokenWire>,
    refusal: Option<()>,
}

#[derive(Serialize)]
struct TokenWire {
    #[serde(flatten)]
    token: Token,
    top_logprobs: Vec<Token>,
}

#[derive(Serialize)]
struct Token {
    /// The bytes as text, with U+FFFD where they are none.
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
}

impl Logprobs {
    pub(super) fn of(logprobs: &[Logprob]) -> Logprobs {
        let token = |token: &TokenLogprob| Token {
            token: String::from_utf8_lossy(&token.bytes).into_owned(),
            // JSON has no infinity; OpenAI writes this for what is as good as impossible.
            logprob: token.logprob.max(-9999.0),
            bytes: token.bytes.clone(),
        };
        let entry = |entry: &Logprob| TokenWire {
            token: token(&entry.token),
            top_logprobs: entry.top.iter().map(token).collect(),
        };
        Logprobs { content: logprobs.iter().map(entry).collect(), refusal: None }
    }
}

/// How an answer ended, in OpenAI's words and, where those hide something, in more.
#[derive(Default)]
pub(super) struct Finish {
    pub reason: Option<&'static str>,
    pub details: Option<Details>,
}

/// What OpenAI's reasons do not tell; mettle's own.
#[derive(Serialize)]
pub(super) struct Details {
    /// `length`, `loop` or `stop`.
    r#type: &'static str,
    /// What the answer was in the middle of: `reasoning`, `text` or `tool_call`.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    within: Option<&'static str>,
    /// The stop string that was met.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
    /// Tools that the model called and that the request does not have. The calls are in the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected_calls: Vec<String>,
}

impl Finish {
    /// # Errors
    /// The answer failed.
    pub(super) fn of(reason: &Reason, rejected_calls: Vec<String>) -> Result<Finish, Refusal> {
        if let Some(refusal) = Refusal::of_end(reason) {
            return Err(refusal);
        }
        let mut finish = Finish::of_reason(reason);
        if !rejected_calls.is_empty() {
            let own = finish.details.take();
            let own = own.unwrap_or(Details { r#type: "stop", within: None, stop: None, rejected_calls: Vec::new() });
            finish.details = Some(Details { rejected_calls, ..own });
        }
        Ok(finish)
    }

    fn of_reason(reason: &Reason) -> Finish {
        let details = |kind, within, stop| Details { r#type: kind, within, stop, rejected_calls: Vec::new() };
        let cut = |kind, phase: &Phase| details(kind, Some(within(*phase)), None);
        let (reason, details) = match reason {
            Reason::Stop => ("stop", None),
            Reason::StopString(string) => ("stop", Some(details("stop", None, Some(string.clone())))),
            Reason::ToolCalls => ("tool_calls", None),
            Reason::Length(at) => ("length", Some(cut("length", at))),
            Reason::Loop(at) => ("length", Some(cut("loop", at))),
            Reason::Failed(_) | Reason::Closing => return Finish::default(),
        };
        Finish { reason: Some(reason), details }
    }
}

fn within(phase: Phase) -> &'static str {
    match phase {
        Phase::Reasoning => "reasoning",
        Phase::Text => "text",
        Phase::ToolCall => "tool_call",
    }
}

#[derive(Serialize)]
pub(super) struct UsageWire {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Serialize)]
struct PromptDetails {
    cached_tokens: usize,
}

#[derive(Serialize)]
struct CompletionDetails {
    reasoning_tokens: usize,
}

impl From<Usage> for UsageWire {
    fn from(usage: Usage) -> UsageWire {
        UsageWire {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.prompt + usage.completion,
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached },
            completion_tokens_details: CompletionDetails { reasoning_tokens: usage.reasoning },
        }
    }
}
