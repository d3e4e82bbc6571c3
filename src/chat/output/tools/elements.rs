//! Every tag behind a special token, and a tag for each member and item however deep.
//!
//! `<invoke name="f"><x>1</x></invoke>`, with the token before each tag

use std::{future::Future, pin::Pin};

use serde_json::Value;

use super::{DEPTH, End, NAME, NotACall, Region, Rules};
use crate::{
    chat::{
        Tool, ToolCall,
        dialect::Spelling,
        output::{input::Input, json::Spelled},
    },
    schema::{Cursor, Shape},
};

/// The syntax with this token before each tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements(pub &'static str);

impl Elements {
    /// The token and a tag.
    fn tag(self, tag: &str) -> String {
        format!("{}<{tag}>", self.0)
    }

    /// Reads what follows the tag around all calls, or the beginning of a call's own.
    pub(super) async fn read(self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let call = format!("{}<invoke", self.0);
        let close = self.tag("/tool_call");
        if region.is_opened_by(&call) {
            self.one(region).await?;
            input.skip_space().await;
            if !input.eat(&close).await {
                input.rewind();
            }
            return Ok(());
        }
        while region.one_of(&[&close, &call]).await? == 1 {
            self.one(region).await?;
        }
        Ok(())
    }

    /// One call, from its name on.
    async fn one(self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        if !input.eat(" name=\"").await {
            return Err(NotACall);
        }
        let name = input.word(|char| char != '"' && char != '\n', NAME).await.ok_or(NotACall)?;
        if !input.eat("\">").await {
            return Err(NotACall);
        }
        let mut arguments = region.call(&name)?;
        loop {
            input.skip_space().await;
            if input.eat(&self.tag("/invoke")).await {
                arguments.end();
                return Ok(());
            }
            if !input.eat(&format!("{}<", self.0)).await {
                return Err(NotACall);
            }
            let key = name_of_tag(input).await?;
            let shape = arguments.shape().member(&key);
            if shape.types().is_some_and(|types| !types.array && !types.object) {
                let end = self.tag(&format!("/{key}"));
                arguments.text(&key, End::at(&[&end])).await?;
                continue;
            }
            let (value, closed) = self.value(input, &shape, &key, 0).await?;
            arguments.fitted(&key, value);
            if !closed {
                if !input.eat("invoke>").await {
                    return Err(NotACall);
                }
                arguments.end();
                return Ok(());
            }
        }
    }

    /// What stands in the tag of this name, to its end: text, or more tags. An empty container is left open at times:
    /// then what begins the end of the tag around it has been taken, and the second is false.
    fn value<'a>(self, input: &'a Input, shape: &'a Shape, name: &'a str, depth: usize) -> ValueFuture<'a> {
        Box::pin(async move {
            let end = self.tag(&format!("/{name}"));
            let [tag, close] = [format!("{}<", self.0), format!("{}</", self.0)];
            let marks = [tag.as_str(), &close, &end];
            let mut text = String::new();
            let mut parts = Vec::new();
            loop {
                let found = input.until(&marks, |piece| text.push_str(piece)).await.ok_or(NotACall)?;
                if found == 2 {
                    return Ok((together(shape, text, parts), true));
                }
                if found == 1 {
                    let empty = text.trim().is_empty() && parts.is_empty();
                    return if empty { Ok((together(shape, text, parts), false)) } else { Err(NotACall) };
                }
                if depth > DEPTH {
                    return Err(NotACall);
                }
                let key = name_of_tag(input).await?;
                let part = if key == "item" && !wants_object(shape) { shape.item() } else { shape.member(&key) };
                let (value, closed) = self.value(input, &part, &key, depth + 1).await?;
                parts.push((key.clone(), value));
                if !closed {
                    let own = input.eat(&format!("{name}>")).await;
                    return if own { Ok((together(shape, text, parts), true)) } else { Err(NotACall) };
                }
            }
        })
    }

    /// One call.
    pub(super) fn render(self, call: &ToolCall) -> String {
        let open = self.tag(&format!("invoke name=\"{}\"", call.name));
        let members: String = call.arguments.iter().map(|(name, value)| self.element(name, value)).collect();
        format!("{open}{members}{}", self.tag("/invoke"))
    }

    /// Members that are null are left out, as the template has it.
    fn element(self, name: &str, value: &Value) -> String {
        let inner = match value {
            Value::Null if name != "item" => return String::new(),
            Value::Null => String::new(),
            Value::Object(members) => members.iter().map(|(name, value)| self.element(name, value)).collect(),
            Value::Array(items) => items.iter().map(|item| self.element("item", item)).collect(),
            other => Spelling::Json.text(other),
        };
        format!("{}{inner}{}", self.tag(name), self.tag(&format!("/{name}")))
    }

    /// What [`Elements::render`] writes.
    pub(super) fn grammar(self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let open = rules.literal(&self.tag(&format!("invoke name=\"{}\"", tool.name)));
        let object = rules.described(&tool.parameters);
        let members = self.members(rules, &object);
        format!("{open} {members} {}", rules.literal(&self.tag("/invoke")))
    }

    /// A tag for each property of an object's schema.
    fn members(self, rules: &mut Rules<'_>, object: &Cursor<'_>) -> String {
        rules.check_members(object);
        let mut text = String::new();
        for (name, property) in object.properties() {
            let element = self.element_rule(rules, name, &property);
            text += &if object.requires(name) { format!(" {element}") } else { format!(" {element}?") };
        }
        text
    }

    /// The tag of this name around a value of this schema.
    fn element_rule(self, rules: &mut Rules<'_>, name: &str, schema: &Cursor<'_>) -> String {
        let make = |rules: &mut Rules<'_>| {
            let body = self.body(rules, name, schema);
            format!("{} {body}", rules.literal(&self.tag(name)))
        };
        if let Some(reference) = schema.reference() {
            return rules.once(name, reference, make);
        }
        let element = make(rules);
        rules.rule(&element)
    }

    /// What stands in the tag of this name, and its end.
    fn body(self, rules: &mut Rules<'_>, name: &str, schema: &Cursor<'_>) -> String {
        let place = schema.resolved();
        let close = rules.literal(&self.tag(&format!("/{name}")));
        match schema.types() {
            Some(types) if types.object && !types.string && place.get("properties").is_some() => {
                format!("{} {close}", self.members(rules, &place))
            }
            Some(types) if types.array && !types.string && !types.object => {
                rules.check_supported(&place);
                let anything = Value::Bool(true);
                let item = place.single("items").unwrap_or_else(|| place.with_node(&anything));
                let item = self.element_rule(rules, "item", &item);
                let least = place.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                let most = place.get("maxItems").and_then(Value::as_u64);
                let most = most.map_or(String::new(), |most| most.to_string());
                format!("{item}{{{least},{most}}} {close}")
            }
            // What is a container by its type alone is read from JSON as well as from tags. Text ends at the first mark.
            _ => {
                let text = rules.argument(schema, Spelling::Json, self.0);
                format!("{text} {}", rules.literal(&format!("</{name}>")))
            }
        }
    }
}

/// A tag's name, and its bracket.
async fn name_of_tag(input: &Input) -> Result<String, NotACall> {
    let key = input.word(|char| !"<>/\n".contains(char), NAME).await.ok_or(NotACall)?;
    if input.eat(">").await { Ok(key) } else { Err(NotACall) }
}

type ValueFuture<'a> = Pin<Box<dyn Future<Output = Result<(Spelled, bool), NotACall>> + Send + 'a>>;

fn wants_object(shape: &Shape) -> bool {
    shape.types().is_some_and(|types| types.object && !types.array)
}

/// Items make an array, other tags an object; nothing at all is what the schema wants.
fn together(shape: &Shape, text: String, parts: Vec<(String, Spelled)>) -> Spelled {
    let types = shape.types();
    if parts.is_empty() {
        return match types {
            Some(types) if text.trim().is_empty() && types.array && !types.string => Spelled::List(Vec::new()),
            Some(types) if text.trim().is_empty() && types.object && !types.string => Spelled::Members(Vec::new()),
            _ => shape.read(&text),
        };
    }
    let is_list = !wants_object(shape) && parts.iter().all(|(key, _)| key == "item");
    if is_list { Spelled::List(parts.into_iter().map(|(_, value)| value).collect()) } else { Spelled::members(parts) }
}
