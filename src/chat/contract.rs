//! What a request guarantees about its answer, as a guide for the engine: a format, a call that must be made, arguments
//! that must satisfy their schema, the most tokens to think.

use super::{
    Cut, Error, Format, Model, Prompt, Request, Tool, ToolChoice,
    dialect::Tags,
    grammar::{self, AnswerGuide, Grammar, Thinking},
    tools::{self, Rules},
};
use crate::engine::Guide;

/// The most calls of one answer that must call. A weak model would go on calling.
const CALLS: usize = 8;

/// Nothing, or what guides each of a request's answers.
pub(super) struct Contract {
    thinking: Option<Thinking>,
    grammar: Option<Grammar>,
}

/// The contract of a request.
///
/// # Errors
/// A format or a schema that cannot be held to, two that exclude each other, a call where the dialect has none.
pub(super) fn of(request: &Request, prompt: &Prompt, model: &Model) -> Result<Contract, Error> {
    let grammar = match source(request, model)? {
        Source::None => None,
        Source::Format => model.grammars().compile(&request.format)?,
        Source::Calls(lark) => Some(model.grammars().lark(&lark).map_err(in_tools)?),
        Source::Both(lark) => Some(model.grammars().lark(&lark)?),
    };
    let thinking = thinking(request, prompt, model, grammar.is_some())?;
    Ok(Contract { thinking, grammar })
}

impl Contract {
    /// For one answer; `None` where it is free.
    pub(super) fn guide(&self, model: &Model) -> Result<Option<Box<dyn Guide>>, Error> {
        if self.thinking.is_none() && self.grammar.is_none() {
            return Ok(None);
        }
        let matcher = self.grammar.as_ref().map(Grammar::matcher);
        let guide = AnswerGuide::new(model.tokenizer(), model.stop_tokens(), self.thinking.as_ref(), matcher)?;
        Ok(Some(Box::new(guide)))
    }
}

enum Source {
    None,
    Format,
    /// Lark, of calls alone.
    Calls(String),
    /// Lark, of calls or a text of the request's format.
    Both(String),
}

fn source(request: &Request, model: &Model) -> Result<Source, Error> {
    let tools = request.callable();
    let strict = tools.iter().any(|tool| tool.strict);
    match (&request.tool_choice, &request.format) {
        (ToolChoice::Required | ToolChoice::Named(_), format) if *format != Format::Text => {
            let message = "an answer that must call a tool has no text that a format could be held to; \
                send tool_choice \"auto\", or no format";
            Err(Error::Request { field: "response_format", message: message.to_owned() })
        }
        (ToolChoice::Required, _) => Ok(Source::Calls(calls(tools, request, model)?)),
        (ToolChoice::Named(name), _) => {
            let named: Vec<Tool> = tools.iter().filter(|tool| tool.name == *name).cloned().collect();
            Ok(Source::Calls(calls(&named, request, model)?))
        }
        (_, Format::Text) if strict => Ok(Source::Calls(free_or_calls(tools, request, model)?)),
        (_, Format::Text) => Ok(Source::None),
        (_, _) if tools.is_empty() => Ok(Source::Format),
        (_, format) => {
            let calls = calls(tools, request, model)?;
            let answer = grammar::as_lark(format)?;
            let calls = calls.replacen("start:", "calls:", 1);
            Ok(Source::Both(format!("start: calls | answer\nanswer: {answer}\n{calls}")))
        }
    }
}

/// Lark whose `start` is one call of these tools or, where the request allows it, several.
fn calls(tools: &[Tool], request: &Request, model: &Model) -> Result<String, Error> {
    let format = format(model)?;
    let special = |name: &str| model.tokenizer().special_id(name);
    let mut rules = Rules::new(&special);
    let call: Vec<String> = tools.iter().map(|tool| (format.grammar)(&mut rules, tool)).collect();
    let envelope = &format.envelope;
    let more = match request.parallel_tool_calls {
        true => format!(" ({} call){{0,{}}}", rules.literal(envelope.between), CALLS - 1),
        false => String::new(),
    };
    let (open, close) = (rules.literal(envelope.open), rules.literal(envelope.close));
    Ok(format!("start: {open} call{more} {close}\ncall: {}\n{}", call.join(" | "), rules.text()))
}

/// Lark whose `start` is any text, and calls in it only as the tools' schemas allow them.
fn free_or_calls(tools: &[Tool], request: &Request, model: &Model) -> Result<String, Error> {
    let format = format(model)?;
    let unheld = || {
        let message = format!(
            "this model calls tools without a mark that would begin a call, so strict cannot be held to beside free \
             text; send tool_choice \"required\", or strict false (dialect {})",
            model.dialect().name
        );
        Error::Request { field: "tools", message }
    };
    let mark = format.opens.first().ok_or_else(unheld)?;
    let special = |name: &str| model.tokenizer().special_id(name);
    let mut rules = Rules::new(&special);
    let before = rules.text_until(mark);
    let rest = rules.text_without(mark);
    rules.leave_out(mark);
    let envelope = &format.envelope;
    let open = rules.literal(envelope.open);
    let call: Vec<String> = tools.iter().map(|tool| (format.grammar)(&mut rules, tool)).collect();
    if !rules.left_out() {
        return Err(unheld());
    }
    let (between, close) = (rules.literal(envelope.between), rules.literal(envelope.close));
    // Within an envelope calls follow each other; without one, each has its own mark, and text may stand between them.
    let more = if envelope.open.is_empty() { String::new() } else { format!("({between} call)*") };
    let times = if request.parallel_tool_calls { "*" } else { "?" };
    Ok(format!(
        "start: ({before} {open} call {more} {close}){times} {rest}?\ncall: {}\n{}",
        call.join(" | "),
        rules.text()
    ))
}

fn format(model: &Model) -> Result<&'static tools::Format, Error> {
    let none = || {
        let message = format!("the model's dialect ({}) has no way to call tools", model.dialect().name);
        Error::Request { field: "tools", message }
    };
    model.dialect().tools.first().copied().ok_or_else(none)
}

/// The same error, of the tools.
fn in_tools(error: Error) -> Error {
    match error {
        Error::Request { message, .. } => {
            let message = format!("a tool's parameters cannot be held to: {message}");
            Error::Request { field: "tools", message }
        }
        other => other,
    }
}

/// How the answer's thought is guided: where it ends, so that a grammar holds only behind it, and when it must.
fn thinking(request: &Request, prompt: &Prompt, model: &Model, held: bool) -> Result<Option<Thinking>, Error> {
    let Some(Tags { open, close, .. }) = model.dialect().reasoning.as_ref().filter(|_| thinks(prompt, model)) else {
        return no_thoughts(request).map(|()| None);
    };
    let begun = prompt.starts == Cut::Reasoning;
    let budget = match request.thinking.enabled {
        // The template has no switch for it: the thought ends at once.
        Some(false) if begun => Some(0),
        _ => request.thinking.budget,
    };
    if !held && budget.is_none() {
        return Ok(None);
    }
    // A model that begins its thoughts itself is made to, so that nobody has to guess whether it will.
    let begins = !begun && !prompt.ends_thought && request.thinking.enabled != Some(false);
    if !begun && !begins {
        return Ok(None);
    }
    let mark = close.first().copied().unwrap_or_default().to_owned();
    let opening = if begins { format!("{}\n", open[0]) } else { String::new() };
    let closing = format!("\n{mark}\n\n");
    Ok(Some(Thinking { opening, mark, closing, budget }))
}

/// Whether the model thinks at all, as far as its template and this prompt tell.
fn thinks(prompt: &Prompt, model: &Model) -> bool {
    let marks = model.dialect().reasoning.iter().flat_map(|tags| tags.open.first());
    let mentions = |mark: &&str| model.template().is_some_and(|template| template.mentions(mark));
    prompt.starts == Cut::Reasoning || marks.into_iter().any(mentions)
}

/// Refuses wishes about thoughts that a model without any cannot fulfil.
fn no_thoughts(request: &Request) -> Result<(), Error> {
    let super::Thinking { enabled, effort, budget } = &request.thinking;
    let wish = match (enabled, effort.as_deref(), budget) {
        (Some(true), ..) => "enable_thinking",
        (_, Some(effort), _) if effort != "none" => "reasoning_effort",
        (_, _, Some(1..)) => "thinking_budget",
        _ => return Ok(()),
    };
    let message =
        "this model does not think, or not so that mettle can tell its thoughts from its answer; leave this out";
    Err(Error::Request { field: wish, message: message.to_owned() })
}
