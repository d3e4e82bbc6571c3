//! Grammars of calls: of each tool as its schema has it, in the dialect's own syntax.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::grammar::{Grammars, Key};
use crate::{
    chat::{
        Dialect, Error, Field, ParallelCalls, Request, Tool, ToolChoice,
        dialect::ToolFormat,
        output::{grammar::Rules, tools},
    },
    schema,
};

/// The most calls of one answer that must call. A weak model would go on calling.
const CALLS: usize = 8;

/// The calls that an answer may make.
pub(super) struct Calls<'a> {
    dialect: &'static Dialect,
    grammars: &'a Grammars,
    tools: Vec<&'a Tool>,
    /// Whether an answer may call more than once.
    parallel: bool,
    format: &'static ToolFormat,
}

impl<'a> Calls<'a> {
    /// The calls that a request allows.
    ///
    /// # Errors
    /// The dialect has no calls.
    pub(super) fn new(
        dialect: &'static Dialect,
        grammars: &'a Grammars,
        request: &'a Request,
    ) -> Result<Calls<'a>, Error> {
        let is_allowed = |tool: &&Tool| match &request.tool_use {
            ToolChoice::Named(name) => tool.name == *name,
            _ => true,
        };
        let tools = request.callable().iter().filter(is_allowed).collect();
        let Some(format) = dialect.tools.first().copied() else {
            let message = format!("the model's dialect ({}) has no way to call tools", dialect.name);
            return Err(wrong(message));
        };
        Ok(Calls { dialect, grammars, tools, parallel: request.parallel() != ParallelCalls::Forbidden, format })
    }

    /// What a grammar of this kind of these calls is remembered by.
    pub(super) fn key(&self, kind: &'static str) -> Key {
        let mut source = self.parallel.to_string();
        for tool in &self.tools {
            write!(source, "\n{} {}", tool.name, tool.parameters).expect("writing to a string cannot fail");
        }
        Key::new(kind, source)
    }

    /// Lark whose `start` is one call or, where the request allows it, several.
    pub(super) fn required(&self) -> Result<String, Error> {
        let special = |name: &str| self.grammars.tokenizer().special_id(name);
        let mut rules = Rules::new(&special);
        let call = self.each(&mut rules)?;
        let envelope = &self.format.envelope;
        let more = if self.parallel {
            format!(" ({} call){{0,{}}}", rules.literal(envelope.between), CALLS - 1)
        } else {
            String::new()
        };
        let open = rules.literal(envelope.open);
        let close = rules.literal(envelope.close);
        Ok(format!("start: {open} call{more} {close}\ncall: {}\n{}", call.join(" | "), rules.text()))
    }

    /// Lark whose `start` is any text, and calls in it only as the tools' schemas allow them.
    pub(super) fn among_text(&self) -> Result<String, Error> {
        let unmarked = || {
            wrong(format!(
                "this model calls tools without a mark that would begin a call, so strict cannot be held to beside free \
                 text; require a call, or let no tool be strict (dialect {})",
                self.dialect.name
            ))
        };
        let tag = self.format.opens.first().ok_or_else(unmarked)?;
        let special = |name: &str| self.grammars.tokenizer().special_id(name);
        let mut rules = Rules::new(&special);
        let before = rules.text_until(tag);
        let rest = rules.text_without(tag);
        rules.leave_out(tag);
        let envelope = &self.format.envelope;
        let open = rules.literal(envelope.open);
        let call = self.each(&mut rules)?;
        if !rules.left_out() {
            return Err(unmarked());
        }
        let between = rules.literal(envelope.between);
        let close = rules.literal(envelope.close);
        // Within an envelope calls follow each other; without one, each has its own tag, and text may stand between
        // them.
        let more = if envelope.open.is_empty() { String::new() } else { format!("({between} call)*") };
        let times = if self.parallel { "*" } else { "?" };
        Ok(format!(
            "start: ({before} {open} call {more} {close}){times} {rest}?\ncall: {}\n{}",
            call.join(" | "),
            rules.text()
        ))
    }

    /// The rules of a call of each tool.
    ///
    /// # Errors
    /// A schema that JSON's grammar cannot enforce, or the format's notation.
    fn each(&self, rules: &mut Rules<'_>) -> Result<Vec<String>, Error> {
        let call = |tool: &&Tool| {
            let tool = with_object(tool)?;
            self.grammars.check(&tool.parameters).map_err(|error| of_tool(error, &tool))?;
            let call = tools::grammar(self.format, rules, &tool);
            match rules.refused() {
                Some(why) => Err(of_tool(wrong(why.to_owned()), &tool)),
                None => Ok(call),
            }
        };
        self.tools.iter().map(call).collect()
    }
}

/// The tool whose schema says that arguments are an object, and that there are none where it says nothing.
fn with_object(tool: &Tool) -> Result<Tool, Error> {
    let mut tool = Tool { parameters: schema::simplified(&tool.parameters), ..tool.clone() };
    let is_empty = tool.parameters.as_object().is_none_or(Map::is_empty);
    if is_empty {
        tool.parameters = json!({"type": "object", "properties": {}, "additionalProperties": false});
    }
    match tool.parameters.get("type") {
        None => tool.parameters["type"] = json!("object"),
        Some(own) if own == "object" => {}
        Some(Value::Array(types)) if types.iter().any(|own| own == "object") => {
            tool.parameters["type"] = json!("object");
        }
        Some(_) => {
            let error = wrong("arguments are an object; set \"type\" to \"object\"".to_owned());
            return Err(of_tool(error, &tool));
        }
    }
    Ok(tool)
}

fn wrong(message: String) -> Error {
    Error::Request { field: Field::Tools, message }
}

/// The same error, of this tool.
fn of_tool(error: Error, tool: &Tool) -> Error {
    match error {
        Error::Request { message, .. } => {
            wrong(format!("the parameters of {:?} cannot be held to: {message}", tool.name))
        }
        other => other,
    }
}
