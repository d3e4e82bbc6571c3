//! What an answer consists of. A streamed answer sends these one by one, any other is the fold over them.

/// In this order: `Started`; any number of `Reasoning`, `Text`, `ToolCall` and `Logprob`; one `Finished`.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Started {
        prompt_tokens: usize,
        cached_tokens: usize,
    },
    /// What the model thinks before it answers.
    Reasoning(String),
    Text(String),
    ToolCall(ToolEvent),
    /// The log probabilities of one drawn token, where the request asks for them. Stands before what it led to.
    Logprob(Logprob),
    Finished(Finished),
}

/// A call of a tool as it comes. Calls come one after the other, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEvent {
    /// The call's name is certain, and declared.
    Begun { index: usize, id: String, name: String },
    /// More of the arguments: JSON text of an object. The fragments of a call that ended are valid JSON together.
    Arguments { index: usize, fragment: String },
    /// The arguments are complete. A call without it was cut off: its JSON is left open, so that nobody takes a
    /// fragment of a value for the value.
    Ended { index: usize },
}

/// How likely a token was by the model's own distribution, before penalties, bias, grammar and temperature.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprob {
    /// The drawn token.
    pub token: TokenLogprob,
    /// The most likely tokens, most likely first.
    pub top: Vec<TokenLogprob>,
}

/// A token, and how likely it was.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// Its id.
    pub id: u32,
    /// The token's bytes, which need not be whole characters.
    pub bytes: Vec<u8>,
    /// Natural logarithm.
    pub logprob: f32,
}

/// How an answer ended, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Why it ended.
    pub reason: Reason,
    /// Tokens drawn, without the one that ends the answer; those of a stop string, of thoughts and of tool calls are
    /// counted.
    pub completion_tokens: usize,
    /// Of the completion's, those of thoughts.
    pub reasoning_tokens: usize,
    /// Tools that the model called and that nobody declared. What it wrote is text.
    pub rejected: Vec<String>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The model ended it.
    Stop,
    /// This stop string was met.
    StopString(String),
    /// The model ended it with calls of tools.
    ToolCalls,
    /// `max_tokens` or the context is used up, inside this.
    Length(Phase),
    /// The model repeated itself without end and was stopped.
    Loop(Phase),
    /// Our fault; the text says what happened.
    Failed(String),
    /// The server is closing.
    Closing,
}

/// What an answer is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// What the model thinks before it answers.
    Reasoning,
    /// The answer itself.
    Text,
    /// A call of a tool.
    ToolCall,
}
