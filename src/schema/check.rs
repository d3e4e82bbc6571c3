//! What is wrong with a schema that an answer is to be held to: a keyword that cannot be enforced, a value that is none,
//! a reference that leads nowhere.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    cursor::Cursor,
    format::is_refused,
    keyword::{self, keyword},
    types::named_types,
};

/// What is wrong with a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `#` and a JSON pointer.
    pub path: String,
    /// What is wrong there and what to do.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the schema cannot be used: at {}: {}", self.path, self.message)
    }
}

/// Goes through all schemas that instances are held to. Definitions count where something refers to them.
///
/// # Errors
/// The first problem.
pub fn check(schema: &Value) -> Result<(), Problem> {
    Check { seen: BTreeSet::new() }.schema(&Cursor::new(schema))
}

/// Whether a value can be a schema at all: an object, or a boolean.
pub fn is_schema(value: &Value) -> bool {
    keyword::is_schema(value)
}

struct Check {
    /// References that were followed.
    seen: BTreeSet<String>,
}

impl Check {
    fn schema(&mut self, schema: &Cursor<'_>) -> Result<(), Problem> {
        let problem = |message: String| Problem { path: format!("#{}", schema.pointer()), message };
        let fields = match schema.node() {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            _ => return Err(problem("a schema is an object or a boolean".into())),
        };
        fields.iter().try_for_each(|(name, value)| check_keyword(name, value, fields)).map_err(problem)?;
        check_values(schema.root(), fields).map_err(problem)?;
        if let Some(reference) = schema.reference() {
            self.reference(schema, reference)?;
        }
        let own = schema.pointer().len();
        let is_definition = |child: &Cursor<'_>| {
            let step = &child.pointer()[own..];
            step.starts_with("/$defs/") || step.starts_with("/definitions/")
        };
        schema.children().iter().filter(|child| !is_definition(child)).try_for_each(|child| self.schema(child))
    }

    /// Checks what a reference refers to. What is not a pointer into the schema llguidance resolves, so all that it
    /// could be is checked.
    fn reference(&mut self, schema: &Cursor<'_>, reference: &str) -> Result<(), Problem> {
        if !self.seen.insert(reference.to_owned()) {
            return Ok(());
        }
        let is_pointer = reference.strip_prefix('#').is_some_and(|path| path.is_empty() || path.starts_with('/'));
        if !is_pointer {
            let all = Cursor::new(schema.root()).children();
            return all.iter().try_for_each(|child| self.schema(child));
        }
        match schema.target(reference) {
            Some(target) => self.schema(&target),
            None => {
                let message = format!("\"$ref\" {reference:?} refers to nothing in the schema");
                Err(Problem { path: format!("#{}", schema.pointer()), message })
            }
        }
    }
}

fn check_keyword(name: &str, value: &Value, beside: &Map<String, Value>) -> Result<(), String> {
    let Some(row) = keyword(name) else { return Ok(()) };
    if let Some(instead) = row.refusal(value, beside) {
        return Err(format!("{name:?} cannot be enforced while the answer is written; {instead}"));
    }
    if !(row.holds)(value) {
        return Err(format!("{name:?} must be {}", row.what));
    }
    Ok(())
}

/// Keywords whose values llguidance would take for others, or for nothing.
fn check_values(root: &Value, fields: &Map<String, Value>) -> Result<(), String> {
    let numbers = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const", "enum"];
    if let Some(keyword) = numbers.iter().find(|keyword| fields.get(**keyword).is_some_and(is_inexact)) {
        return Err(format!("{keyword:?} has an integer of more than 53 bits, which would be rounded"));
    }
    let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    if fields.contains_key("prefixItems") && ["draft-0", "2019-09"].iter().any(|old| draft.contains(old)) {
        return Err("\"prefixItems\" restricts nothing in this draft; leave \"$schema\" out or use items".into());
    }
    // More names than one could be the same name twice.
    let required = fields.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    if fields.get("minProperties").and_then(Value::as_u64).is_some_and(|least| least > required + 1) {
        let message = "\"minProperties\" cannot be enforced beyond one more than are required; \
            list more names in \"required\"";
        return Err(message.into());
    }
    match fields.get("format").and_then(Value::as_str) {
        Some(format) if is_refused(format) && named_types(fields).contains(&"string") => {
            Err(format!("\"format\" {format:?} cannot be enforced while the answer is written; use \"pattern\""))
        }
        _ => Ok(()),
    }
}

/// Whether this or something in it is an integer that a double rounds.
fn is_inexact(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.as_i128().is_some_and(|integer| integer.unsigned_abs() > 1 << f64::MANTISSA_DIGITS)
        }
        Value::Array(items) => items.iter().any(is_inexact),
        Value::Object(fields) => fields.values().any(is_inexact),
        _ => false,
    }
}
