//! The rules of a grammar that makes a model write calls, in llguidance's dialect of Lark.

use std::cell::Cell;

use serde_json::Value;

use crate::chat::{
    Tool,
    schema::{Shape, Types},
};

/// Keywords of a string's schema that leave its text free.
const FREE_TEXT: &[&str] = &["type", "title", "description", "default", "examples", "deprecated", "$comment"];

/// Bytes of the names of special tokens.
const SPECIAL: (usize, usize) = (3, 48);

enum Part<'t> {
    Text(&'t str),
    /// A special token, by its id.
    Special(u32),
}

/// One parameter of a tool.
pub struct Parameter {
    pub name: String,
    pub schema: Value,
    pub required: bool,
    /// Any string, so that a format without quotes can write it as it is.
    pub is_text: bool,
}

/// Collects rules while a format describes its calls.
pub struct Rules<'a> {
    rules: Vec<String>,
    named: usize,
    /// The id of a special token, by its name.
    special: &'a dyn Fn(&str) -> Option<u32>,
    /// A mark that was read already, and is left out where a text begins with it.
    without: Option<String>,
    left_out: Cell<bool>,
}

impl<'a> Rules<'a> {
    /// `special` finds special tokens, which a grammar cannot spell as text.
    pub fn new(special: &'a dyn Fn(&str) -> Option<u32>) -> Rules<'a> {
        Rules { rules: Vec::new(), named: 0, special, without: None, left_out: Cell::new(false) }
    }

    /// Exactly this text; the names of special tokens in it stand for these tokens.
    pub fn literal(&self, text: &str) -> String {
        let text = self.rest_of(text);
        let spelled = |part: &Part<'_>| match part {
            Part::Text(text) => Value::from(*text).to_string(),
            Part::Special(id) => format!("<[{id}]>"),
        };
        let parts: Vec<String> = self.parts(text).iter().map(spelled).collect();
        if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" ") }
    }

    /// A mark: the special token of this name where the model has one, else the text.
    pub fn mark(&self, text: &str) -> String {
        self.literal(text)
    }

    /// The text, special tokens in it told apart.
    fn parts<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        let (mut start, mut at) = (0, 0);
        while at < text.len() {
            let ends = (at + SPECIAL.0..=text.len().min(at + SPECIAL.1)).rev();
            let found = ends.into_iter().find_map(|end| Some((end, (self.special)(text.get(at..end)?)?)));
            match found {
                Some((end, id)) => {
                    parts.extend((start < at).then(|| Part::Text(&text[start..at])));
                    parts.push(Part::Special(id));
                    (start, at) = (end, end);
                }
                None => at += 1,
            }
        }
        parts.extend((start < text.len()).then(|| Part::Text(&text[start..])));
        parts
    }

    /// A JSON value that satisfies this schema.
    pub fn json(&mut self, schema: &Value) -> String {
        let schema = if schema.is_object() || schema.is_boolean() { schema.clone() } else { Value::Bool(true) };
        self.rule(&format!("%json {schema}"))
    }

    /// Any text that does not contain `close`, and `close`.
    pub fn text_until(&mut self, close: &str) -> String {
        self.until(&["/(?s:.*)/".to_owned()], close)
    }

    /// The shortest text that all of these terms match and that is followed by `close`, and `close`.
    pub(super) fn until(&mut self, terms: &[String], close: &str) -> String {
        let parts = self.parts(close);
        let (before, after) = match parts.first() {
            Some(Part::Text(before)) => (*before, &close[before.len()..]),
            _ => ("", close),
        };
        let before = if before.is_empty() { String::new() } else { Value::from(before).to_string() };
        let body = format!("({}) {before}", terms.join(" & "));
        // A special token ends the text by itself; characters must end it where they first can.
        if after.is_empty() {
            let name = self.name();
            self.rules.push(format!("{name}[lazy]: {body}"));
            return name;
        }
        format!("{} {}", self.lexeme(&body), self.literal(after))
    }

    /// A tool's parameters in the schema's order.
    pub fn parameters(&self, tool: &Tool) -> Vec<Parameter> {
        let shape = Shape::of(tool.parameters.clone());
        let members = tool.parameters["properties"].as_object();
        let parameter = |(name, schema): (&String, &Value)| {
            let is_text = shape.member(name).types().is_some_and(Types::only_string)
                && schema.as_object().is_some_and(|schema| schema.keys().all(|key| FREE_TEXT.contains(&key.as_str())));
            let mut schema = schema.clone();
            if let Value::Object(own) = &mut schema {
                // References point into the whole.
                for definitions in ["$defs", "definitions"] {
                    if let Some(shared) = tool.parameters.get(definitions) {
                        own.entry(definitions).or_insert_with(|| shared.clone());
                    }
                }
            }
            Parameter { name: name.clone(), schema, required: shape.requires(name), is_text }
        };
        members.into_iter().flatten().map(parameter).collect()
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("r{}", self.named)
    }

    /// One lexeme, as a name in capitals makes it.
    pub(super) fn lexeme(&mut self, body: &str) -> String {
        let name = self.name().to_uppercase();
        self.rules.push(format!("{name}: {body}"));
        name
    }

    /// A rule of its own; returns its name.
    pub fn rule(&mut self, body: &str) -> String {
        let name = self.name();
        self.rules.push(format!("{name}: {body}"));
        name
    }

    /// From here on, this mark is left out at the beginning of texts: it has been read already.
    pub fn leave_out(&mut self, mark: &str) {
        self.without = Some(mark.to_owned());
    }

    /// Whether that mark was left out anywhere.
    pub fn left_out(&self) -> bool {
        self.left_out.get()
    }

    fn rest_of<'t>(&self, text: &'t str) -> &'t str {
        match self.without.as_ref().and_then(|mark| text.strip_prefix(mark.as_str())) {
            Some(rest) => {
                self.left_out.set(true);
                rest
            }
            None => text,
        }
    }

    /// Text, at least a character, without this mark.
    pub fn text_without(&mut self, mark: &str) -> String {
        let name = self.name().to_uppercase();
        let any = match (self.special)(mark) {
            Some(_) => "/(?s:.+)/".to_owned(),
            None => format!("/(?s:.+)/ & ~(/(?s:.*)/ {} /(?s:.*)/)", Value::from(mark)),
        };
        self.rules.push(format!("{name}: {any}"));
        name
    }

    /// Whether there is a rule of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.rules.iter().any(|rule| rule.starts_with(&format!("{name}:")))
    }

    /// A rule of this name, in the place of one that it may have been.
    pub(super) fn define(&mut self, name: &str, body: &str) {
        self.rules.retain(|rule| !rule.starts_with(&format!("{name}:")));
        self.rules.push(format!("{name}: {body}"));
    }

    /// All rules so far, a line each.
    pub fn text(&self) -> String {
        self.rules.join("\n")
    }
}
