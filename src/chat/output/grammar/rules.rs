//! The rules of a grammar that makes a model write calls, in llguidance's dialect of Lark.

use std::{cell::Cell, collections::HashMap};

use serde_json::Value;

use crate::{
    chat::Tool,
    schema::{self, Cursor},
};

/// Bytes of the names of special tokens.
const SPECIAL: (usize, usize) = (3, 48);

enum Part<'t> {
    Text(&'t str),
    /// A special token, by its id.
    Special(u32),
}

/// One parameter of a tool.
pub struct Parameter<'t> {
    /// As calls spell it.
    pub name: &'t str,
    /// What its values are.
    pub schema: Cursor<'t>,
    /// Whether every call has it.
    pub required: bool,
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
    /// The rules of schemas that may refer to themselves, each by its tool, its notation and its reference.
    known: HashMap<(usize, String, String), String>,
    /// Tools that were described so far. A reference means something within one tool's schema.
    tools: usize,
    refused: Option<String>,
}

impl<'a> Rules<'a> {
    /// `special` finds special tokens, which a grammar cannot spell as text.
    pub fn new(special: &'a dyn Fn(&str) -> Option<u32>) -> Rules<'a> {
        Rules {
            rules: Vec::new(),
            named: 0,
            special,
            without: None,
            left_out: Cell::new(false),
            known: HashMap::new(),
            tools: 0,
            refused: None,
        }
    }

    /// The grammar cannot hold to a schema. What is said first counts.
    pub(in crate::chat::output) fn refuse(&mut self, why: impl FnOnce() -> String) {
        self.refused.get_or_insert_with(why);
    }

    /// Why these rules must not be used, if so: they leave open what a tool's schema does not.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Refuses what this schema says beyond what notations enforce that are not JSON.
    pub(in crate::chat::output) fn check_supported(&mut self, schema: &Cursor<'_>) {
        if let Some(keyword) = schema::unsupported(schema) {
            self.refuse(|| unsupported(&format!("{keyword:?} together with what stands beside it")));
        }
    }

    /// [`Rules::check_supported`] of an object whose members are listed.
    pub(in crate::chat::output) fn check_members(&mut self, schema: &Cursor<'_>) {
        self.check_supported(schema);
        if let Some(name) = schema::undescribed(schema) {
            self.refuse(|| format!("\"required\" has {name:?}, which \"properties\" lacks"));
        }
    }

    /// A rule for what a reference refers to, which may refer to itself: made once for each kind of notation, however
    /// often it is asked for.
    pub(in crate::chat::output) fn once(
        &mut self,
        kind: &str,
        reference: &str,
        make: impl FnOnce(&mut Rules<'a>) -> String,
    ) -> String {
        let key = (self.tools, kind.to_owned(), reference.to_owned());
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = self.name();
        self.known.insert(key, name.clone());
        let body = make(self);
        self.rules.push(format!("{name}: {body}"));
        name
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

    /// A JSON value that satisfies this schema. The schema stands in the grammar as llguidance is to have it.
    pub fn json(&mut self, schema: &Value) -> String {
        let schema = if schema::is_schema(schema) { schema } else { &Value::Bool(true) };
        match schema::prepare(schema) {
            Ok(prepared) => self.rule(&format!("%json {prepared}")),
            Err(problem) => {
                self.refuse(|| problem.to_string());
                "\"\"".to_owned()
            }
        }
    }

    /// Any text that does not contain `close`, and `close`.
    pub fn text_until(&mut self, close: &str) -> String {
        self.until(&["/(?s:.*)/".to_owned()], close)
    }

    /// The shortest text that all of these terms match and that is followed by `close`, and `close`.
    pub(in crate::chat::output) fn until(&mut self, terms: &[String], close: &str) -> String {
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
    pub fn parameters<'t>(&mut self, tool: &'t Tool) -> Vec<Parameter<'t>> {
        let object = self.described(&tool.parameters);
        let properties = object.properties();
        properties.map(|(name, schema)| Parameter { name, schema, required: object.requires(name) }).collect()
    }

    /// A tool's schema, whose members a notation lists one by one.
    pub(in crate::chat::output) fn described<'t>(&mut self, parameters: &'t Value) -> Cursor<'t> {
        self.tools += 1;
        let object = Cursor::new(parameters).resolved();
        self.check_members(&object);
        if let Some(reference) = schema::foreign_reference(parameters) {
            self.refuse(|| unsupported(&format!("\"$ref\" {reference:?}")) + "; put what it refers to in \"$defs\"");
        }
        object
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("r{}", self.named)
    }

    /// One lexeme, as a name in capitals makes it.
    pub(in crate::chat::output) fn lexeme(&mut self, body: &str) -> String {
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

    /// All rules so far, a line each.
    pub fn text(&self) -> String {
        self.rules.join("\n")
    }
}

/// Why a keyword is refused.
pub(in crate::chat::output) fn unsupported(what: &str) -> String {
    format!("{what} cannot be enforced in the notation that this model writes arguments in, which is not JSON")
}
