//! Rules for the values of parameters in formats that set no quotes around strings: any text up to a tag where the
//! schema allows any string.

use serde_json::{Map, Value, json};

use super::{Notation, Rules, Spelling};
use crate::chat::{Tool, schema::Shape};

/// The types of JSON that are no strings.
const OTHERS: [&str; 6] = ["number", "integer", "boolean", "null", "array", "object"];

impl Rules<'_> {
    /// All parameters of a tool: what `head` writes before a value, the value, and `end`.
    pub(super) fn arguments(
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
    pub(super) fn argument(&mut self, schema: &Value, spelling: Spelling, end: &str) -> String {
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
    pub(super) fn argument_but(&mut self, schema: &Value, spelling: Spelling, begin: &str, end: &str) -> String {
        match is_free(schema) {
            true => self.until(&["/(?s:.*)/".to_owned(), format!("~({} /(?s:.*)/)", Value::from(begin))], end),
            false => self.argument(schema, spelling, end),
        }
    }

    /// A string of this schema as it is, and `end`; `None` where no string is allowed.
    pub(super) fn string(&mut self, schema: &Value, end: &str) -> Option<String> {
        let whole = Shape::of(schema.clone());
        if whole.types().is_some_and(|types| !types.string) {
            return None;
        }
        let node = resolved(schema);
        if let Some(texts) = fixed(&node) {
            let texts: Vec<String> =
                texts.iter().filter_map(Value::as_str).map(|text| self.literal(&format!("{text}{end}"))).collect();
            return Some(self.rule(&texts.join(" | "))).filter(|_| !texts.is_empty());
        }
        if let Some(parts) = ["anyOf", "oneOf"].iter().find_map(|list| node[*list].as_array()) {
            let parts: Vec<Value> = parts.iter().map(|part| with_definitions(part, schema)).collect();
            if parts.iter().any(is_free) {
                return Some(self.text_until(end));
            }
            let choices: Vec<String> = parts.iter().filter_map(|part| self.string(part, end)).collect();
            return Some(self.rule(&choices.join(" | "))).filter(|_| !choices.is_empty());
        }
        let terms = terms(&node);
        Some(if terms.is_empty() { self.text_until(end) } else { self.until(&terms, end) })
    }

    /// A value of this schema that is no string, and `end`; `None` where only strings are allowed.
    pub(super) fn no_string(&mut self, schema: &Value, spelling: Spelling, end: &str) -> Option<String> {
        let types = Shape::of(schema.clone()).types();
        if types.is_some_and(|types| types.only_string()) {
            return None;
        }
        let mut choices = vec![match types {
            Some(types) if !types.string => self.json(schema),
            _ => self.json(&without_strings(schema)),
        }];
        let node = resolved(schema);
        if spelling != Spelling::Json && fixed(&node).is_none() {
            let allows = |value: Value| types.is_none_or(|types| types.allow(&value));
            for (value, word) in [(json!(true), "True"), (json!(false), "False"), (json!(null), "None")] {
                choices.extend(allows(value).then(|| self.literal(word)));
            }
        }
        let holds_others = types.is_some_and(|types| types.array || types.object);
        if spelling == Spelling::Repr && holds_others && is_kept(&node) {
            choices.push(Notation::PYTHON.value(self, &node));
        }
        Some(format!("({}) {}", choices.join(" | "), self.literal(end)))
    }
}

/// Whether any text is a value of this schema.
fn is_free(schema: &Value) -> bool {
    const SAYS: [&str; 9] = ["enum", "const", "pattern", "minLength", "maxLength", "format", "anyOf", "oneOf", "allOf"];
    let node = resolved(schema);
    let types = Shape::of(schema.clone()).types();
    types.is_none_or(|types| types.string) && SAYS.iter().all(|key| node.get(*key).is_none())
}

/// Whether [`Notation`] keeps all that the schema asks for.
fn is_kept(node: &Value) -> bool {
    const KEPT: &str = "type title description default examples items properties required additionalProperties enum \
        const anyOf oneOf $ref $defs definitions minItems maxItems minimum maximum exclusiveMinimum exclusiveMaximum \
        multipleOf pattern minLength maxLength format";
    let Some(members) = node.as_object() else { return true };
    let part = |name: &str| members.get(name).is_none_or(is_kept);
    let parts =
        |name: &str| members.get(name).and_then(Value::as_object).is_none_or(|parts| parts.values().all(is_kept));
    members.keys().all(|key| KEPT.split_whitespace().any(|kept| kept == key))
        && part("items")
        && ["properties", "$defs", "definitions"].into_iter().all(parts)
}

/// What a schema asks of a string's text, as terms of Lark.
pub(super) fn terms(node: &Value) -> Vec<String> {
    let mut terms: Vec<String> = node["pattern"].as_str().map(anchored).into_iter().collect();
    if node.get("minLength").is_some() || node.get("maxLength").is_some() {
        let least = node["minLength"].as_u64().unwrap_or(0);
        let most = node["maxLength"].as_u64().map_or(String::new(), |most| most.to_string());
        terms.push(format!("/(?s:.{{{least},{most}}})/"));
    }
    terms
}

/// The values that the schema lists.
fn fixed(node: &Value) -> Option<Vec<Value>> {
    let one = node.get("const").map(|value| vec![value.clone()]);
    one.or_else(|| node["enum"].as_array().cloned())
}

/// What a schema refers to, with the definitions that it may refer to in turn.
pub(super) fn resolved(schema: &Value) -> Value {
    let mut node = schema;
    for _ in 0..16 {
        let Some(pointer) = node["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) else { break };
        let Some(next) = schema.pointer(pointer) else { break };
        node = next;
    }
    with_definitions(node, schema)
}

/// A part of a schema that carries the definitions of the whole.
pub(super) fn with_definitions(part: &Value, whole: &Value) -> Value {
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
