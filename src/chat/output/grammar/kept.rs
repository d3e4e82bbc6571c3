//! What of a schema the grammars of notations keep that are not JSON. What they do not is refused, never left open.

use serde_json::Value;

use super::values::resolved;
use crate::chat::schema::Shape;

/// Keywords that only the grammar of JSON itself knows.
const NEVER: &[&str] =
    &["allOf", "patternProperties", "prefixItems", "additionalItems", "minProperties", "maxProperties"];

/// Keywords that stand for all that a schema says.
const CHOICES: &[&str] = &["anyOf", "oneOf", "enum", "const"];

/// Keywords that restrict values which are no strings.
const OTHERS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "additionalProperties",
];

/// Keywords that restrict strings.
const STRINGS: &[&str] = &["pattern", "minLength", "maxLength", "format"];

/// The first keyword of a schema, without what is below it, that these notations do not keep.
pub(in crate::chat::output) fn unkept(node: &Value) -> Option<&'static str> {
    let has = |keyword: &&&str| node.get(**keyword).is_some();
    let restricting = || NEVER.iter().chain(CHOICES).chain(OTHERS).chain(STRINGS);
    if let Some(keyword) = NEVER.iter().find(has) {
        return Some(keyword);
    }
    if node.get("items").is_some_and(Value::is_array) {
        return Some("items");
    }
    if let Some(choice) = CHOICES.iter().find(has) {
        return restricting().find(|keyword| has(keyword) && *keyword != choice).copied();
    }
    // Of a value that may be anything a keyword says something for one type only.
    match Shape::of(node.clone()).types() {
        None => restricting().find(has).copied(),
        Some(_) => None,
    }
}

/// Why an object's members cannot be listed, if so: a name that must be there and is not described.
pub(in crate::chat::output) fn undescribed(node: &Value) -> Option<&str> {
    let names = node["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.into_iter().find(|name| node["properties"].get(name).is_none())
}

/// A reference to another place than the definitions, which parts of a schema take with them.
pub(in crate::chat::output) fn foreign_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str);
            own.filter(|reference| !["#/$defs/", "#/definitions/"].iter().any(|place| reference.starts_with(place)))
                .or_else(|| fields.values().find_map(foreign_reference))
        }
        Value::Array(items) => items.iter().find_map(foreign_reference),
        _ => None,
    }
}

/// Whether a value of this schema that is no string is restricted by more than its type.
fn restricts_others(node: &Value, depth: usize) -> bool {
    let node = resolved(node);
    let fixed = node["enum"].as_array().into_iter().flatten().chain(node.get("const"));
    let parts = ["anyOf", "oneOf"].iter().filter_map(|list| node[*list].as_array()).flatten();
    OTHERS.iter().any(|keyword| node.get(*keyword).is_some())
        || fixed.into_iter().any(|value| !value.is_string() && !value.is_null())
        || depth > 0
            && parts.into_iter().any(|part| restricts_others(&super::values::with_definitions(part, &node), depth - 1))
}

/// How a string without quotes must begin, as terms of Lark, where it might be read as another value that the schema
/// restricts. By its first character: llguidance looks for the longest lexeme, and a text that may still become a
/// string would hide the number that it is.
pub(in crate::chat::output) fn no_other(schema: &Value) -> Vec<String> {
    let Some(types) = Shape::of(schema.clone()).types().filter(|types| types.string) else { return Vec::new() };
    if types.only_string() || !restricts_others(schema, 4) {
        return Vec::new();
    }
    let container = (types.array || types.object).then_some(r"\[{");
    let number = (types.number || types.integer).then_some(r"0-9\-");
    let word = types.boolean.then_some("tTfF");
    let begins: String = container.into_iter().chain(number).chain(word).collect();
    vec![format!(r"/\s*([^\s{begins}](?s:.*))?/")]
}
