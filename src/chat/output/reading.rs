//! An answer that is being read. One task owns it; the program that reads it and the parsers that the program runs in
//! turn hold it together.

use serde_json::Value;

use super::{
    emitter::Output,
    input::{Input, SpecialTokens},
};
use crate::{
    chat::{Phase, Tool, dialect::Dialect},
    schema::Shape,
};

/// The text that comes in, the events that go out, and the tools that may be called.
#[derive(Debug)]
pub struct Reading {
    /// How the answer is written.
    pub(super) dialect: &'static Dialect,
    /// The text.
    pub(super) input: Input,
    /// What was found in it.
    pub(super) output: Output,
    /// By their names.
    tools: Vec<(String, Shape)>,
}

/// How the reading of an answer begins.
#[derive(Debug, Clone)]
pub struct Beginning<'a> {
    /// The tools that may be called.
    pub tools: &'a [Tool],
    /// What the prompt's end has begun already.
    pub phase: Phase,
    /// The names of the model's special tokens, made once a model.
    pub special_tokens: SpecialTokens,
    /// Calls' ids are made of this, so it should be random.
    pub ids: u64,
}

impl Reading {
    /// Of an answer in this dialect.
    pub(super) fn new(dialect: &'static Dialect, beginning: Beginning<'_>) -> Reading {
        let shape = |tool: &Tool| match &tool.parameters {
            Value::Object(_) => Shape::of(tool.parameters.clone()),
            _ => Shape::unknown(),
        };
        Reading {
            dialect,
            input: Input::new(beginning.special_tokens),
            output: Output::new(beginning.phase, beginning.ids, dialect.call_ids),
            tools: beginning.tools.iter().map(|tool| (tool.name.clone(), shape(tool))).collect(),
        }
    }

    /// Whether a call may begin here: a tool was declared, and the text is none that is only said.
    pub(super) fn may_have_calls(&self) -> bool {
        !self.tools.is_empty() && !self.output.forbids_calls()
    }

    /// A tool by its name, also where the model put a namespace before it.
    pub(super) fn tool(&self, name: &str) -> Option<&(String, Shape)> {
        let find = |name: &str| self.tools.iter().find(|(own, _)| own == name);
        let bare = |prefix: &str| name.strip_prefix(prefix).and_then(find);
        find(name).or_else(|| bare("functions.")).or_else(|| bare("tools.")).or_else(|| bare("function."))
    }
}
