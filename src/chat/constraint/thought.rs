//! What an answer begins with, and how its thought is guided: where it ends, so that a grammar holds only behind it, and
//! when it must.

use super::guide::ThoughtGuide;
use crate::chat::{
    Dialect, Error, Field, Phase, Prompt, Request, Thinking,
    dialect::{ReasoningTags, Turns},
};

/// How an answer begins.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// What it begins with, whatever the model says.
    pub opening: String,
    /// How its thought is guided; `None` where it has none, or one that nothing limits.
    pub thought: Option<ThoughtGuide>,
}

/// What a request's grammar covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Covers {
    /// Nothing: there is none.
    Nothing,
    /// Text of the request's format.
    Format,
    /// Calls, and text that no format holds.
    Calls,
    /// Calls, or text of the request's format.
    CallsOrFormat,
}

/// A request and what else decides how its answer begins.
pub(super) struct Asked<'a> {
    pub dialect: &'static Dialect,
    /// Whether the model's template writes a tag that begins a thought.
    pub template_thinks: bool,
    pub request: &'a Request,
    pub thinking: &'a Thinking,
    pub prompt: &'a Prompt,
    /// What its grammar covers.
    pub covers: Covers,
}

/// How the answer to a request begins.
///
/// # Errors
/// It is to think, and the model does not.
pub(super) fn beginning(asked: &Asked<'_>) -> Result<Beginning, Error> {
    let turns = asked.dialect.turns;
    let plain = || Beginning { opening: text_opening(turns, asked), thought: None };
    let Some((tags, end)) = thought_tags(asked) else {
        refuse_thinking(asked.thinking)?;
        return Ok(plain());
    };
    let has_begun = asked.prompt.starts == Phase::Reasoning;
    let budget = match asked.thinking.enabled {
        // The template has no switch for it: the thought ends at once.
        Some(false) if has_begun => Some(0),
        _ => asked.thinking.budget,
    };
    if asked.covers == Covers::Nothing && budget.is_none() {
        return Ok(plain());
    }
    // A model that begins its thoughts itself is made to, so that nobody has to guess whether it will.
    let is_closed = asked.prompt.ends_thought || asked.prompt.begins_text;
    let begins = !has_begun && !is_closed && asked.thinking.enabled != Some(false);
    if !has_begun && !begins {
        return Ok(plain());
    }
    let open = tags.open[0];
    let (opening, last) = match turns {
        None => (format!("{open}\n"), format!("\n{end}\n\n")),
        Some(Turns { begin, text, .. }) => (open.to_owned(), format!("{end}{begin}{text}")),
    };
    let closing = match turns {
        Some(Turns { begin, .. }) if asked.may_call() => format!("{end}{begin}"),
        _ => last.clone(),
    };
    let thought =
        ThoughtGuide { end: end.to_owned(), closing, budget, again: if tags.again { tags.open } else { &[] }, last };
    Ok(Beginning { opening: if begins { opening } else { String::new() }, thought: Some(thought) })
}

impl Asked<'_> {
    /// Whether what follows a thought may be a call, so that the model or the grammar says whether it is text.
    fn may_call(&self) -> bool {
        match self.covers {
            Covers::Nothing => !self.request.callable().is_empty(),
            Covers::Format => false,
            Covers::Calls | Covers::CallsOrFormat => true,
        }
    }
}

/// The tags around this answer's thoughts and what ends one; `None` where it has none.
fn thought_tags(asked: &Asked<'_>) -> Option<(&'static ReasoningTags, &'static str)> {
    let tags = asked.dialect.reasoning.as_ref()?;
    // As far as the template and this prompt tell.
    let thinks = asked.prompt.starts == Phase::Reasoning || asked.template_thinks;
    let end = match asked.dialect.turns {
        Some(turns) => turns.end,
        None => tags.close.first()?,
    };
    thinks.then_some((tags, end))
}

/// What makes an answer without a thought text, where it must be and nothing else says so.
fn text_opening(turns: Option<Turns>, asked: &Asked<'_>) -> String {
    let must_be_text = asked.covers == Covers::Format || asked.thinking.enabled == Some(false);
    match turns {
        Some(turns) if must_be_text && !asked.prompt.begins_text && !asked.may_call() => turns.text.to_owned(),
        _ => String::new(),
    }
}

/// Refuses settings of thoughts that a model without any cannot honour.
fn refuse_thinking(thinking: &Thinking) -> Result<(), Error> {
    let field = match (thinking.enabled, thinking.effort.as_deref(), thinking.budget) {
        (Some(true), ..) => Field::Thinking,
        (_, Some(effort), _) if effort != "none" => Field::ThinkingEffort,
        (_, _, Some(1..)) => Field::ThinkingBudget,
        _ => return Ok(()),
    };
    let message =
        "this model does not think, or not so that mettle can tell its thoughts from its answer; leave this out";
    Err(Error::Request { field, message: message.to_owned() })
}
