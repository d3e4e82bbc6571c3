//! Chat completions: the answers in one piece, or as chunks.

use std::{
    hash::{BuildHasher, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    error,
    wire::{
        Choice, ChunkChoice, CompletionWire, Delta, DeltaCall, DeltaFunction, Finish, Logprobs, Message, MessageCall,
        UsageWire,
    },
};
use crate::{
    chat::{Event, Logprob, Reason, ToolEvent},
    protocol::{self, Completion, Refusal, Usage, sse},
};

/// Names what made an answer: the same fingerprint and seed on the same machine make the same answer.
const FINGERPRINT: &str = concat!("mettle-", env!("CARGO_PKG_VERSION"));

/// Writes the answers to one request.
#[derive(Debug)]
pub struct ChatReply {
    /// Random, so that no two answers share one.
    id: String,
    /// Seconds since 1970.
    created: u64,
    model: String,
    chunks: Chunks,
    usage: Usage,
    /// Log probabilities of each answer that wait for the chunk they belong to; `None` where nobody asked for them.
    logprobs: Option<Vec<Vec<Logprob>>>,
    /// Answers that have not ended; 0 once the stream has.
    open: usize,
}

/// What the chunks of a stream tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    Plain,
    /// One more chunk at the end has the usage, and all others a null in its place.
    WithUsage,
}

impl ChatReply {
    pub(super) fn new(model: String, chunks: Chunks, answers: usize, logprobs: bool) -> ChatReply {
        let random = || RandomState::new().hash_one("an answer's id");
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ChatReply {
            id: format!("chatcmpl-{:016x}{:016x}", random(), random()),
            created: since.as_secs(),
            model,
            chunks,
            usage: Usage::default(),
            logprobs: logprobs.then(|| vec![Vec::new(); answers]),
            open: answers,
        }
    }

    fn completion<'a, C>(
        &'a self,
        object: &'static str,
        choices: &'a [C],
        usage: Option<Option<UsageWire>>,
    ) -> CompletionWire<'a, C> {
        let ChatReply { id, created, model, .. } = self;
        CompletionWire { id, object, created: *created, model, system_fingerprint: FINGERPRINT, choices, usage }
    }

    fn chunk(&mut self, index: usize, delta: Delta<'_>, finish: Finish) -> String {
        let usage = (self.chunks == Chunks::WithUsage).then_some(None);
        let waiting = self.logprobs.as_mut().map(|answers| std::mem::take(&mut answers[index]));
        let logprobs = waiting.filter(|waiting| !waiting.is_empty());
        let logprobs = logprobs.as_deref().map(Logprobs::of);
        let choice =
            ChunkChoice { index, delta, logprobs, finish_reason: finish.reason, finish_details: finish.details };
        sse::data(&self.completion("chat.completion.chunk", &[choice], usage))
    }

    /// The end of one answer, and of the stream if it is the last.
    fn finish(&mut self, answer: usize, reason: Reason, rejected: Vec<String>) -> String {
        let mut frames = match Finish::of(&reason, rejected) {
            Ok(finish) => self.chunk(answer, Delta::default(), finish),
            Err(refusal) => {
                self.open = 0;
                return error::frame(&refusal) + sse::DONE;
            }
        };
        self.open -= 1;
        if self.open == 0 {
            if self.chunks == Chunks::WithUsage {
                let none: &[ChunkChoice<'_>] = &[];
                frames += &sse::data(&self.completion("chat.completion.chunk", none, Some(Some(self.usage.into()))));
            }
            frames += sse::DONE;
        }
        frames
    }
}

impl protocol::Reply for ChatReply {
    type Event = Event;
    type Whole = Completion;

    fn frames(&mut self, answer: usize, event: Event) -> String {
        if self.open == 0 {
            // One of several answers has failed, and the stream ended with it.
            return String::new();
        }
        self.usage.add(&event);
        let mut delta = Delta::default();
        match event {
            Event::Started { .. } => (delta.role, delta.content) = (Some("assistant"), Some("")),
            Event::Text(ref text) => delta.content = Some(text),
            Event::Reasoning(ref text) => delta.reasoning_content = Some(text),
            Event::ToolCall(ref call) => match DeltaCall::of(call) {
                Some(call) => delta.tool_calls = Some([call]),
                None => return String::new(),
            },
            Event::Logprob(logprob) => {
                if let Some(waiting) = &mut self.logprobs {
                    waiting[answer].push(logprob);
                }
                return String::new();
            }
            Event::Finished(finished) => return self.finish(answer, finished.reason, finished.rejected),
        }
        self.chunk(answer, delta, Finish::default())
    }

    fn body(self, answers: Vec<Completion>) -> Result<String, Refusal> {
        let mut choices = Vec::with_capacity(answers.len());
        for (index, answer) in answers.iter().enumerate() {
            let finish = Finish::of(answer.reason()?, answer.rejected.clone())?;
            let logprobs = self.logprobs.is_some().then(|| Logprobs::of(&answer.logprobs));
            let message = Message::of(answer);
            let Finish { reason: finish_reason, details: finish_details } = finish;
            choices.push(Choice { index, message, logprobs, finish_reason, finish_details });
        }
        let usage = Usage::of(&answers);
        Ok(sse::json(&self.completion("chat.completion", &choices, Some(Some(usage.into())))))
    }
}

impl<'a> DeltaCall<'a> {
    fn of(event: &'a ToolEvent) -> Option<DeltaCall<'a>> {
        match event {
            ToolEvent::Begun { index, id, name } => Some(DeltaCall {
                index: *index,
                id: Some(id),
                kind: Some("function"),
                function: DeltaFunction { name: Some(name), arguments: "" },
            }),
            ToolEvent::Arguments { index, fragment } => Some(DeltaCall {
                index: *index,
                id: None,
                kind: None,
                function: DeltaFunction { name: None, arguments: fragment },
            }),
            // OpenAI's chunks do not say it: the next call, or the end of the answer, does.
            ToolEvent::Ended { .. } => None,
        }
    }
}

impl<'a> Message<'a> {
    fn of(answer: &'a Completion) -> Message<'a> {
        let call = |call: &'a protocol::Call| MessageCall::new(&call.id, &call.name, &call.arguments);
        Message {
            role: "assistant",
            content: (answer.calls.is_empty() || !answer.text.is_empty()).then_some(&answer.text),
            reasoning_content: (!answer.reasoning.is_empty()).then_some(&answer.reasoning),
            tool_calls: (!answer.calls.is_empty()).then(|| answer.calls.iter().map(call).collect()),
            refusal: None,
        }
    }
}
