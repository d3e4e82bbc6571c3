//! An answer in full, and what it took: the fold of its events.

use super::{Kind, Refusal, wire::Fold};
use crate::chat::{Event, Logprob, Reason, ToolEvent};

/// An answer in full: the fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    pub reasoning: String,
    pub text: String,
    pub calls: Vec<Call>,
    pub logprobs: Vec<Logprob>,
    pub usage: Usage,
    /// `None` until the answer has ended.
    pub reason: Option<Reason>,
    /// Undeclared tools that were called.
    pub rejected: Vec<String>,
}

/// A call of a tool in full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// The JSON text of an object; where the answer was cut within the call, the beginning of one.
    pub arguments: String,
}

/// What an answer took, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt: usize,
    /// Of the prompt's, the ones that were remembered and not computed again.
    pub cached: usize,
    pub completion: usize,
    /// Of the completion's, those of thoughts.
    pub reasoning: usize,
}

impl Completion {
    /// Why it ended.
    ///
    /// # Errors
    /// It came to no good end.
    pub fn reason(&self) -> Result<&Reason, Refusal> {
        let unfinished = || Refusal::new(Kind::Internal, "the answer ended without a reason");
        let reason = self.reason.as_ref().ok_or_else(unfinished)?;
        Refusal::of_end(reason).map_or(Ok(reason), Err)
    }
}

impl Fold<Event> for Completion {
    fn add(&mut self, event: Event) {
        self.usage.add(&event);
        match event {
            Event::Started { .. } => {}
            Event::Reasoning(text) => self.reasoning.push_str(&text),
            Event::Text(text) => self.text.push_str(&text),
            Event::ToolCall(ToolEvent::Begun { id, name, .. }) => {
                self.calls.push(Call { id, name, arguments: String::new() });
            }
            Event::ToolCall(ToolEvent::Arguments { index, fragment }) => {
                self.calls[index].arguments.push_str(&fragment);
            }
            Event::ToolCall(ToolEvent::Ended { .. }) => {}
            Event::Logprob(logprob) => self.logprobs.push(logprob),
            Event::Finished(finished) => (self.reason, self.rejected) = (Some(finished.reason), finished.rejected),
        }
    }
}

impl Usage {
    /// Takes the counts of an event in, if it has any. Answers to one request share their prompt.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Started { prompt_tokens, cached_tokens } => {
                self.prompt = *prompt_tokens;
                self.cached = self.cached.max(*cached_tokens);
            }
            Event::Finished(finished) => {
                self.completion += finished.completion_tokens;
                self.reasoning += finished.reasoning_tokens;
            }
            _ => {}
        }
    }

    /// What several answers to one request took together.
    pub fn of(answers: &[Completion]) -> Usage {
        answers.iter().fold(Usage::default(), |sum, answer| Usage {
            prompt: answer.usage.prompt,
            cached: sum.cached.max(answer.usage.cached),
            completion: sum.completion + answer.usage.completion,
            reasoning: sum.reasoning + answer.usage.reasoning,
        })
    }
}
