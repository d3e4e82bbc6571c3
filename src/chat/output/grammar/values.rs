//! Rules for the values of parameters in formats that set no quotes around strings: any text up to a tag where the
//! schema allows any string.

use serde_json::{Map, Value, json};

use super::{
    Notation, Rules,
    kept::{no_other, unkept},
    rules::unheld,
};
use crate::chat::{
    Tool,
    constraint::grammar::text_format,
    dialect::Spelling,
    schema::{Shape, Types},
};

/// The types of JSON that are no strings.
const OTHERS: [&str; 6] = ["number", "integer", "boolean", "null", "array", "object"];

impl Rules<'_> {
    /// All parameters of a tool: what `head` writes before a value, the value, and `end`.
    pub(in crate::chat::output) fn arguments(
        &mut self,
        tool: &Tool,
        spelling: Spelling,
        end: &str,
        head: impl Fn(&str) -> String,
    ) -> String {
        let mut text = Vec::new();
        for parameter in self.parameters(tool) {
            let head = self.literal(&head(&parameter.name));
            let value = self.argument(&parameter.schema, spelling, end);
            text.push(match parameter.required {
                true => format!("{head} {value}"),
                false => format!("({head} {value})?"),
            });
        }
        text.join(" ")
    }

    /// A value of this schema, and `end`.
    pub(in crate::chat::output) fn argument(&mut self, schema: &Value, spelling: Spelling, end: &str) -> String {
        if is_free(schema) {
            return self.text_until(end);
        }
        let choices: Vec<String> =
            [self.string(schema, end), self.no_string(schema, spelling, end)].into_iter().flatten().collect();
        match choices.as_slice() {
            [] => self.text_until(end),
            [one] => one.clone(),
            _ => self.rule(&choices.join(" | ")),
        }
    }

    /// As [`Rules::argument`], but where that is any text, it does not begin with this.
    pub(in crate::chat::output) fn argument_but(
        &mut self,
        schema: &Value,
        spelling: Spelling,
        begin: &str,
        end: &str,
    ) -> String {
        match is_free(schema) {
            true => self.until(&["/(?s:.*)/".to_owned(), format!("~({} /(?s:.*)/)", Value::from(begin))], end),
            false => self.argument(schema, spelling, end),
        }
    }

    /// A string of this schema as it is, and `end`; `None` where no string is allowed.
    pub(in crate::chat::output) fn string(&mut self, schema: &Value, end: &str) -> Option<String> {
        self.string_but(schema, end, &no_other(schema), &Shape::of(schema.clone()))
    }

    /// [`Rules::string`] of a part of the schema `whole`, as these terms want it too.
    fn string_but(&mut self, schema: &Value, end: &str, but: &[String], whole: &Shape) -> Option<String> {
        let node = resolved(schema);
        if Shape::of(node.clone()).types().is_some_and(|types| !types.string) {
            return None;
        }
        self.keep(&node);
        if let Some(values) = fixed(&node) {
            // What would be read as another value is none of these.
            let texts = values.iter().filter(|value| value.as_str().is_some_and(|text| whole.read(text) == **value));
            let texts: Vec<String> =
                texts.filter_map(Value::as_str).map(|text| self.literal(&format!("{text}{end}"))).collect();
            return (!texts.is_empty()).then(|| self.rule(&texts.join(" | ")));
        }
        if let Some(parts) = ["anyOf", "oneOf"].iter().find_map(|list| node[*list].as_array()) {
            let parts: Vec<Value> = parts.iter().map(|part| with_definitions(part, &node)).collect();
            let choices: Vec<String> = parts.iter().filter_map(|part| self.string_but(part, end, but, whole)).collect();
            return (!choices.is_empty()).then(|| self.rule(&choices.join(" | ")));
        }
        let mut terms = self.terms(&node);
        terms.extend_from_slice(but);
        Some(if terms.is_empty() { self.text_until(end) } else { self.until(&terms, end) })
    }

    /// A value of this schema that is no string, and `end`; `None` where only strings are allowed.
    pub(in crate::chat::output) fn no_string(
        &mut self,
        schema: &Value,
        spelling: Spelling,
        end: &str,
    ) -> Option<String> {
        let types = Shape::of(schema.clone()).types();
        if types.is_some_and(Types::only_string) {
            return None;
        }
        let mut choices = vec![match types {
            Some(types) if !types.string => self.json(schema),
            _ => self.json(&without_strings(schema)),
        }];
        let node = resolved(schema);
        if spelling != Spelling::Json {
            for (value, word) in [(json!(true), "True"), (json!(false), "False"), (json!(null), "None")] {
                choices.extend(allows(&node, &value).then(|| self.literal(word)));
            }
        }
        let holds_others = types.is_some_and(|types| types.array || types.object);
        if spelling == Spelling::Repr && holds_others {
            choices.push(Notation::PYTHON.value(self, &without_string_type(&node)));
        }
        Some(format!("({}) {}", choices.join(" | "), self.literal(end)))
    }

    /// What a schema asks of a string's text, as terms of Lark.
    pub(in crate::chat::output) fn terms(&mut self, node: &Value) -> Vec<String> {
        let mut terms: Vec<String> = node["pattern"].as_str().map(anchored).into_iter().collect();
        if node.get("minLength").is_some() || node.get("maxLength").is_some() {
            let least = node["minLength"].as_u64().unwrap_or(0);
            let most = node["maxLength"].as_u64().map_or(String::new(), |most| most.to_string());
            terms.push(format!("/(?s:.{{{least},{most}}})/"));
        }
        if let Some(format) = node["format"].as_str() {
            match text_format(format) {
                Some(pattern) => terms.push(anchored(&pattern)),
                None => self.refuse(|| unheld(&format!("\"format\" {format:?}")) + "; use \"pattern\""),
            }
        }
        terms
    }
}

/// Whether any text is a value of this schema: it may be a string, and no other value that it may be is restricted.
fn is_free(schema: &Value) -> bool {
    let node = resolved(schema);
    let types = Shape::of(schema.clone()).types();
    let says = ["pattern", "minLength", "maxLength", "format", "enum", "const", "anyOf", "oneOf"];
    types.is_none_or(|types| types.string)
        && says.iter().all(|key| node.get(*key).is_none())
        && unkept(&node).is_none()
        && no_other(schema).is_empty()
}

/// The values that the schema lists.
fn fixed(node: &Value) -> Option<Vec<Value>> {
    let one = node.get("const").map(|value| vec![value.clone()]);
    one.or_else(|| node["enum"].as_array().cloned())
}

/// What a schema refers to, with the definitions that it may refer to in turn.
pub(in crate::chat::output) fn resolved(schema: &Value) -> Value {
    let mut node = schema;
    for _ in 0..16 {
        let Some(pointer) = node["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) else { break };
        let Some(next) = schema.pointer(pointer) else { break };
        node = next;
    }
    with_definitions(node, schema)
}

/// A part of a schema that carries the definitions of the whole.
pub(in crate::chat::output) fn with_definitions(part: &Value, whole: &Value) -> Value {
    let mut part = part.clone();
    if let Value::Object(own) = &mut part {
        for name in ["$defs", "definitions"] {
            if let Some(definitions) = whole.get(name) {
                own.entry(name).or_insert_with(|| definitions.clone());
            }
        }
    }
    part
}

/// Whether the schema allows this value, which is true, false or null.
fn allows(schema: &Value, value: &Value) -> bool {
    let node = resolved(schema);
    if let Some(values) = fixed(&node) {
        return values.contains(value);
    }
    match ["anyOf", "oneOf"].iter().find_map(|list| node[*list].as_array()) {
        Some(parts) => parts.iter().any(|part| allows(&with_definitions(part, &node), value)),
        None => Shape::of(node).types().is_none_or(|types| types.allow(value)),
    }
}

/// The same where strings are written otherwise.
fn without_string_type(node: &Value) -> Value {
    let mut node = node.clone();
    if let Some(names) = node.get_mut("type").and_then(Value::as_array_mut) {
        names.retain(|name| name != "string");
    }
    let whole = node.clone();
    for list in ["anyOf", "oneOf"] {
        if let Some(parts) = node.get_mut(list).and_then(Value::as_array_mut) {
            let is_string =
                |part: &Value| Shape::of(with_definitions(part, &whole)).types().is_some_and(Types::only_string);
            parts.retain(|part| !is_string(part));
        }
    }
    node
}

fn without_strings(schema: &Value) -> Value {
    let mut whole = Map::new();
    let mut part = schema.clone();
    if let Value::Object(own) = &mut part {
        for name in ["$defs", "definitions"] {
            whole.extend(own.shift_remove(name).map(|definitions| (name.to_owned(), definitions)));
        }
    }
    whole.insert("allOf".to_owned(), json!([part, {"type": OTHERS}]));
    Value::Object(whole)
}

/// A schema's pattern, which may match anywhere in the text, as an expression for all of it.
fn anchored(pattern: &str) -> String {
    let start = if pattern.starts_with('^') { "" } else { "(?s:.*)" };
    let ended = pattern.ends_with('$') && !pattern.ends_with("\\$");
    let end = if ended { "" } else { "(?s:.*)" };
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = if ended { &inner[..inner.len() - 1] } else { inner };
    format!("/{start}({}){end}/", slashes(inner))
}

/// Slashes end an expression in Lark.
fn slashes(pattern: &str) -> String {
    let mut out = String::new();
    let mut escaped = false;
    for char in pattern.chars() {
        if char == '/' && !escaped {
            out.push('\\');
        }
        escaped = char == '\\' && !escaped;
        out.push(char);
    }
    out
}
