//! What of a schema the grammars of notations enforce that are not JSON. What they do not is refused, never left open.

use serde_json::Value;

use super::{
    cursor::Cursor,
    keyword::{Scope, of_scope},
};

/// Scopes in the order in which their keywords are looked for.
const SCOPES: [Scope; 4] = [Scope::JsonOnly, Scope::Choice, Scope::Others, Scope::Strings];

/// The first keyword of a schema, without what is below it, that these notations do not enforce. The schema is one that
/// is no reference.
pub fn unsupported(schema: &Cursor<'_>) -> Option<&'static str> {
    let has = |keyword: &&str| schema.get(keyword).is_some();
    let mut restricting = SCOPES.into_iter().flat_map(of_scope);
    if let Some(keyword) = of_scope(Scope::JsonOnly).find(has) {
        return Some(keyword);
    }
    if schema.get("items").is_some_and(Value::is_array) {
        return Some("items");
    }
    if let Some(choice) = of_scope(Scope::Choice).find(has) {
        return restricting.find(|keyword| has(keyword) && *keyword != choice);
    }
    // Of a value that may be anything a keyword says something for one type only.
    match schema.types() {
        None => restricting.find(has),
        Some(_) => None,
    }
}

/// Why an object's members cannot be listed, if so: a name that must be there and is not described.
pub fn undescribed<'a>(schema: &Cursor<'a>) -> Option<&'a str> {
    let required = schema.get("required").and_then(Value::as_array);
    let described = schema.get("properties");
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    names.find(|name| described.is_none_or(|properties| properties.get(name).is_none()))
}

/// A reference to another place than the definitions, which parts of a schema take with them.
pub fn foreign_reference(schema: &Value) -> Option<&str> {
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

/// Whether a value of this schema that is no string is restricted by more than its type. Looks through `depth` choices
/// within choices.
pub fn restricts_others(schema: &Cursor<'_>, depth: usize) -> bool {
    let place = schema.resolved();
    let values = place.get("enum").and_then(Value::as_array);
    let mut fixed = values.into_iter().flatten().chain(place.get("const"));
    let choices = || ["anyOf", "oneOf"].iter().filter_map(|keyword| place.list(keyword)).flatten();
    of_scope(Scope::Others).any(|keyword| place.get(keyword).is_some())
        || fixed.any(|value| !value.is_string() && !value.is_null())
        || depth > 0 && choices().any(|part| restricts_others(&part, depth - 1))
}
