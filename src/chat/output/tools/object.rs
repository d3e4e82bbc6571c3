//! A call as a JSON object with a name and arguments, whatever stands around it and whatever it calls the two.

use serde_json::{Map, Value};

use super::{NotACall, Region, Rules, json};
use crate::{
    chat::{
        Tool, ToolCall,
        dialect::{Layout, Object, ObjectId, ObjectMessage},
        python::{self, Dumps},
    },
    schema::Shape,
};

/// What the name and the arguments are called.
const NAMES: &[&str] = &["name", "tool_name", "tool", "function_name"];
const ARGUMENTS: &[&str] = &["arguments", "parameters", "args", "input"];
/// What may stand before either.
const BEFORE: &[&str] = &["id", "tool_call_id", "call_id", "type", "index"];

impl Object {
    /// Reads the objects behind a mark, and what closes them.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        match self.lead {
            "" => {}
            // The list begins right behind the mark, and its bracket is a part of it.
            "[" if region.input.is_next("[").await => {}
            "[" => return Err(NotACall),
            lead => region.expect(lead).await?,
        }
        calls(region).await?;
        if !self.close.is_empty() {
            region.close(self.close).await;
        }
        Ok(())
    }

    /// As the family's template writes it.
    pub(super) fn render(&self, call: &ToolCall, index: usize) -> String {
        let [before, after] = self.around;
        let [name_key, key] = self.keys;
        let name = Value::from(call.name.as_str());
        let arguments = Value::Object(call.arguments.clone());
        let arguments = match self.layout {
            Layout::Line => python::dumps(&arguments),
            Layout::Ascii => Dumps { ensure_ascii: true, ..Dumps::default() }.json(&arguments),
            Layout::Indented => {
                let indented = Dumps { indent: Some("    ".to_owned()), ..Dumps::default() }.json(&arguments);
                let arguments = indented.replace('\n', "\n        ");
                return format!("{}{arguments}{INDENTED_END}", self.indented_head(&call.name));
            }
        };
        let first = match self.id {
            ObjectId::Number => format!("\"tool_call_id\": \"{index}\", "),
            ObjectId::None | ObjectId::Last => String::new(),
        };
        let last = match self.id {
            ObjectId::Last => format!(", \"id\": {}", Value::from(call.id.as_str())),
            ObjectId::None | ObjectId::Number => String::new(),
        };
        format!("{before}{{{first}\"{name_key}\": {name}, \"{key}\": {arguments}{last}}}{after}")
    }

    /// What [`Object::render`] writes; models may leave out an id that stands last.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let [before, after] = self.around;
        let [name_key, key] = self.keys;
        if self.layout == Layout::Indented {
            let head = rules.literal(&self.indented_head(&tool.name));
            return format!("{head} {} {}", rules.json(&tool.parameters), rules.literal(INDENTED_END));
        }
        let name = format!("\"{name_key}\": {}, \"{key}\": ", Value::from(tool.name.as_str()));
        let mut parts = Vec::new();
        match self.id {
            ObjectId::Number => {
                parts.push(rules.rule("/ *\\{\"tool_call_id\": \"[0-9]+\", /"));
                parts.push(rules.literal(&name));
            }
            ObjectId::None | ObjectId::Last => {
                parts.extend((!before.is_empty()).then(|| rules.literal(before)));
                parts.push(rules.literal(&format!("{{{name}")));
            }
        }
        parts.push(rules.json(&tool.parameters));
        if self.id == ObjectId::Last {
            parts.push(format!("{}?", rules.rule("/, \"id\": \"[a-zA-Z0-9_-]+\"/")));
        }
        parts.push(rules.literal("}"));
        parts.extend((!after.is_empty()).then(|| rules.literal(after)));
        parts.join(" ")
    }

    /// The beginning of an object on lines of its own.
    fn indented_head(&self, name: &str) -> String {
        let [name_key, key] = self.keys;
        format!("    {{\n        \"{name_key}\": {},\n        \"{key}\": ", Value::from(name))
    }
}

/// The end of an object on lines of its own.
const INDENTED_END: &str = "\n    }";

impl ObjectMessage {
    /// As the family's template writes it, from behind the beginning of the message on.
    pub(super) fn render(&self, call: &ToolCall) -> String {
        format!("{}{}{}", call.name, self.mark, self.object().render(call, 0))
    }

    /// What [`ObjectMessage::render`] writes. After a thought the message is still to be opened.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let message = rules.literal(self.message);
        let name = rules.literal(&format!("{}{}", tool.name, self.mark));
        format!("{message}? {name} {}", self.object().grammar(rules, tool))
    }

    fn object(&self) -> Object {
        Object { keys: ["name", self.arguments], ..Object::PLAIN }
    }
}

/// Reads a list of calls, or calls one after the other, or one.
pub(super) async fn calls(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    if input.is_next("[").await {
        region.expect("[").await?;
        loop {
            call(region).await?;
            if !region.goes_on("]").await? {
                return Ok(());
            }
        }
    }
    call(region).await?;
    loop {
        input.pin();
        input.skip_space().await;
        if input.eat(";").await || input.eat(",").await {
            input.skip_space().await;
        }
        if !input.is_next("{").await {
            input.rewind();
            return Ok(());
        }
        call(region).await?;
    }
}

/// Reads one object, from its brace on.
pub(super) async fn call(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    region.expect("{").await?;
    let mut name = None;
    let mut arguments = None;
    let mut called = false;
    loop {
        input.skip_space().await;
        if input.eat("}").await {
            break;
        }
        let key = string(region).await?;
        region.expect(":").await?;
        match key.as_str() {
            key if NAMES.contains(&key) && name.is_none() => {
                let own = string(region).await?;
                // Without a mark it may well be other text, and long.
                if region.opened_by.is_none() && !region.declares(&own) {
                    return Err(NotACall);
                }
                name = Some(own);
            }
            // OpenAI's own form has both inside.
            "function" if name.is_none() => match nested(region).await? {
                Nested::Name(own) => name = Some(own),
                Nested::Call => called = true,
            },
            key if ARGUMENTS.contains(&key) && !called => match &name {
                Some(name) => {
                    region.call_with_object(name, None, &[]).await?;
                    called = true;
                }
                None => arguments = Some(value(region).await?),
            },
            // An object that begins with something else is no call, and may be long.
            key if name.is_none() && !called && !BEFORE.contains(&key) => return Err(NotACall),
            _ => drop(value(region).await?),
        }
        input.skip_space().await;
        if !input.eat(",").await && !input.is_next("}").await {
            return Err(NotACall);
        }
    }
    match (called, name) {
        (true, _) => {
            // What follows may be text, and the brace no part of it.
            input.pin();
            Ok(())
        }
        (false, Some(name)) => region.call_with_all(&name, None, arguments.as_deref().unwrap_or("null")),
        (false, None) => Err(NotACall),
    }
}

enum Nested {
    Name(String),
    Call,
}

/// `"function": "name"` or `"function": {"name": …, "arguments": …}`.
async fn nested(region: &Region) -> Result<Nested, NotACall> {
    region.input.skip_space().await;
    if region.input.is_next("{").await {
        Box::pin(call(region)).await.map(|()| Nested::Call)
    } else {
        string(region).await.map(Nested::Name)
    }
}

async fn value(region: &Region) -> Result<String, NotACall> {
    let mut raw = String::new();
    json::copy(&region.input, &Shape::unknown(), &mut raw).await?;
    Ok(raw)
}

async fn string(region: &Region) -> Result<String, NotACall> {
    region.input.skip_space().await;
    if !matches!(region.input.peek().await, Some('"' | '\'')) {
        return Err(NotACall);
    }
    let raw = json::text(&region.input).await?;
    serde_json::from_str(&raw).map_err(|_| NotACall)
}

/// Arguments as `tojson` writes them.
pub(super) fn dumps(arguments: &Map<String, Value>) -> String {
    python::dumps(&Value::Object(arguments.clone()))
}
