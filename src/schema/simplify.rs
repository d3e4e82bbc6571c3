//! A schema by what its keywords say instead of by their names: what allows everything is left out, what allows nothing
//! becomes `false`, and what has a plainer spelling gets it. The schema that results has the same instances, each part
//! of it in its old place.

use serde_json::{Map, Value, json};

use super::{
    cursor::for_each_child,
    format::restricts,
    keyword::{Scope, Use, keyword},
    types::{NAMES, named_types},
};

/// An equivalent schema of plainer keywords.
pub fn simplified(schema: &Value) -> Value {
    let mut schema = schema.clone();
    simplify(&mut schema);
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for_each_child(fields, simplify);
    without_not(fields);
    if fields.get("not").is_some_and(is_everything) {
        *schema = Value::Bool(false);
        return;
    }
    with_null(fields);
    with_patterns(fields);
    if fields.get("format").and_then(Value::as_str).is_some_and(|format| !restricts(format, &named_types(fields))) {
        fields.remove("format");
    }
}

/// `not` of nothing says nothing, and `not` of types is the other types.
fn without_not(fields: &mut Map<String, Value>) {
    let Some(not) = fields.get("not") else { return };
    if is_nothing(not) {
        fields.remove("not");
    } else if let Some(others) = types_but(not) {
        let left: Vec<&str> = named_types(fields).into_iter().filter(|name| others.contains(name)).collect();
        if !left.is_empty() {
            let types = json!(left);
            fields.remove("not");
            fields.insert("type".into(), types);
        }
    }
}

/// The types that are left where a schema names types and nothing else; `None` where there are none, or where whole
/// numbers are to be told from others.
fn types_but(schema: &Value) -> Option<Vec<&'static str>> {
    let fields = schema.as_object()?;
    let mut says = fields.keys().filter(|name| keyword(name).is_some());
    let taken = (says.next()? == "type" && says.next().is_none()).then(|| named_types(fields))?;
    if taken.contains(&"integer") && !taken.contains(&"number") {
        return None;
    }
    let has_numbers = taken.contains(&"number");
    let is_left = |name: &&str| !(taken.contains(name) || has_numbers && *name == "integer");
    let left: Vec<&'static str> = NAMES.iter().copied().filter(is_left).collect();
    (!left.is_empty()).then_some(left)
}

/// OpenAPI's `nullable` is one type more, where types are named; elsewhere it says nothing, and neither does it add to
/// the values that are listed.
fn with_null(fields: &mut Map<String, Value>) {
    let Some(Value::Bool(nullable)) = fields.get("nullable") else { return };
    if *nullable && fields.contains_key("type") && !named_types(fields).contains(&"null") {
        let types: Vec<&str> = named_types(fields).into_iter().chain(["null"]).collect();
        let types = json!(types);
        fields.insert("type".into(), types);
    }
    fields.remove("nullable");
}

/// `propertyNames`: what all names satisfy says nothing, and what else it says of an object's further names is a
/// pattern of them.
fn with_patterns(fields: &mut Map<String, Value>) {
    let Some(names) = fields.get("propertyNames") else { return };
    if allows_all_strings(names) {
        fields.remove("propertyNames");
        return;
    }
    let declared = fields.get("properties").and_then(Value::as_object);
    let has_patterns = fields.get("patternProperties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let Some(pattern) = pattern_of(names, declared).filter(|_| !has_patterns) else { return };
    let further = fields.remove("additionalProperties").unwrap_or(Value::Bool(true));
    fields.remove("propertyNames");
    fields.insert("patternProperties".into(), json!({pattern: further}));
    fields.insert("additionalProperties".into(), Value::Bool(false));
}

/// The pattern of names that this schema allows beside those that are declared, which it allows all; `None` where that
/// is not certain.
fn pattern_of(names: &Value, declared: Option<&Map<String, Value>>) -> Option<String> {
    let fields = names.as_object()?;
    let says = fields.iter().filter(|(name, value)| !says_nothing_of_strings(name, value, fields));
    let says: Vec<(&str, &Value)> = says.map(|(name, value)| (name.as_str(), value)).collect();
    let is_declared = |name: &str| declared.is_some_and(|declared| declared.contains_key(name));
    let listed = match says.as_slice() {
        [("enum", Value::Array(values))] => values.as_slice(),
        [("const", value)] => std::slice::from_ref(*value),
        [("pattern", Value::String(pattern))] if declared.is_none_or(Map::is_empty) => return Some(pattern.clone()),
        _ => return None,
    };
    let listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
    if declared.is_some_and(|declared| declared.keys().any(|name| !listed.contains(&name.as_str()))) {
        return None;
    }
    let further: Vec<String> = listed.iter().filter(|name| !is_declared(name)).map(|name| escaped(name)).collect();
    (!further.is_empty()).then(|| format!("^(?:{})$", further.join("|")))
}

/// A name as a pattern that matches it alone.
fn escaped(name: &str) -> String {
    let escape = |char: char| match char {
        '\\' | '^' | '$' | '.' | '|' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}' | '/' => format!("\\{char}"),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        other => other.to_string(),
    };
    name.chars().map(escape).collect()
}

/// Whether every string is an instance.
fn allows_all_strings(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().all(|(name, value)| says_nothing_of_strings(name, value, fields)),
        other => *other == true,
    }
}

/// Whether a keyword says nothing of strings, beside the keywords that it stands with.
fn says_nothing_of_strings(name: &str, value: &Value, beside: &Map<String, Value>) -> bool {
    match (name, keyword(name).map(|row| row.becomes)) {
        (_, None | Some(Use::Definitions | Use::Enforced(Scope::Others))) => true,
        ("type", _) => named_types(beside).contains(&"string"),
        ("minLength", _) => *value == 0,
        ("not", _) => is_nothing(value),
        ("nullable", _) => true,
        _ => false,
    }
}

/// Whether everything is an instance, as far as it shows.
fn is_everything(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().all(|(name, value)| match keyword(name) {
            Some(row) if row.becomes != Use::Definitions => name == "not" && is_nothing(value),
            _ => true,
        }),
        other => *other == true,
    }
}

/// Whether nothing is an instance, as far as it shows.
fn is_nothing(schema: &Value) -> bool {
    *schema == false || schema.get("not").is_some_and(is_everything)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        assert_eq!(simplified(&schema), expected, "{schema}");
    }

    #[test]
    fn negations_that_say_nothing_all_or_a_type() {
        let at = |schema: Value| json!({"anyOf": [schema, {"type": "string"}]});
        for nothing in [json!({"not": {}}), json!({"not": true}), json!({"not": {"title": "x"}, "type": "null"})] {
            check(at(nothing), at(json!(false)));
        }
        check(json!({"not": false, "minLength": 1}), json!({"minLength": 1}));
        check(json!({"not": {"not": {"description": "all"}}}), json!({}));
        let others = json!(["boolean", "string", "array", "object"]);
        check(json!({"not": {"type": ["null", "number"]}}), json!({"type": others}));
        check(json!({"type": ["string", "null"], "not": {"type": "null"}}), json!({"type": ["string"]}));
        check(json!({"not": {"type": "integer"}}), json!({"not": {"type": "integer"}}));
        check(json!({"not": {"type": "string", "minLength": 1}}), json!({"not": {"type": "string", "minLength": 1}}));
    }

    #[test]
    fn nullable_is_one_type_more() {
        check(json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]}));
        check(json!({"type": ["null", "array"], "nullable": true}), json!({"type": ["null", "array"]}));
        check(json!({"type": "string", "nullable": false}), json!({"type": "string"}));
        check(json!({"$ref": "#/$defs/a", "nullable": true}), json!({"$ref": "#/$defs/a"}));
    }

    #[test]
    fn names_of_properties() {
        let number = json!({"type": "number"});
        for all in [json!({"type": "string"}), json!(true), json!({"minLength": 0, "description": "a name"})] {
            check(
                json!({"propertyNames": all, "additionalProperties": number}),
                json!({"additionalProperties": number}),
            );
        }
        let restricted = |pattern: &str| json!({"patternProperties": {pattern: number}, "additionalProperties": false});
        let with = |names: Value| json!({"propertyNames": names, "additionalProperties": number});
        check(with(json!({"pattern": "^x-"})), restricted("^x-"));
        check(with(json!({"type": "string", "enum": ["a.b", "c"]})), restricted("^(?:a\\.b|c)$"));
        let declared = json!({"properties": {"a": true}, "propertyNames": {"enum": ["a", "b"]}});
        let plain =
            json!({"properties": {"a": true}, "patternProperties": {"^(?:b)$": true}, "additionalProperties": false});
        check(declared, plain);
        for kept in [json!({"maxLength": 3}), json!({"$ref": "#/$defs/name"}), json!({"type": "number"})] {
            check(json!({"propertyNames": kept}), json!({"propertyNames": kept}));
        }
    }
}
