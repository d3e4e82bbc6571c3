//! The tools of a request, and what it says about calling them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    chat::{ParallelCalls, Tool, ToolChoice, ToolField},
    protocol::{Fields, Notes, Refusal, expected},
};

/// Tools of a request, and characters of a tool's name.
const TOOLS: usize = 512;
const NAME: usize = 128;

const CHOICES: &str = "\"none\", \"auto\", \"required\" or {\"type\": \"function\", \"function\": {\"name\": …}}";

/// `tools`, `tool_choice` and `parallel_tool_calls`.
pub(super) fn from_wire(fields: &mut Fields) -> Result<(Vec<Tool>, ToolChoice, ParallelCalls), Refusal> {
    let tools = fields.take("tools").map_or(Ok(Vec::new()), |tools| list(tools, fields.notes()))?;
    let choice = fields.take("tool_choice");
    let (tools, choice) = choose(choice, tools, fields.notes())?;
    let parallel = match fields.bool("parallel_tool_calls")? {
        Some(false) => ParallelCalls::Forbidden,
        Some(true) => ParallelCalls::Allowed,
        None => ParallelCalls::Distinct,
    };
    Ok((tools, choice, parallel))
}

/// Reads a list of tools, each with a name of its own.
///
/// # Errors
/// [`Kind::Invalid`](crate::protocol::Kind::Invalid), with the path from `tools` on.
pub fn list(value: Value, notes: &Notes) -> Result<Vec<Tool>, Refusal> {
    let tools = match value {
        Value::Array(tools) if tools.len() <= TOOLS => tools,
        Value::Array(tools) => {
            return Err(Refusal::field("tools", format!("expected at most {TOOLS} tools, got {}", tools.len())));
        }
        other => return Err(expected("tools", "a list of tools", &other)),
    };
    let numbered = tools.into_iter().enumerate();
    let tools: Vec<Tool> =
        numbered.map(|(index, tool)| one(&format!("tools[{index}]"), tool, notes)).collect::<Result<_, _>>()?;
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        if !names.insert(tool.name.as_str()) {
            let problem = format!("there is another tool named {:?}; every tool needs a name of its own", tool.name);
            return Err(Refusal::field(format!("tools[{index}].function.name"), problem));
        }
    }
    Ok(tools)
}

fn one(path: &str, value: Value, notes: &Notes) -> Result<Tool, Refusal> {
    let mut fields = Fields::of(path, value, notes)?;
    match fields.string("type")?.as_deref() {
        Some("function") => {}
        Some(other) => {
            let problem = format!("only tools of type \"function\" are called here, got {other:?}");
            return Err(Refusal::field(fields.path("type"), problem));
        }
        None => return Err(Refusal::field(fields.path("type"), "missing; send \"function\"")),
    }
    let function = fields.object("function")?;
    let missing = || Refusal::field(fields.path("function"), "missing; expected an object with the tool's name");
    let mut function = function.ok_or_else(missing)?;
    fields.ignore("cache_control", "every prompt's beginning is remembered as it is");
    fields.finish()?;
    let given = function.names().filter_map(tool_field).collect();
    let name = function.string("name")?.filter(|name| is_name(name));
    let what = format!("a name of 1 to {NAME} letters, digits and the signs _ - . : /");
    let name = name.ok_or_else(|| Refusal::field(function.path("name"), format!("expected {what}")))?;
    let description = function.string("description")?;
    let strict = function.bool("strict")?.unwrap_or(false);
    let is_schema = |value: &Value| value.is_object().then(|| value.clone());
    let parameters = function.read("parameters", "an object, which is a JSON Schema", is_schema)?;
    if let Some(schema) = &parameters {
        notes.unread(&function.path("parameters"), schema);
    }
    function.finish()?;
    Ok(Tool { name, description, parameters: parameters.unwrap_or_else(|| json!({})), strict, given })
}

fn tool_field(name: &str) -> Option<ToolField> {
    match name {
        "name" => Some(ToolField::Name),
        "description" => Some(ToolField::Description),
        "parameters" => Some(ToolField::Parameters),
        "strict" => Some(ToolField::Strict),
        _ => None,
    }
}

fn is_name(name: &str) -> bool {
    let holds = |char: char| char.is_alphanumeric() || "_-.:/".contains(char);
    !name.is_empty() && name.len() <= NAME && name.chars().all(holds)
}

/// The choice, and the tools that it leaves.
fn choose(choice: Option<Value>, tools: Vec<Tool>, notes: &Notes) -> Result<(Vec<Tool>, ToolChoice), Refusal> {
    let (tools, choice) = match choice {
        None => (tools, ToolChoice::Auto),
        Some(Value::String(word)) => {
            let choice = match word.as_str() {
                "none" => ToolChoice::None,
                "auto" => ToolChoice::Auto,
                "required" | "any" => ToolChoice::Required,
                _ => return Err(expected("tool_choice", CHOICES, &Value::String(word))),
            };
            (tools, choice)
        }
        Some(value @ Value::Object(_)) => {
            let mut fields = Fields::of("tool_choice", value, notes)?;
            match fields.string("type")?.as_deref() {
                Some("function") => {
                    let name = named(&mut fields, &tools)?;
                    fields.finish()?;
                    (tools, ToolChoice::Named(name))
                }
                Some("allowed_tools") => allowed(fields, tools)?,
                _ => return Err(Refusal::field("tool_choice.type", "expected \"function\" or \"allowed_tools\"")),
            }
        }
        Some(other) => return Err(expected("tool_choice", CHOICES, &other)),
    };
    if tools.is_empty() && !matches!(choice, ToolChoice::Auto | ToolChoice::None) {
        return Err(Refusal::field("tool_choice", "a call is required, but there are no tools; send tools as well"));
    }
    Ok((tools, choice))
}

/// `"function": {"name": …}`, one of the request's tools.
fn named(fields: &mut Fields, tools: &[Tool]) -> Result<String, Refusal> {
    let function = fields.object("function")?;
    let mut function =
        function.ok_or_else(|| Refusal::field(fields.path("function"), "missing; expected {\"name\": …}"))?;
    let name = function.string("name")?.ok_or_else(|| Refusal::field(function.path("name"), "missing"))?;
    if !tools.iter().any(|tool| tool.name == name) {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let problem = format!("there is no tool {name:?} in tools; there are: {}", names.join(", "));
        return Err(Refusal::field(function.path("name"), problem));
    }
    function.finish()?;
    Ok(name)
}

/// `{"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": […]}}`
fn allowed(mut fields: Fields, tools: Vec<Tool>) -> Result<(Vec<Tool>, ToolChoice), Refusal> {
    let inner = fields.object("allowed_tools")?;
    let mut inner =
        inner.ok_or_else(|| Refusal::field(fields.path("allowed_tools"), "missing; expected mode and tools"))?;
    fields.finish()?;
    let choice = inner.read("mode", "\"auto\" or \"required\"", |mode| match mode.as_str()? {
        "auto" => Some(ToolChoice::Auto),
        "required" => Some(ToolChoice::Required),
        _ => None,
    })?;
    let path = inner.path("tools");
    let list = inner.read("tools", "a list of the allowed tools, at least one", |list| {
        list.as_array().filter(|list| !list.is_empty()).cloned()
    })?;
    let list = list.ok_or_else(|| Refusal::field(&path, "missing; expected a list of the allowed tools"))?;
    let notes = inner.notes().clone();
    inner.finish()?;
    let mut names = BTreeSet::new();
    for (index, value) in list.into_iter().enumerate() {
        let mut entry = Fields::of(&format!("{path}[{index}]"), value, &notes)?;
        entry.read("type", "\"function\"", |kind| (kind == "function").then_some(()))?;
        names.insert(named(&mut entry, &tools)?);
        entry.finish()?;
    }
    let tools = tools.into_iter().filter(|tool| names.contains(&tool.name)).collect();
    Ok((tools, choice.unwrap_or(ToolChoice::Auto)))
}
