//! The keywords of JSON Schema, in all its drafts and in OpenAPI, and what becomes of each when an answer is held to a
//! schema. A keyword without a row restricts nothing: the specification calls unknown keywords annotations.

use serde_json::{Map, Value};

/// A keyword that means something.
#[derive(Debug, Clone, Copy)]
pub struct Keyword {
    /// As schemas spell it.
    pub name: &'static str,
    /// What becomes of it.
    pub becomes: Use,
    /// What its value must be, in words.
    pub what: &'static str,
    /// Whether a value is that.
    pub holds: fn(&Value) -> bool,
    /// Where in its value schemas stand.
    pub subschemas: Subschemas,
}

/// What becomes of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// JSON's grammar enforces it. The scope decides whether a notation that is not JSON does so, too.
    Enforced(Scope),
    /// It cannot be enforced while an answer is written; the text says what to use instead.
    Refused(&'static str),
    /// It holds schemas that others refer to, and restricts nothing by itself.
    Definitions,
}

/// Which values a keyword restricts, which decides what notations make of it that are not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them; notations enforce it beside any other keyword.
    Base,
    /// It stands for all that a schema says; notations enforce nothing beside it.
    Choice,
    /// Values that are no strings.
    Others,
    /// Strings.
    Strings,
    /// Notations do not enforce it.
    JsonOnly,
}

/// Where in a keyword's value schemas stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subschemas {
    /// There are none.
    None,
    /// The value is one.
    One,
    /// The value is a list of them.
    List,
    /// The value is one, or a list of them.
    OneOrList,
    /// The value has one under each name.
    Map,
}

/// Every keyword that means something. Those that notations do not enforce stand first, as they are looked for first.
pub const KEYWORDS: &[Keyword] = &[
    list("allOf", Scope::JsonOnly),
    map("patternProperties", Scope::JsonOnly),
    list("prefixItems", Scope::JsonOnly),
    one("additionalItems", Scope::JsonOnly),
    count("minProperties", Scope::JsonOnly),
    count("maxProperties", Scope::JsonOnly),
    list("anyOf", Scope::Choice),
    list("oneOf", Scope::Choice),
    plain("enum", Scope::Choice, "a list", Value::is_array),
    plain("const", Scope::Choice, "", |_| true),
    plain("minimum", Scope::Others, "a number", Value::is_number),
    plain("maximum", Scope::Others, "a number", Value::is_number),
    plain("exclusiveMinimum", Scope::Others, LIMIT, is_limit),
    plain("exclusiveMaximum", Scope::Others, LIMIT, is_limit),
    plain("multipleOf", Scope::Others, "a number above 0", |value| value.as_f64().is_some_and(|number| number > 0.0)),
    Keyword {
        subschemas: Subschemas::OneOrList,
        ..plain("items", Scope::Others, "a schema or a list of schemas", |value| is_schema(value) || value.is_array())
    },
    count("minItems", Scope::Others),
    count("maxItems", Scope::Others),
    map("properties", Scope::Others),
    plain("required", Scope::Others, "a list of names", is_names),
    one("additionalProperties", Scope::Others),
    plain("pattern", Scope::Strings, "a regular expression", Value::is_string),
    count("minLength", Scope::Strings),
    count("maxLength", Scope::Strings),
    plain("format", Scope::Strings, "a string", Value::is_string),
    plain("type", Scope::Base, "a type or a list of types", |value| value.is_string() || value.is_array()),
    plain("$ref", Scope::Base, "a string", Value::is_string),
    definitions("$defs"),
    definitions("definitions"),
    refused("not", "say what is allowed instead"),
    refused("if", CASES),
    refused("then", CASES),
    refused("else", CASES),
    refused("dependencies", CASES),
    refused("dependentRequired", CASES),
    refused("dependentSchemas", CASES),
    refused("propertyNames", "use patternProperties with additionalProperties: false"),
    refused("contains", "use prefixItems"),
    refused("minContains", "use prefixItems"),
    refused("maxContains", "use prefixItems"),
    refused("uniqueItems", "check the answer instead"),
    refused("unevaluatedItems", "use items"),
    refused("unevaluatedProperties", "use additionalProperties"),
    refused("$dynamicRef", "use $ref"),
    refused("$recursiveRef", "use $ref"),
    refused("nullable", "set it to true or false"),
    refused("divisibleBy", "use multipleOf"),
    refused("disallow", "say what is allowed instead"),
    refused("extends", "use allOf"),
    refused("x-guidance", "it is mettle's to set"),
];

const CASES: &str = "use anyOf with one schema for each case";
const LIMIT: &str = "a number or a boolean";

const fn plain(name: &'static str, scope: Scope, what: &'static str, holds: fn(&Value) -> bool) -> Keyword {
    Keyword { name, becomes: Use::Enforced(scope), what, holds, subschemas: Subschemas::None }
}

const fn count(name: &'static str, scope: Scope) -> Keyword {
    plain(name, scope, "a whole number", Value::is_u64)
}

const fn one(name: &'static str, scope: Scope) -> Keyword {
    Keyword { subschemas: Subschemas::One, ..plain(name, scope, "a schema", is_schema) }
}

const fn list(name: &'static str, scope: Scope) -> Keyword {
    Keyword { subschemas: Subschemas::List, ..plain(name, scope, "a list of schemas", Value::is_array) }
}

const fn map(name: &'static str, scope: Scope) -> Keyword {
    Keyword { subschemas: Subschemas::Map, ..plain(name, scope, "an object of schemas", Value::is_object) }
}

const fn definitions(name: &'static str) -> Keyword {
    Keyword { name, becomes: Use::Definitions, what: "", holds: |_| true, subschemas: Subschemas::Map }
}

const fn refused(name: &'static str, instead: &'static str) -> Keyword {
    Keyword { name, becomes: Use::Refused(instead), what: "", holds: |_| true, subschemas: Subschemas::None }
}

/// The row of a keyword; `None` for an annotation.
pub fn keyword(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// The names of the keywords of this scope.
pub(super) fn of_scope(scope: Scope) -> impl Iterator<Item = &'static str> {
    let is_of = move |keyword: &&Keyword| keyword.becomes == Use::Enforced(scope);
    KEYWORDS.iter().filter(is_of).map(|keyword| keyword.name)
}

impl Keyword {
    /// What to use instead of a keyword that is refused and that restricts something here. `beside` is the schema it
    /// stands in.
    pub fn refusal(&self, value: &Value, beside: &Map<String, Value>) -> Option<&'static str> {
        match self.becomes {
            Use::Refused(instead) if !restricts_nothing(self.name, value, beside) => Some(instead),
            _ => None,
        }
    }
}

/// Whether a keyword that is refused says nothing with this value.
fn restricts_nothing(keyword: &str, value: &Value, beside: &Map<String, Value>) -> bool {
    let has = |keyword: &str| beside.contains_key(keyword);
    let is_anything = || *value == true || value.as_object().is_some_and(Map::is_empty);
    match keyword {
        "uniqueItems" => *value == false,
        "if" => !has("then") && !has("else"),
        "then" | "else" => !has("if"),
        "minContains" | "maxContains" => !has("contains"),
        "dependencies" | "dependentRequired" | "dependentSchemas" => value.as_object().is_some_and(Map::is_empty),
        "unevaluatedItems" | "unevaluatedProperties" => is_anything(),
        _ => false,
    }
}

/// Whether a value can be a schema at all.
pub(super) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn is_limit(value: &Value) -> bool {
    value.is_number() || value.is_boolean()
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_has_one_row() {
        for row in KEYWORDS {
            let same = KEYWORDS.iter().filter(|other| other.name == row.name).count();
            assert_eq!(same, 1, "{}", row.name);
        }
    }
}
