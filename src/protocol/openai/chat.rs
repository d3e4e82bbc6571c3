//! Chat completions: the answer in one piece, or as chunks.

use std::{
    hash::{BuildHasher, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

use super::error;
pub use super::request::Request;
use crate::{
    chat::{Event, Reason},
    protocol::{self, Kind, Refusal, Usage, Whole, sse},
};

/// Names what made an answer: the same fingerprint and seed on the same machine make the same answer.
const FINGERPRINT: &str = concat!("mettle-", env!("CARGO_PKG_VERSION"));

/// Writes one answer.
#[derive(Debug)]
pub struct Reply {
    /// Random, so that no two answers share one.
    id: String,
    /// Seconds since 1970.
    created: u64,
    model: String,
    chunks: Chunks,
    usage: Usage,
}

/// What the chunks of a stream tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    Plain,
    /// One more chunk at the end has the usage, and all others a null in its place.
    WithUsage,
}

#[derive(Serialize)]
struct Completion<'a, C> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: &'a [C],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<UsageWire>>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: usize,
    message: Message<'a>,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
    refusal: Option<()>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: usize,
    delta: Delta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

#[derive(Serialize)]
struct UsageWire {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptDetails,
}

#[derive(Serialize)]
struct PromptDetails {
    cached_tokens: usize,
}

impl From<Usage> for UsageWire {
    fn from(usage: Usage) -> UsageWire {
        UsageWire {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.prompt + usage.completion,
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached },
        }
    }
}

impl Reply {
    pub(super) fn new(model: &str, chunks: Chunks) -> Reply {
        let random = || RandomState::new().hash_one("an answer's id");
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Reply {
            id: format!("chatcmpl-{:016x}{:016x}", random(), random()),
            created: since.as_secs(),
            model: model.to_owned(),
            chunks,
            usage: Usage::default(),
        }
    }

    fn completion<'a, C>(
        &'a self,
        object: &'static str,
        choices: &'a [C],
        usage: Option<Option<UsageWire>>,
    ) -> Completion<'a, C> {
        let Reply { id, created, model, .. } = self;
        Completion { id, object, created: *created, model, system_fingerprint: FINGERPRINT, choices, usage }
    }

    fn chunk(&self, delta: Delta<'_>, finish_reason: Option<&'static str>) -> String {
        let usage = (self.chunks == Chunks::WithUsage).then_some(None);
        let choice = ChunkChoice { index: 0, delta, logprobs: None, finish_reason };
        sse::data(&self.completion("chat.completion.chunk", &[choice], usage))
    }

    /// The chunk without choices that ends a stream with usage.
    fn usage_chunk(&self) -> String {
        match self.chunks {
            Chunks::Plain => String::new(),
            Chunks::WithUsage => {
                let none: &[ChunkChoice<'_>] = &[];
                sse::data(&self.completion("chat.completion.chunk", none, Some(Some(self.usage.into()))))
            }
        }
    }
}

impl protocol::Reply for Reply {
    fn frames(&mut self, event: Event) -> String {
        self.usage.add(&event);
        match event {
            Event::Started { .. } => self.chunk(Delta { role: Some("assistant"), content: Some("") }, None),
            Event::Text(text) => self.chunk(Delta { content: Some(&text), ..Delta::default() }, None),
            Event::Finished(finished) => match finish_reason(finished.reason) {
                Ok(reason) => self.chunk(Delta::default(), Some(reason)) + &self.usage_chunk() + sse::DONE,
                Err(refusal) => error::frame(&refusal) + sse::DONE,
            },
            _ => String::new(),
        }
    }

    fn body(self, whole: Whole) -> Result<String, Refusal> {
        let unfinished = || Refusal::new(Kind::Internal, "the answer ended without a reason");
        let finish_reason = finish_reason(whole.reason.ok_or_else(unfinished)?)?;
        let message = Message { role: "assistant", content: &whole.text, refusal: None };
        let choice = Choice { index: 0, message, logprobs: None, finish_reason };
        Ok(sse::json(&self.completion("chat.completion", &[choice], Some(Some(whole.usage.into())))))
    }
}

fn finish_reason(reason: Reason) -> Result<&'static str, Refusal> {
    match reason {
        Reason::Stop | Reason::StopString(_) => Ok("stop"),
        Reason::ToolCalls => Ok("tool_calls"),
        Reason::Length(_) | Reason::Loop(_) => Ok("length"),
        Reason::Failed(text) => Err(Refusal::new(Kind::Internal, format!("the answer failed: {text}"))),
        Reason::Closing => Err(Refusal::closing()),
    }
}
