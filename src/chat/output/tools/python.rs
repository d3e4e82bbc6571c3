//! Calls as a list of Python expressions.
//!
//! `[f(x="a", n=1), g()]`

use serde_json::{Value, json};

use super::{Arguments, NAME, NotACall, Notation, Parameter, Region, Rules, in_name};
use crate::{
    chat::{
        Tool, ToolCall,
        dialect::{Python, PythonArguments},
        output::{input::Input, json},
        python::{self, Dumps},
    },
    schema::Types,
};

impl Python {
    /// Reads a list of calls, from its bracket on, and what closes it.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        region.expect("[").await?;
        loop {
            call(region, first_is_an_object).await?;
            if !region.goes_on("]").await? {
                break;
            }
        }
        region.close(self.close).await;
        Ok(())
    }
}

/// Reads one call, from its name on: arguments one by one, or all of them as one object, unless `is_first` says that
/// an object is the first of them.
pub(super) async fn call(region: &Region, is_first: fn(&Arguments) -> bool) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    let name = input.word(in_name, NAME).await.ok_or(NotACall)?;
    if !input.eat("(").await {
        return Err(NotACall);
    }
    let arguments = region.call(&name)?;
    input.skip_space().await;
    if !input.is_next("{").await || is_first(&arguments) {
        return each(region, arguments).await;
    }
    arguments.object(&[]).await?;
    region.expect(")").await
}

/// Arguments one by one, and the parenthesis that closes them.
pub(super) async fn each(region: &Region, mut arguments: Arguments) -> Result<(), NotACall> {
    let input = &region.input;
    let mut position = 0;
    while !input.eat(")").await {
        argument(input, &mut arguments, position).await?;
        position += 1;
        input.skip_space().await;
        if !input.eat(",").await && !input.is_next(")").await {
            return Err(NotACall);
        }
        input.skip_space().await;
    }
    arguments.end();
    Ok(())
}

/// Whether a single object between the parentheses is the first argument, and not all of them.
fn first_is_an_object(arguments: &Arguments) -> bool {
    let shape = arguments.shape();
    shape.members().first().is_some_and(|name| shape.member(name).types().is_none_or(|types| types.object))
}

/// `name=value`, or the value alone, which takes its name from its place.
async fn argument(input: &Input, arguments: &mut Arguments, position: usize) -> Result<(), NotACall> {
    let by_place = arguments.shape().members().into_iter().nth(position);
    let first = input.peek().await.ok_or(NotACall)?;
    if !first.is_alphabetic() && first != '_' {
        return arguments.argument(&by_place.ok_or(NotACall)?).await;
    }
    let word = input.word(|char| char.is_alphanumeric() || "_-".contains(char), NAME).await.ok_or(NotACall)?;
    input.skip_space().await;
    if input.eat("=").await {
        return arguments.argument(&word).await;
    }
    let value = json::literal(&word).and_then(json::read).ok_or(NotACall)?;
    arguments.member(&by_place.ok_or(NotACall)?, &value);
    Ok(())
}

impl PythonArguments {
    /// One call.
    pub(super) fn render(self, call: &ToolCall) -> String {
        let argument = |(name, value): (&String, &Value)| format!("{name}={}", self.text(value));
        let arguments: Vec<String> = call.arguments.iter().map(argument).collect();
        format!("{}({})", call.name, arguments.join(", "))
    }

    /// As LFM 2's template has it, but for quotes, backslashes and line ends in strings, which that does not escape and
    /// nobody could read again.
    fn text(self, value: &Value) -> String {
        match (self, value) {
            (PythonArguments::Words, Value::Null | Value::Bool(_)) => python::repr(value),
            (PythonArguments::Words | PythonArguments::Json, other) => python::dumps(other),
            (PythonArguments::ReprAndJson, Value::Object(_)) => Dumps::default().json(value),
            (PythonArguments::Repr | PythonArguments::ReprAndJson, other) => python::repr(other),
        }
    }

    /// One call of this tool: its parameters by name, in the schema's order.
    pub(super) fn grammar(self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let notation = match self {
            PythonArguments::Words | PythonArguments::Json => return in_json(rules, tool),
            PythonArguments::Repr => Notation::PYTHON,
            PythonArguments::ReprAndJson => Notation { json_objects: true, ..Notation::PYTHON },
        };
        let open = rules.literal(&format!("{}(", tool.name));
        let arguments = notation.arguments_with(rules, tool, &|name| format!("{name}="));
        format!("{open} {arguments} {}", rules.literal(")"))
    }
}

/// A call whose arguments are JSON.
fn in_json(rules: &mut Rules<'_>, tool: &Tool) -> String {
    let parameters = rules.parameters(tool);
    // What may follow once an argument was written, and what may come before any was.
    let mut after = rules.literal(")");
    let mut before = rules.literal(")");
    for parameter in parameters.iter().rev() {
        let name = rules.literal(&format!("{}=", parameter.name));
        let value = expressions(rules, parameter);
        let argument = rules.rule(&format!("{name} {value}"));
        let comma = rules.literal(", ");
        let mut first = format!("{argument} {after}");
        let mut next = format!("{comma} {argument} {after}");
        if !parameter.required {
            first += &format!(" | {before}");
            next += &format!(" | {after}");
        }
        before = rules.rule(&first);
        after = rules.rule(&next);
    }
    format!("{} {before}", rules.literal(&format!("{}(", tool.name)))
}

/// JSON, and Python's literals where the schema allows them.
fn expressions(rules: &mut Rules<'_>, parameter: &Parameter<'_>) -> String {
    let schema = &parameter.schema;
    let closed = schema.get("enum").is_some() || schema.get("const").is_some();
    let types = schema.types();
    let allows = |value: Value| !closed && types.is_none_or(|types: Types| types.allow(&value));
    let mut choices = vec![rules.json(&schema.standalone())];
    for (value, word) in [(json!(true), "True"), (json!(false), "False"), (json!(null), "None")] {
        if allows(value) {
            choices.push(rules.literal(word));
        }
    }
    rules.rule(&choices.join(" | "))
}
