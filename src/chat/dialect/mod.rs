//! What a family of models writes: its thoughts, its calls, its quirks. Data, one row a family, chosen by what the model
//! says of itself. Nothing here reads or writes answers: `chat::output` does, by these rows.

mod choose;
mod common;
mod json;
mod shared;
mod syntax;
mod tags;

use std::sync::LazyLock;

use super::Phase;

pub use choose::{Names, choose};
pub use syntax::{
    Braces, Deepseek, Envelope, Functions, Layout, Mistral, Object, ObjectId, ObjectMessage, Pairs, Python,
    PythonArguments, Recipient, Spelling, Statements, Syntax, TagMessage, Tags, ToolFormat, Typed,
};

/// All dialects, the more specific before the more general: the first whose tags are all in a template is chosen.
pub static DIALECTS: LazyLock<Vec<&'static Dialect>> =
    LazyLock::new(|| [tags::FAMILIES, json::FAMILIES, common::FAMILIES].into_iter().flatten().collect());

/// All formats of calls, in the order of the dialects that write them.
pub static FORMATS: LazyLock<Vec<&'static ToolFormat>> = LazyLock::new(|| {
    let mut formats: Vec<&'static ToolFormat> = Vec::new();
    for format in DIALECTS.iter().flat_map(|row| row.tools) {
        if !formats.iter().any(|known| known.name == format.name) {
            formats.push(format);
        }
    }
    formats
});

/// The special tokens that end an answer in a GGUF of any family, beside those of its own row, which need not stand here.
/// A GGUF often records only the token that ends a document, and a chat model would then never stop.
pub const TURN_ENDS: &[&str] = &[
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
];

/// How a family writes.
#[derive(Debug)]
pub struct Dialect {
    /// As flags and aliases call it.
    pub name: &'static str,
    /// The `model_type`s of configurations whose models write so.
    pub model_types: &'static [&'static str],
    /// A chat template with all of these texts belongs to such a model, whatever its type.
    pub template_tags: &'static [&'static str],
    /// Special tokens that end an answer, beside those of the model's own configuration.
    pub stop_tokens: &'static [&'static str],
    /// How answers are read.
    pub program: Program,
    /// Marks in an answer that say nothing.
    pub drops: &'static [&'static str],
    /// `None` where it does not think, or not between tags.
    pub reasoning: Option<ReasoningTags>,
    /// The formats of its calls, the one it writes first, then others that it has been seen to write.
    pub tools: &'static [&'static ToolFormat],
    /// What ids its template takes for calls.
    pub call_ids: CallIds,
    /// Where thoughts, calls and text are messages of their own.
    pub turns: Option<Turns>,
}

/// How an answer is read.
#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// As one text, with marks around thoughts and calls.
    Marks,
    /// As messages in channels, in the harmony format.
    Channels,
    /// As messages, each with a header that says what it is.
    Messages(Messages),
    /// As parts that are addressed to a tool or to everyone.
    Recipients(Recipients),
    /// As a thought and actions.
    Actions,
}

/// How a family's messages look.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    /// What begins a message, which the prompt's end has written before the first.
    pub open: &'static str,
    /// Marks that end a header.
    pub kinds: &'static [(&'static str, MessageKind)],
    /// Marks that end a message.
    pub ends: &'static [&'static str],
}

/// What follows a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A thought.
    Thought,
    /// Text.
    Text,
    /// A call, which the header's mark opens.
    Call,
    /// A thought where the header has this in it, else text.
    ThoughtIf(&'static str),
}

/// How parts are addressed.
#[derive(Debug, Clone, Copy)]
pub struct Recipients {
    /// What the prompt has written before the first recipient.
    pub open: &'static str,
    /// The recipient of text, as it follows that.
    pub all: &'static str,
}

/// How an answer goes from one of its messages to the next, for an answer that is held to something: a model that is
/// free to writes it by itself.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Ends a thought.
    pub end: &'static str,
    /// Begins the next message; the prompt's end has begun the first.
    pub begin: &'static str,
    /// Makes it text.
    pub text: &'static str,
}

/// What a call's id looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIds {
    /// `call_` and 24 characters, as OpenAI's are.
    Long,
    /// Nine letters and digits; the template refuses others.
    Nine,
}

/// Tags around thoughts.
#[derive(Debug, Clone, Copy)]
pub struct ReasoningTags {
    /// What begins a thought; the first is written.
    pub open: &'static [&'static str],
    /// What ends a thought; the first is written.
    pub close: &'static [&'static str],
    /// It thinks even where the prompt does not begin a thought.
    pub always: bool,
    /// A call ends a thought that was not closed.
    pub calls_inside: bool,
    /// Another thought may begin in the middle of an answer.
    pub again: bool,
}

impl ReasoningTags {
    /// The tags that most families think between.
    pub const THINK: ReasoningTags = ReasoningTags::between(&["<think>"], &["</think>"]);

    /// Thoughts between these, of which the answer has one.
    pub const fn between(open: &'static [&'static str], close: &'static [&'static str]) -> ReasoningTags {
        ReasoningTags { open, close, always: false, calls_inside: true, again: false }
    }

    /// The same of a family whose thoughts may begin again.
    pub const fn again(self) -> ReasoningTags {
        ReasoningTags { again: true, ..self }
    }
}

impl CallIds {
    /// Whether an id that the model gave can stay.
    pub fn allow(self, id: &str) -> bool {
        match self {
            CallIds::Long => !id.is_empty(),
            CallIds::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }
}

impl Dialect {
    /// A row that says nothing, for others to begin with: it thinks between the usual tags.
    pub const PLAIN: Dialect = Dialect {
        name: "",
        model_types: &[],
        template_tags: &[],
        stop_tokens: &[],
        program: Program::Marks,
        drops: &[],
        reasoning: Some(ReasoningTags::THINK),
        tools: &[],
        call_ids: CallIds::Long,
        turns: None,
    };

    /// The dialect of this name.
    pub fn named(name: &str) -> Option<&'static Dialect> {
        DIALECTS.iter().copied().find(|row| row.name == name)
    }

    /// The dialect of models of which nothing is known.
    pub fn auto() -> &'static Dialect {
        Dialect::named("auto").expect("a table without the dialect auto is a bug")
    }

    /// What the end of this prompt has begun already: a thought where it ends with the tag that opens one, or where
    /// models of this dialect think unasked and it does not end with the tag that closes one.
    pub fn starts_in(&self, prompt: &str) -> Phase {
        let Some(tags) = &self.reasoning else { return Phase::Text };
        let end = prompt.trim_end();
        let ends_with = |tags: &[&str]| tags.iter().any(|tag| end.ends_with(tag));
        if ends_with(tags.open) || tags.always && !ends_with(tags.close) { Phase::Reasoning } else { Phase::Text }
    }

    /// Whether a text begins a thought and does not end it.
    pub fn leaves_open(&self, text: &str) -> bool {
        let last = |tags: &[&str]| tags.iter().filter_map(|tag| text.rfind(tag)).max();
        self.reasoning.as_ref().is_some_and(|tags| last(tags.open).is_some_and(|at| Some(at) > last(tags.close)))
    }

    /// Whether a prompt ends with a thought that it has closed, so that the answer begins without one.
    pub fn ends_thought(&self, prompt: &str) -> bool {
        let tags = self.reasoning.as_ref();
        tags.is_some_and(|tags| tags.close.iter().any(|tag| prompt.trim_end().ends_with(tag)))
    }
}

#[cfg(test)]
mod tests;
