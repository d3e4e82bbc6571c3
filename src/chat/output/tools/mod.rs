//! The syntaxes of tool calls, a file each: reading calls as they come, writing them into a conversation's past, and the
//! grammar that makes a model write one. Which model has which is data, see [`crate::chat::dialect`].

use std::{future::Future, pin::Pin};

use super::{
    calls::{Arguments, End, NotACall, Region},
    grammar::{Notation, Parameter, Quotes, Rules, with_type},
    json,
};
use crate::chat::{
    Tool,
    dialect::{Envelope, Syntax, ToolFormat},
    request::ToolCall,
};

mod actions;
mod braces;
mod calling_tool;
mod deepseek;
mod elements;
mod function_tag;
mod functions;
mod harmony;
mod keyed;
mod kimi;
mod mistral;
mod object;
mod object_or_code;
mod pairs;
mod python;
mod recipient;
mod solar;
mod statement;
mod tags;
mod typed_xml;

pub(in crate::chat::output) use harmony::message;

/// A reader of calls. It begins calls in its region, and ends when what belongs to it has been read.
pub(in crate::chat::output) type Parsing = Pin<Box<dyn Future<Output = Result<(), NotACall>> + Send>>;

/// Bytes of a name.
const NAME: usize = 256;

/// Values within values.
const DEPTH: usize = 100;

/// Whether a tool's name may have this character where the format does not say where the name ends.
fn in_name(char: char) -> bool {
    char.is_alphanumeric() || "_.-/:".contains(char)
}

/// Reads what follows one of a format's marks, or, from its first character on, a call without a mark.
pub(in crate::chat::output) fn read(format: &'static ToolFormat, region: Region) -> Parsing {
    Box::pin(async move {
        match &format.syntax {
            Syntax::Object(object) => object.read(&region).await,
            Syntax::ObjectMessage(_) => object::call(&region).await,
            Syntax::Keyed(close) => keyed::read(&region, close).await,
            Syntax::ObjectOrCode(ends) => object_or_code::read(&region, ends).await,
            Syntax::Mistral(_) => mistral::read(&region).await,
            Syntax::FunctionTag => function_tag::read(&region).await,
            Syntax::Deepseek(marks) => marks.read(&region).await,
            Syntax::Kimi => kimi::read(&region).await,
            Syntax::Solar => solar::read(&region).await,
            Syntax::Harmony => harmony::read(&region).await,
            Syntax::Recipient(recipient) => recipient.read(&region).await,
            Syntax::Pairs(pairs) => pairs::read(pairs, &region).await,
            Syntax::Tags(tags) => tags.read(&region).await,
            Syntax::Functions(functions) => functions.read(&region).await,
            Syntax::Braces(braces) => braces.read(&region).await,
            Syntax::Elements(token) => elements::Elements(token).read(&region).await,
            Syntax::TypedXml => typed_xml::read(&region).await,
            Syntax::Python(python) => python.read(&region).await,
            Syntax::Statements(statements) => statements.read(&region).await,
            Syntax::Actions => actions::read(&region).await,
            Syntax::CallingTool => calling_tool::read(&region).await,
        }
    })
}

/// The text of one call, number `index` of its turn, without the envelope.
pub(in crate::chat) fn render(format: &ToolFormat, call: &ToolCall, index: usize) -> String {
    match &format.syntax {
        Syntax::Object(object) => object.render(call, index),
        Syntax::ObjectMessage(message) => message.render(call),
        Syntax::Keyed(_) => keyed::render(call),
        Syntax::ObjectOrCode(_) => object_or_code::WRITTEN.render(call, index),
        Syntax::Mistral(generation) => generation.render(call),
        Syntax::FunctionTag => function_tag::render(call),
        Syntax::Deepseek(marks) => marks.render(call),
        Syntax::Kimi => kimi::render(call, index),
        Syntax::Solar => solar::render(call),
        Syntax::Harmony => harmony::render(call),
        Syntax::Recipient(recipient) => recipient.render(call, index),
        Syntax::Pairs(pairs) => pairs[0].render(call),
        Syntax::Tags(tags) => tags.render(call),
        Syntax::Functions(functions) => functions.render(call),
        Syntax::Braces(braces) => braces.render(call),
        Syntax::Elements(token) => elements::Elements(token).render(call),
        Syntax::TypedXml => typed_xml::render(call, index),
        Syntax::Python(python) => python.arguments.render(call),
        Syntax::Statements(statements) => statements.arguments().render(call),
        Syntax::Actions => actions::ARGUMENTS.render(call),
        Syntax::CallingTool => calling_tool::render(call),
    }
}

/// [`render`] as an expression of llguidance's Lark, for any arguments that the tool's schema allows.
pub(in crate::chat) fn grammar(format: &ToolFormat, rules: &mut Rules<'_>, tool: &Tool) -> String {
    match &format.syntax {
        Syntax::Object(object) => object.grammar(rules, tool),
        Syntax::ObjectMessage(message) => message.grammar(rules, tool),
        Syntax::Keyed(_) => keyed::grammar(rules, tool),
        Syntax::ObjectOrCode(_) => object_or_code::WRITTEN.grammar(rules, tool),
        Syntax::Mistral(generation) => generation.grammar(rules, tool),
        Syntax::FunctionTag => function_tag::grammar(rules, tool),
        Syntax::Deepseek(marks) => marks.grammar(rules, tool),
        Syntax::Kimi => kimi::grammar(rules, tool),
        Syntax::Solar => solar::grammar(rules, tool),
        Syntax::Harmony => harmony::grammar(rules, tool),
        Syntax::Recipient(recipient) => recipient.grammar(rules, tool),
        Syntax::Pairs(pairs) => pairs[0].grammar(rules, tool),
        Syntax::Tags(tags) => tags.grammar(rules, tool),
        Syntax::Functions(functions) => functions.grammar(rules, tool),
        Syntax::Braces(braces) => braces.grammar(rules, tool),
        Syntax::Elements(token) => elements::Elements(token).grammar(rules, tool),
        Syntax::TypedXml => typed_xml::grammar(rules, tool),
        Syntax::Python(python) => python.arguments.grammar(rules, tool),
        Syntax::Statements(statements) => statements.arguments().grammar(rules, tool),
        Syntax::Actions => actions::ARGUMENTS.grammar(rules, tool),
        Syntax::CallingTool => calling_tool::grammar(rules, tool),
    }
}

/// Calls of one turn, as the format writes them.
pub fn render_turn(format: &ToolFormat, calls: &[ToolCall]) -> String {
    let Envelope { open, between, close } = format.envelope;
    let calls: Vec<String> = calls.iter().enumerate().map(|(index, call)| render(format, call, index)).collect();
    format!("{open}{}{close}", calls.join(between))
}

#[cfg(test)]
mod tests;
