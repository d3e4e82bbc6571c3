//! JSON Schemas before llguidance compiles them. It ignores keywords that the schema's draft does not have and takes
//! options out of the schema itself; here every keyword that restricts instances is either one that is enforced, or
//! the schema is refused with the keyword and where it stands.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Whether a keyword's value is one.
type Holds = fn(&Value) -> bool;

/// What llguidance enforces, what a value of it must be, and whether one is that. The checks are its own, but it makes
/// them only where the schema's type needs the keyword.
const ENFORCED: &[(&str, &str, Holds)] = &[
    ("type", "a type or a list of types", |value| value.is_string() || value.is_array()),
    ("enum", "a list", Value::is_array),
    ("const", "", |_| true),
    ("$ref", "a string", Value::is_string),
    ("anyOf", "a list of schemas", Value::is_array),
    ("oneOf", "a list of schemas", Value::is_array),
    ("allOf", "a list of schemas", Value::is_array),
    ("items", "a schema or a list of schemas", |value| is_schema(value) || value.is_array()),
    ("additionalItems", "a schema", is_schema),
    ("prefixItems", "a list of schemas", Value::is_array),
    ("minItems", "a whole number", Value::is_u64),
    ("maxItems", "a whole number", Value::is_u64),
    ("properties", "an object of schemas", Value::is_object),
    ("additionalProperties", "a schema", is_schema),
    ("patternProperties", "an object of schemas", Value::is_object),
    ("required", "a list of names", |value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string))),
    ("minProperties", "a whole number", Value::is_u64),
    ("maxProperties", "a whole number", Value::is_u64),
    ("minLength", "a whole number", Value::is_u64),
    ("maxLength", "a whole number", Value::is_u64),
    ("pattern", "a regular expression", Value::is_string),
    ("format", "a string", Value::is_string),
    ("minimum", "a number", Value::is_number),
    ("maximum", "a number", Value::is_number),
    ("exclusiveMinimum", "a number or a boolean", |value| value.is_number() || value.is_boolean()),
    ("exclusiveMaximum", "a number or a boolean", |value| value.is_number() || value.is_boolean()),
    ("multipleOf", "a number above 0", |value| value.as_f64().is_some_and(|number| number > 0.0)),
];

/// What restricts instances in some draft or in OpenAPI, and cannot be enforced. Any other keyword restricts nothing,
/// as the specification has it: unknown keywords are annotations.
const REFUSED: &[(&str, &str)] = &[
    ("not", "say what is allowed instead"),
    ("if", "use anyOf with one schema for each case"),
    ("then", "use anyOf with one schema for each case"),
    ("else", "use anyOf with one schema for each case"),
    ("dependencies", "use anyOf with one schema for each case"),
    ("dependentRequired", "use anyOf with one schema for each case"),
    ("dependentSchemas", "use anyOf with one schema for each case"),
    ("propertyNames", "use patternProperties with additionalProperties: false"),
    ("contains", "use prefixItems"),
    ("minContains", "use prefixItems"),
    ("maxContains", "use prefixItems"),
    ("uniqueItems", "check the answer instead"),
    ("unevaluatedItems", "use items"),
    ("unevaluatedProperties", "use additionalProperties"),
    ("$dynamicRef", "use $ref"),
    ("$recursiveRef", "use $ref"),
    ("nullable", "use a list of types, such as [\"string\", \"null\"]"),
    ("divisibleBy", "use multipleOf"),
    ("disallow", "say what is allowed instead"),
    ("extends", "use allOf"),
    ("x-guidance", "it is mettle's to set"),
];

/// Where subschemas stand: in maps, in lists, or by themselves.
const MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
const LISTS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems", "items"];
const SINGLE: &[&str] = &["items", "additionalItems", "additionalProperties"];

/// What may stand between two tokens of JSON: a space, or a line's end and its indentation. JSON allows any amount,
/// which a weak model may go on with for ever; this much is how JSON is printed.
const WHITESPACE: &str = r"[ \t]|\r?\n[ \t]{0,64}";

/// What is wrong with a schema, and where, as a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub path: String,
    pub message: String,
}

/// The schema as llguidance is to have it: equivalent, without what restricts nothing, and with mettle's options.
pub(super) fn prepare(schema: &Value) -> Result<Value, Problem> {
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        other => other.clone(),
    };
    let Value::Object(_) = &schema else {
        let message = "a schema is an object; of false, nothing would be an instance".to_owned();
        return Err(Problem { path: "#".into(), message });
    };
    Check { root: &schema, seen: BTreeSet::new() }.schema(&schema, "#")?;
    rewrite(&mut schema);
    schema["x-guidance"] = json!({"whitespace_pattern": WHITESPACE});
    Ok(schema)
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// The subschemas of a schema, each with its path from there.
pub(super) fn children(schema: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        match value {
            Value::Object(map) if MAPS.contains(&keyword) => {
                found.extend(map.iter().map(|(name, child)| (format!("/{keyword}/{}", escaped(name)), child)));
            }
            Value::Array(list) if LISTS.contains(&keyword) => {
                found.extend(list.iter().enumerate().map(|(index, child)| (format!("/{keyword}/{index}"), child)));
            }
            child if SINGLE.contains(&keyword) => found.push((format!("/{keyword}"), child)),
            _ => {}
        }
    }
    found
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Goes through all schemas that instances are held to. Definitions count where something refers to them.
struct Check<'a> {
    root: &'a Value,
    seen: BTreeSet<String>,
}

impl<'a> Check<'a> {
    fn schema(&mut self, schema: &'a Value, path: &str) -> Result<(), Problem> {
        let problem = |message: String| Err(Problem { path: path.to_owned(), message });
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            _ => return problem("a schema is an object or a boolean".into()),
        };
        for (keyword, value) in fields {
            if let Some((_, fix)) = REFUSED.iter().find(|(name, _)| name == keyword)
                && !restricts_nothing(keyword, value, fields)
            {
                return problem(format!("{keyword:?} cannot be enforced while the answer is written; {fix}"));
            }
            if let Some((_, what, holds)) = ENFORCED.iter().find(|(name, ..)| name == keyword)
                && !holds(value)
            {
                return problem(format!("{keyword:?} must be {what}"));
            }
        }
        self.values(fields).or_else(problem)?;
        if let Some(Value::String(reference)) = fields.get("$ref") {
            self.reference(reference, path)?;
        }
        let defined = |step: &str| step.starts_with("/$defs/") || step.starts_with("/definitions/");
        for (step, child) in children(fields).into_iter().filter(|(step, _)| !defined(step)) {
            self.schema(child, &format!("{path}{step}"))?;
        }
        Ok(())
    }

    /// Keywords whose values llguidance would take for others, or for nothing.
    fn values(&self, fields: &Map<String, Value>) -> Result<(), String> {
        let numbers = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const", "enum"];
        if let Some(keyword) = numbers.iter().find(|keyword| fields.get(**keyword).is_some_and(is_inexact)) {
            return Err(format!("{keyword:?} has an integer of more than 53 bits, which would be rounded"));
        }
        let draft = self.root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        if fields.contains_key("prefixItems") && ["draft-0", "2019-09"].iter().any(|old| draft.contains(old)) {
            return Err("\"prefixItems\" restricts nothing in this draft; leave \"$schema\" out or use items".into());
        }
        // More names than one could be the same name twice.
        let required = fields.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        if fields.get("minProperties").and_then(Value::as_u64).is_some_and(|least| least > required + 1) {
            return Err("\"minProperties\" cannot be enforced beyond one more than are required; \
                        list more names in \"required\""
                .into());
        }
        match fields.get("format").and_then(Value::as_str) {
            Some(format) if !types(fields).contains(&"string") && number_format(format).is_none() => {
                Err(format!("\"format\" {format:?} is not known for this type; leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// Checks what a reference refers to. What is not a pointer into the schema llguidance resolves, so all that it
    /// could be is checked.
    fn reference(&mut self, reference: &str, path: &str) -> Result<(), Problem> {
        if !self.seen.insert(reference.to_owned()) {
            return Ok(());
        }
        let root = self.root;
        let pointer = reference.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        if let Some(pointer) = pointer {
            return match root.pointer(&percent_decoded(pointer)) {
                Some(target) => self.schema(target, reference),
                None => {
                    let message = format!("\"$ref\" {reference:?} refers to nothing in the schema");
                    Err(Problem { path: path.to_owned(), message })
                }
            };
        }
        for (step, child) in root.as_object().map(children).unwrap_or_default() {
            self.schema(child, &format!("#{step}"))?;
        }
        Ok(())
    }
}

/// Whether a keyword that is refused says nothing with this value.
fn restricts_nothing(keyword: &str, value: &Value, beside: &Map<String, Value>) -> bool {
    let has = |keyword: &str| beside.contains_key(keyword);
    let anything = || *value == true || value.as_object().is_some_and(Map::is_empty);
    match keyword {
        "uniqueItems" | "nullable" => *value == false,
        "if" => !has("then") && !has("else"),
        "then" | "else" => !has("if"),
        "minContains" | "maxContains" => !has("contains"),
        "dependencies" | "dependentRequired" | "dependentSchemas" => value.as_object().is_some_and(Map::is_empty),
        "propertyNames" | "unevaluatedItems" | "unevaluatedProperties" => anything(),
        _ => false,
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

/// The types a schema names; all of them where it names none.
fn types(fields: &Map<String, Value>) -> Vec<&str> {
    match fields.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec!["null", "boolean", "integer", "number", "string", "array", "object"],
    }
}

/// The formats of numbers in OpenAPI, as what they restrict.
fn number_format(format: &str) -> Option<Value> {
    let whole = |minimum: f64, maximum: f64| {
        let types = ["integer", "null", "boolean", "array", "object"];
        Some(json!({"type": types, "minimum": minimum, "maximum": maximum}))
    };
    match format {
        "int32" => whole(i32::MIN.into(), i32::MAX.into()),
        // The greatest that a double holds, and its negative, which the range's compiler can negate again.
        "int64" => whole(-9_223_372_036_854_774_784.0, 9_223_372_036_854_774_784.0),
        "float" | "double" => Some(json!({})),
        _ => None,
    }
}

/// A day of the calendar: of February, the 29th in leap years only.
const DAY: &str = "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
    |02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const TIME: &str =
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

/// RFC 3339's formats as a pattern. llguidance's leave open days that no year has, and leap seconds, which only a few
/// moments had.
fn calendar(format: &str) -> Option<String> {
    match format {
        "date" => Some(format!("^{DAY}$")),
        "time" => Some(format!("^{TIME}$")),
        "date-time" => Some(format!("^{DAY}[tT]{TIME}$")),
        _ => None,
    }
}

/// A format of strings as a pattern, where strings have no quotes and llguidance cannot read them as JSON.
pub fn text_format(format: &str) -> Option<String> {
    const UUID: &str = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
    const BYTE: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    const LABEL: &str = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    match format {
        "uuid" => Some(UUID.to_owned()),
        "ipv4" => Some(format!(r"^{BYTE}(?:\.{BYTE}){{3}}$")),
        "hostname" => Some(format!(r"^{LABEL}(?:\.{LABEL}){{0,3}}$")),
        "email" => {
            const ATOM: &str = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";
            Some(format!(r"^{ATOM}(?:\.{ATOM})*@{LABEL}(?:\.{LABEL})+$"))
        }
        other => calendar(other),
    }
}

/// Writes a schema and all below it in what llguidance knows in every draft.
fn rewrite(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    let beside = fields.clone();
    fields.retain(|keyword, _| !REFUSED.iter().any(|(name, _)| name == keyword));
    if let Some(value) = fields.remove("const") {
        // The older drafts have no const.
        let constant = json!({"enum": [value]});
        and(fields, constant);
    }
    let numeric = !types(&beside).contains(&"string");
    let format = fields.get("format").and_then(Value::as_str).and_then(number_format);
    if let Some(restriction) = format.filter(|_| numeric) {
        fields.remove("format");
        and(fields, restriction);
    }
    if let Some(pattern) = fields.get("format").and_then(Value::as_str).and_then(calendar) {
        fields.remove("format");
        restrict(fields, "pattern", json!(pattern));
    }
    if fields.contains_key("multipleOf") {
        // Beyond this, who reads the answer rounds, and a multiple may be none any more.
        let exact = (1u64 << f64::MANTISSA_DIGITS) as f64;
        restrict(fields, "minimum", json!(-exact));
        restrict(fields, "maximum", json!(exact));
    }
    for (keyword, value) in fields.iter_mut() {
        let keyword = keyword.as_str();
        match value {
            Value::Object(map) if MAPS.contains(&keyword) => map.values_mut().for_each(rewrite),
            Value::Array(list) if LISTS.contains(&keyword) => list.iter_mut().for_each(rewrite),
            child if SINGLE.contains(&keyword) => rewrite(child),
            _ => {}
        }
    }
}

/// Sets a keyword, beside one of the same name if there is one.
fn restrict(fields: &mut Map<String, Value>, keyword: &str, value: Value) {
    match fields.contains_key(keyword) {
        true => and(fields, json!({keyword: value})),
        false => drop(fields.insert(keyword.to_owned(), value)),
    }
}

/// Restricts a schema further.
fn and(fields: &mut Map<String, Value>, restriction: Value) {
    match fields.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(restriction),
        _ => drop(fields.insert("allOf".into(), json!([restriction]))),
    }
}

/// What llguidance says of a schema, in our words where its own would not help.
pub(super) fn explained(message: &str) -> String {
    let begins = |text: &str| message.starts_with(text);
    if begins("oneOf constraints") {
        return "\"oneOf\" cannot be enforced while the answer is written where an instance of one schema may be one of \
                another; use anyOf, or give each schema a required property with a const of its own"
            .to_owned();
    }
    if begins("min/maxProperties only") {
        return "\"minProperties\" and \"maxProperties\" cannot be enforced beside properties that are not required"
            .to_owned();
    }
    match message.strip_prefix("Unknown format: ") {
        Some(format) => format!("\"format\" {format:?} is not known; leave it out or use pattern"),
        None if begins("regex parse error") => format!("\"pattern\" cannot be used: {message}"),
        None => message.to_owned(),
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
