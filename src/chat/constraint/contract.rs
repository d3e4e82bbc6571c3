//! What a request guarantees about its answer, as a guide for the engine: a format, a call that must be made, arguments
//! that must satisfy their schema, the most tokens to think.

use serde_json::json;

use super::grammar::{self, AnswerGuide, Grammar, Thinking};
use crate::chat::{
    Error, Field, Format, Model, ParallelCalls, Phase, Prompt, Request, Tool, ToolChoice,
    dialect::{ToolFormat, Turns},
    output::{grammar::Rules, tools},
};
use crate::engine::Guide;

/// The most calls of one answer that must call. A weak model would go on calling.
const CALLS: usize = 8;

/// Nothing, or what guides each of a request's answers.
pub(in crate::chat) struct Contract {
    /// What the answer begins with, whatever the model says.
    opening: String,
    thinking: Option<Thinking>,
    grammar: Option<Grammar>,
}

/// The contract of a request.
///
/// # Errors
/// A format or a schema that cannot be held to, two that exclude each other, a call where the dialect has none.
pub(in crate::chat) fn of(request: &Request, prompt: &Prompt, model: &Model) -> Result<Contract, Error> {
    let source = source(request, model)?;
    let grammar = match &source {
        Source::None => None,
        Source::Format => model.grammars().compile(&request.format)?,
        Source::Calls(lark) => Some(model.grammars().lark(lark).map_err(in_tools)?),
        Source::Both(lark) => Some(model.grammars().lark(lark)?),
    };
    let (opening, thinking) = thinking(request, prompt, model, &source)?;
    Ok(Contract { opening, thinking, grammar })
}

impl Contract {
    /// For one answer; `None` where it is free.
    pub(in crate::chat) fn guide(&self, model: &Model) -> Result<Option<Box<dyn Guide>>, Error> {
        let Contract { opening, thinking, grammar } = self;
        if opening.is_empty() && thinking.is_none() && grammar.is_none() {
            return Ok(None);
        }
        let matcher = grammar.as_ref().map(Grammar::matcher);
        let guide = AnswerGuide::new(model.tokenizer(), model.stop_tokens(), opening, thinking.as_ref(), matcher)?;
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
    match (&request.tool_use, &request.format) {
        (ToolChoice::Required | ToolChoice::Named(_), format) if *format != Format::Text => {
            let message = "an answer that must call a tool has no text that a format could be held to; \
                let the model choose whether to call, or ask for no format";
            Err(Error::Request { field: Field::Format, message: message.to_owned() })
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
            let message = model.dialect().turns.map_or(String::new(), |turns| {
                let special = |name: &str| model.tokenizer().special_id(name);
                Rules::new(&special).literal(turns.text)
            });
            Ok(Source::Both(format!("start: calls | {message} answer\nanswer: {answer}\n{calls}")))
        }
    }
}

/// Lark whose `start` is one call of these tools or, where the request allows it, several.
fn calls(tools: &[Tool], request: &Request, model: &Model) -> Result<String, Error> {
    let format = format(model)?;
    let special = |name: &str| model.tokenizer().special_id(name);
    let mut rules = Rules::new(&special);
    let call = each_call(tools, format, &mut rules, model)?;
    let envelope = &format.envelope;
    let more = match request.parallel_calls {
        ParallelCalls::Allowed => format!(" ({} call){{0,{}}}", rules.literal(envelope.between), CALLS - 1),
        ParallelCalls::Forbidden => String::new(),
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
             text; require a call, or let no tool be strict (dialect {})",
            model.dialect().name
        );
        Error::Request { field: Field::Tools, message }
    };
    let mark = format.opens.first().ok_or_else(unheld)?;
    let special = |name: &str| model.tokenizer().special_id(name);
    let mut rules = Rules::new(&special);
    let before = rules.text_until(mark);
    let rest = rules.text_without(mark);
    rules.leave_out(mark);
    let envelope = &format.envelope;
    let open = rules.literal(envelope.open);
    let call = each_call(tools, format, &mut rules, model)?;
    if !rules.left_out() {
        return Err(unheld());
    }
    let (between, close) = (rules.literal(envelope.between), rules.literal(envelope.close));
    // Within an envelope calls follow each other; without one, each has its own mark, and text may stand between them.
    let more = if envelope.open.is_empty() { String::new() } else { format!("({between} call)*") };
    let times = match request.parallel_calls {
        ParallelCalls::Allowed => "*",
        ParallelCalls::Forbidden => "?",
    };
    Ok(format!(
        "start: ({before} {open} call {more} {close}){times} {rest}?\ncall: {}\n{}",
        call.join(" | "),
        rules.text()
    ))
}

/// The rules of a call of each tool.
///
/// # Errors
/// A schema that JSON's grammar cannot hold to, or the format's notation.
fn each_call(tools: &[Tool], format: &ToolFormat, rules: &mut Rules, model: &Model) -> Result<Vec<String>, Error> {
    let call = |tool: &Tool| {
        let tool = &with_object(tool)?;
        model.grammars().compile(&Format::JsonSchema(tool.parameters.clone())).map_err(|error| of_tool(error, tool))?;
        let call = tools::grammar(format, rules, tool);
        match rules.refused() {
            Some(why) => {
                let error = Error::Request { field: Field::Tools, message: why.to_owned() };
                Err(of_tool(error, tool))
            }
            None => Ok(call),
        }
    };
    tools.iter().map(call).collect()
}

/// The tool whose schema says that arguments are an object, and that there are none where it says nothing.
fn with_object(tool: &Tool) -> Result<Tool, Error> {
    let mut tool = tool.clone();
    let is_empty = tool.parameters.as_object().is_none_or(serde_json::Map::is_empty);
    if is_empty {
        tool.parameters = json!({"type": "object", "properties": {}, "additionalProperties": false});
    }
    match tool.parameters.get("type") {
        None => tool.parameters["type"] = json!("object"),
        Some(own) if own == "object" => {}
        Some(_) => {
            let message = "arguments are an object; set \"type\" to \"object\"".to_owned();
            return Err(of_tool(Error::Request { field: Field::Tools, message }, &tool));
        }
    }
    Ok(tool)
}

fn format(model: &Model) -> Result<&'static ToolFormat, Error> {
    let none = || {
        let message = format!("the model's dialect ({}) has no way to call tools", model.dialect().name);
        Error::Request { field: Field::Tools, message }
    };
    model.dialect().tools.first().copied().ok_or_else(none)
}

/// The same error, of this tool.
fn of_tool(error: Error, tool: &Tool) -> Error {
    match error {
        Error::Request { message, .. } => {
            let message = format!("the parameters of {:?} cannot be held to: {message}", tool.name);
            Error::Request { field: Field::Tools, message }
        }
        other => other,
    }
}

/// The same error, of the tools together.
fn in_tools(error: Error) -> Error {
    match error {
        Error::Request { message, .. } => {
            let message = format!("the tools' parameters cannot be held to together: {message}");
            Error::Request { field: Field::Tools, message }
        }
        other => other,
    }
}

/// What the answer begins with, and how its thought is guided: where it ends, so that a grammar holds only behind it,
/// and when it must.
fn thinking(
    request: &Request,
    prompt: &Prompt,
    model: &Model,
    source: &Source,
) -> Result<(String, Option<Thinking>), Error> {
    let turns = model.dialect().turns;
    let tags = model.dialect().reasoning.as_ref().filter(|_| thinks(prompt, model));
    let Some((tags, mark)) = tags.and_then(|tags| Some((tags, turns.map_or(*tags.close.first()?, |turns| turns.end))))
    else {
        return no_thoughts(request).map(|()| (text(request, prompt, model, source), None));
    };
    let begun = prompt.starts == Phase::Reasoning;
    let budget = match request.thinking.enabled {
        // The template has no switch for it: the thought ends at once.
        Some(false) if begun => Some(0),
        _ => request.thinking.budget,
    };
    if matches!(source, Source::None) && budget.is_none() {
        return Ok((text(request, prompt, model, source), None));
    }
    // A model that begins its thoughts itself is made to, so that nobody has to guess whether it will.
    let begins = !begun && !prompt.ends_thought && !prompt.begins_text && request.thinking.enabled != Some(false);
    if !begun && !begins {
        return Ok((text(request, prompt, model, source), None));
    }
    let open = tags.open[0];
    let (opening, last) = match turns {
        None => (format!("{open}\n"), format!("\n{mark}\n\n")),
        Some(Turns { begin, text, .. }) => (open.to_owned(), format!("{mark}{begin}{text}")),
    };
    let closing = match turns {
        Some(Turns { begin, .. }) if may_call(request, source) => format!("{mark}{begin}"),
        _ => last.clone(),
    };
    let opening = if begins { opening } else { String::new() };
    let again = if tags.again { tags.open } else { &[] };
    Ok((opening, Some(Thinking { mark: mark.to_owned(), closing, budget, again, last })))
}

/// Whether what follows a thought may be a call, so that the model or the grammar says whether it is text.
fn may_call(request: &Request, source: &Source) -> bool {
    match source {
        Source::None => !request.callable().is_empty(),
        Source::Format => false,
        Source::Calls(_) | Source::Both(_) => true,
    }
}

/// What makes an answer without a thought text, where it must be and nothing else says so.
fn text(request: &Request, prompt: &Prompt, model: &Model, source: &Source) -> String {
    let is_wanted = matches!(source, Source::Format) || request.thinking.enabled == Some(false);
    match model.dialect().turns {
        Some(turns) if is_wanted && !prompt.begins_text && !may_call(request, source) => turns.text.to_owned(),
        _ => String::new(),
    }
}

/// Whether the model thinks at all, as far as its template and this prompt tell.
fn thinks(prompt: &Prompt, model: &Model) -> bool {
    let marks = model.dialect().reasoning.iter().flat_map(|tags| tags.open.first());
    let mentions = |mark: &&str| model.template().is_some_and(|template| template.mentions(mark));
    prompt.starts == Phase::Reasoning || marks.into_iter().any(mentions)
}

/// Refuses wishes about thoughts that a model without any cannot fulfil.
fn no_thoughts(request: &Request) -> Result<(), Error> {
    let crate::chat::Thinking { enabled, effort, budget } = &request.thinking;
    let wish = match (enabled, effort.as_deref(), budget) {
        (Some(true), ..) => Field::Thinking,
        (_, Some(effort), _) if effort != "none" => Field::ThinkingEffort,
        (_, _, Some(1..)) => Field::ThinkingBudget,
        _ => return Ok(()),
    };
    let message =
        "this model does not think, or not so that mettle can tell its thoughts from its answer; leave this out";
    Err(Error::Request { field: wish, message: message.to_owned() })
}
