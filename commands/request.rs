//! The chat request that flags ask for. A mistake is told with the flag that it is in.

use std::path::Path;

use mettle::{
    chat::{Format, Message, Request, Role, Sampling, Thinking, Tool, ToolChoice},
    protocol::{Notes, openai},
};
use serde_json::Value;

use crate::{
    args::{OutputArgs, Run, ThinkingArgs},
    error::Failure,
};

/// The request of `mettle run`, with the system message at most: the prompts follow.
///
/// # Errors
/// A file cannot be read, or is not what its flag takes.
pub fn of(arguments: &Run) -> Result<Request, Failure> {
    let system = arguments.system.iter().map(|text| Message::new(Role::System, text.clone()));
    let tools = tools(&arguments.output)?;
    Ok(Request {
        sampling: Sampling {
            temperature: arguments.temperature,
            top_p: arguments.top_p,
            seed: arguments.seed,
            ..Sampling::default()
        },
        max_tokens: arguments.max_tokens.map(|tokens| tokens as usize),
        tool_use: tool_use(arguments.output.tool_choice.as_deref(), &tools)?,
        tools,
        format: format(&arguments.output)?,
        thinking: thinking(&arguments.thinking),
        ..Request::new(system.collect())
    })
}

/// How much to reason.
pub fn thinking(arguments: &ThinkingArgs) -> Thinking {
    let budget = arguments.thinking_budget.map(|tokens| tokens as usize);
    let mut thinking = Thinking { budget, ..Thinking::default() };
    match arguments.think.as_deref() {
        Some("on") => thinking.enabled = Some(true),
        Some("off") => thinking.enabled = Some(false),
        effort => thinking.effort = effort.map(str::to_owned),
    }
    // No effort and a budget of no tokens both say: do not reason.
    if budget == Some(0) || thinking.effort.as_deref() == Some("none") {
        thinking.enabled = thinking.enabled.or(Some(false));
    }
    thinking
}

fn tools(arguments: &OutputArgs) -> Result<Vec<Tool>, Failure> {
    let Some(file) = &arguments.tools else { return Ok(Vec::new()) };
    let wrong = |problem: &str| Failure::new(format!("--tools: {}: {problem}", file.display()));
    openai::tools::list(read_json("--tools", file)?, &Notes::new(true)).map_err(|refusal| match refusal.field {
        Some(field) if !refusal.message.starts_with(&field) => wrong(&format!("{field}: {}", refusal.message)),
        _ => wrong(&refusal.message),
    })
}

fn tool_use(choice: Option<&str>, tools: &[Tool]) -> Result<ToolChoice, Failure> {
    let wrong = |problem: String| Err(Failure::new(format!("--tool-choice: {problem}")));
    let chosen = match choice {
        None | Some("auto") => return Ok(ToolChoice::Auto),
        Some("none") => return Ok(ToolChoice::None),
        Some("required") => ToolChoice::Required,
        Some(name) => ToolChoice::Named(name.to_owned()),
    };
    if tools.is_empty() {
        return wrong("a call is required, but the file of --tools has no tool".to_owned());
    }
    match &chosen {
        ToolChoice::Named(name) if !tools.iter().any(|tool| tool.name == *name) => {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            wrong(format!("there is no tool {name:?}; there are auto, none, required, {}", names.join(", ")))
        }
        _ => Ok(chosen),
    }
}

/// What the answer's text must be. Clap lets one of the flags by at most.
fn format(arguments: &OutputArgs) -> Result<Format, Failure> {
    let OutputArgs { json, schema, regex, grammar, .. } = arguments;
    if *json {
        return Ok(Format::JsonObject);
    }
    if let Some(file) = schema {
        return match read_json("--schema", file)? {
            schema @ (Value::Object(_) | Value::Bool(true)) => Ok(Format::JsonSchema(schema)),
            _ => Err(Failure::new(format!("--schema: {} holds no JSON Schema, which is an object", file.display()))),
        };
    }
    if let Some(regex) = regex {
        return Ok(Format::Regex(regex.clone()));
    }
    let Some(file) = grammar else { return Ok(Format::Text) };
    let text = read("--grammar", file)?;
    // EBNF defines its rules by `::=`, Lark by a colon.
    Ok(if text.contains("::=") { Format::Ebnf(text) } else { Format::Lark(text) })
}

fn read(flag: &str, file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::new(format!("{flag}: {} cannot be read: {error}", file.display())))
}

fn read_json(flag: &str, file: &Path) -> Result<Value, Failure> {
    serde_json::from_str(&read(flag, file)?)
        .map_err(|error| Failure::new(format!("{flag}: {} is not JSON: {error}", file.display())))
}
