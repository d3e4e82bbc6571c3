//! Rules for the values of parameters in formats that set no quotes around strings: any text up to a tag where the
//! schema allows any string.

use serde_json::{Map, Value, json};

use super::{Notation, Rules, rules::unsupported};
use crate::{
    chat::{Tool, dialect::Spelling, output::json::reads_as_text},
    schema::{self, Cursor, Types, text_pattern},
};

/// Keywords that say more of a string than its type.
const SAYING: [&str; 8] = ["pattern", "minLength", "maxLength", "format", "enum", "const", "anyOf", "oneOf"];

/// The types of JSON that are no strings.
const OTHERS: [&str; 6] = ["number", "integer", "boolean", "null", "array", "object"];

/// Choices within choices that are looked through for restrictions.
const CHOICES: usize = 4;

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
            let head = self.literal(&head(parameter.name));
            let value = self.argument(&parameter.schema, spelling, end);
            text.push(if parameter.required { format!("{head} {value}") } else { format!("({head} {value})?") });
        }
        text.join(" ")
    }

    /// A value of this schema, and `end`.
    pub(in crate::chat::output) fn argument(&mut self, schema: &Cursor<'_>, spelling: Spelling, end: &str) -> String {
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
        schema: &Cursor<'_>,
        spelling: Spelling,
        begin: &str,
        end: &str,
    ) -> String {
        if is_free(schema) {
            self.until(&["/(?s:.*)/".to_owned(), format!("~({} /(?s:.*)/)", Value::from(begin))], end)
        } else {
            self.argument(schema, spelling, end)
        }
    }

    /// A string of this schema as it is, and `end`; `None` where no string is allowed.
    pub(in crate::chat::output) fn string(&mut self, schema: &Cursor<'_>, end: &str) -> Option<String> {
        self.string_but(schema, end, &no_other(schema), schema)
    }

    /// [`Rules::string`] of a part of the schema `whole`, as these terms want it too.
    fn string_but(&mut self, schema: &Cursor<'_>, end: &str, but: &[String], whole: &Cursor<'_>) -> Option<String> {
        let place = schema.resolved();
        if place.types().is_some_and(|types| !types.string) {
            return None;
        }
        self.check_supported(&place);
        if let Some(values) = place.constants() {
            // What would be read as another value is none of these.
            let texts = values.iter().filter_map(Value::as_str).filter(|text| reads_as_text(whole.types(), text));
            let texts: Vec<String> = texts.map(|text| self.literal(&format!("{text}{end}"))).collect();
            return (!texts.is_empty()).then(|| self.rule(&texts.join(" | ")));
        }
        if let Some(parts) = place.choices() {
            let choices: Vec<String> = parts.iter().filter_map(|part| self.string_but(part, end, but, whole)).collect();
            return (!choices.is_empty()).then(|| self.rule(&choices.join(" | ")));
        }
        let mut terms = self.terms(&place);
        terms.extend_from_slice(but);
        Some(if terms.is_empty() { self.text_until(end) } else { self.until(&terms, end) })
    }

    /// A value of this schema that is no string, and `end`; `None` where only strings are allowed.
    pub(in crate::chat::output) fn no_string(
        &mut self,
        schema: &Cursor<'_>,
        spelling: Spelling,
        end: &str,
    ) -> Option<String> {
        let types = schema.types();
        if types.is_some_and(Types::only_string) {
            return None;
        }
        let mut choices = vec![match types {
            Some(types) if !types.string => self.json(&schema.standalone()),
            _ => self.json(&without_strings(schema)),
        }];
        if spelling != Spelling::Json {
            for (value, word) in [(json!(true), "True"), (json!(false), "False"), (json!(null), "None")] {
                choices.extend(allows(schema, &value).then(|| self.literal(word)));
            }
        }
        let holds_others = types.is_some_and(|types| types.array || types.object);
        if spelling == Spelling::Repr && holds_others {
            let place = schema.resolved();
            let others = without_string_type(&place);
            choices.push(Notation::PYTHON.value(self, &place.with_node(&others)));
        }
        Some(format!("({}) {}", choices.join(" | "), self.literal(end)))
    }

    /// What a schema asks of a string's text, as terms of Lark.
    pub(in crate::chat::output) fn terms(&mut self, schema: &Cursor<'_>) -> Vec<String> {
        let number = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let mut terms: Vec<String> = text("pattern").map(anchored).into_iter().collect();
        if schema.get("minLength").is_some() || schema.get("maxLength").is_some() {
            let least = number("minLength").unwrap_or(0);
            let most = number("maxLength").map_or(String::new(), |most| most.to_string());
            terms.push(format!("/(?s:.{{{least},{most}}})/"));
        }
        if let Some(format) = text("format") {
            match text_pattern(format) {
                Some(pattern) => terms.push(anchored(&pattern)),
                None => self.refuse(|| unsupported(&format!("\"format\" {format:?}")) + "; use \"pattern\""),
            }
        }
        terms
    }
}

/// Whether any text is a value of this schema: it may be a string, and no other value that it may be is restricted.
fn is_free(schema: &Cursor<'_>) -> bool {
    let place = schema.resolved();
    schema.types().is_none_or(|types| types.string)
        && SAYING.iter().all(|keyword| place.get(keyword).is_none())
        && schema::unsupported(&place).is_none()
        && no_other(schema).is_empty()
}

/// How a string without quotes must begin, as terms of Lark, where it might be read as another value that the schema
/// restricts. By its first character: llguidance looks for the longest lexeme, and a text that may still become a
/// string would hide the number that it is.
fn no_other(schema: &Cursor<'_>) -> Vec<String> {
    let Some(types) = schema.types().filter(|types| types.string) else { return Vec::new() };
    if types.only_string() || !schema::restricts_others(schema, CHOICES) {
        return Vec::new();
    }
    let container = (types.array || types.object).then_some(r"\[{");
    let number = (types.number || types.integer).then_some(r"0-9\-");
    let word = types.boolean.then_some("tTfF");
    let begins: String = container.into_iter().chain(number).chain(word).collect();
    vec![format!(r"/\s*([^\s{begins}](?s:.*))?/")]
}

/// Whether the schema allows this value, which is true, false or null.
fn allows(schema: &Cursor<'_>, value: &Value) -> bool {
    let place = schema.resolved();
    if let Some(values) = place.constants() {
        return values.contains(value);
    }
    match place.choices() {
        Some(parts) => parts.iter().any(|part| allows(part, value)),
        None => place.types().is_none_or(|types| types.allow(value)),
    }
}

/// The same schema with this type.
pub(in crate::chat::output) fn with_type(schema: &Value, name: &str) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    fields.insert("type".to_owned(), Value::from(name));
    Value::Object(fields)
}

/// The same where strings are written otherwise.
fn without_string_type(schema: &Cursor<'_>) -> Value {
    let mut changed = schema.node().clone();
    if let Some(names) = changed.get_mut("type").and_then(Value::as_array_mut) {
        names.retain(|name| name != "string");
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(parts) = schema.list(keyword) {
            let others = parts.iter().filter(|part| !part.types().is_some_and(Types::only_string));
            changed[keyword] = others.map(|part| part.node().clone()).collect();
        }
    }
    changed
}

/// The same without strings.
fn without_strings(schema: &Cursor<'_>) -> Value {
    let mut whole = Map::new();
    let mut part = schema.standalone();
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
