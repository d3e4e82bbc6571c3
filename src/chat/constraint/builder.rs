//! From a request to what holds its answers.

use std::sync::Arc;

use super::{
    calls::Calls,
    grammar::{Grammar, Grammars, Key, as_lark},
    guide::{AnswerGuide, Parts},
    thought::{self, Asked, Beginning, Covers},
};
use crate::{
    chat::{Dialect, Error, Field, Format, Prompt, Request, Thinking, Tokenizer, ToolChoice, output::grammar::Rules},
    engine::Guide,
};

/// Nothing, or what holds each of a request's answers.
pub(in crate::chat) struct Constraint {
    beginning: Beginning,
    grammar: Option<Grammar>,
    /// Whether the grammar is one of the answer's text.
    of_text: bool,
}

impl Constraint {
    /// Whether all of the answer is a text that the grammar describes, from the first byte on.
    pub(in crate::chat) fn is_exact(&self) -> bool {
        self.of_text && self.beginning.opening.is_empty() && self.beginning.thought.is_none()
    }
}

/// Makes the constraints of one model's answers.
pub(in crate::chat) struct ConstraintBuilder {
    tokenizer: Arc<Tokenizer>,
    dialect: &'static Dialect,
    stop_tokens: Vec<u32>,
    /// Whether the model's template writes a tag that begins a thought.
    template_thinks: bool,
    grammars: Grammars,
}

impl ConstraintBuilder {
    /// `stop_tokens` end an answer; `template_thinks` where the model's template writes a tag that begins a thought.
    pub(in crate::chat) fn new(
        tokenizer: Arc<Tokenizer>,
        dialect: &'static Dialect,
        stop_tokens: Vec<u32>,
        template_thinks: bool,
    ) -> ConstraintBuilder {
        let grammars = Grammars::new(Arc::clone(&tokenizer), stop_tokens.clone());
        ConstraintBuilder { tokenizer, dialect, stop_tokens, template_thinks, grammars }
    }

    /// The constraint of a request that is to think so much.
    ///
    /// # Errors
    /// A format or a schema that cannot be enforced, two that exclude each other, a call where the dialect has none.
    pub(in crate::chat) fn build(
        &self,
        request: &Request,
        thinking: &Thinking,
        prompt: &Prompt,
    ) -> Result<Constraint, Error> {
        let (covers, grammar) = self.grammar(request)?;
        let ConstraintBuilder { dialect, template_thinks, .. } = *self;
        let asked = Asked { dialect, template_thinks, request, thinking, prompt, covers };
        let beginning = thought::beginning(&asked)?;
        Ok(Constraint { beginning, grammar, of_text: matches!(covers, Covers::Format | Covers::CallsOrFormat) })
    }

    /// The guide of one answer; `None` where the answer is free.
    pub(in crate::chat) fn guide(&self, constraint: &Constraint) -> Result<Option<Box<dyn Guide>>, Error> {
        let Constraint { beginning, grammar, .. } = constraint;
        if beginning.opening.is_empty() && beginning.thought.is_none() && grammar.is_none() {
            return Ok(None);
        }
        let parts = Parts {
            opening: &beginning.opening,
            thought: beginning.thought.as_ref(),
            matcher: grammar.as_ref().map(Grammar::matcher),
        };
        Ok(Some(Box::new(AnswerGuide::new(&self.tokenizer, &self.stop_tokens, parts)?)))
    }

    fn grammar(&self, request: &Request) -> Result<(Covers, Option<Grammar>), Error> {
        let tools = request.callable();
        let is_strict = tools.iter().any(|tool| tool.strict);
        match (&request.tool_use, &request.format) {
            (ToolChoice::Required | ToolChoice::Named(_), format) if *format != Format::Text => {
                let message = "an answer that must call a tool has no text that a format could be held to; \
                    let the model choose whether to call, or ask for no format";
                Err(Error::Request { field: Field::Format, message: message.to_owned() })
            }
            (ToolChoice::Required | ToolChoice::Named(_), _) => {
                let calls = Calls::new(self.dialect, &self.grammars, request)?;
                let make = || self.grammars.lark(calls.required()?).map_err(of_tools);
                Ok((Covers::Calls, Some(self.grammars.remembered(calls.key("calls"), make)?)))
            }
            (_, Format::Text) if is_strict => {
                let calls = Calls::new(self.dialect, &self.grammars, request)?;
                let make = || self.grammars.lark(calls.among_text()?).map_err(of_tools);
                Ok((Covers::Calls, Some(self.grammars.remembered(calls.key("text and calls"), make)?)))
            }
            (_, Format::Text) => Ok((Covers::Nothing, None)),
            (_, format) if tools.is_empty() => Ok((Covers::Format, self.grammars.compile(format)?)),
            (_, format) => {
                let calls = Calls::new(self.dialect, &self.grammars, request)?;
                let key = calls.key("calls or a format").with(Key::of(format));
                let make = || self.grammars.lark(self.calls_or_format(&calls, format)?);
                Ok((Covers::CallsOrFormat, Some(self.grammars.remembered(key, make)?)))
            }
        }
    }

    /// Lark whose `start` is calls, or text of this format.
    fn calls_or_format(&self, calls: &Calls<'_>, format: &Format) -> Result<String, Error> {
        let calls = calls.required()?.replacen("start:", "calls:", 1);
        let answer = as_lark(format)?;
        let special = |name: &str| self.tokenizer.special_id(name);
        let message = self.dialect.turns.map_or(String::new(), |turns| Rules::new(&special).literal(turns.text));
        Ok(format!("start: calls | {message} answer\nanswer: {answer}\n{calls}"))
    }
}

/// The same error, of the tools together.
fn of_tools(error: Error) -> Error {
    match error {
        Error::Request { message, .. } => {
            let message = format!("the tools' parameters cannot be held to together: {message}");
            Error::Request { field: Field::Tools, message }
        }
        other => other,
    }
}
