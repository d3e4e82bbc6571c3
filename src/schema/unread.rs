//! What of a schema restricts nothing, though whoever wrote it may think that it does.

use serde_json::{Map, Value};

use super::{
    cursor::Cursor,
    format::restricts,
    keyword::{KEYWORDS, keyword},
    types::named_types,
};

/// Names that say something to readers, not about instances. One of them is no misspelled keyword.
const ANNOTATIONS: [&str; 22] = [
    "$anchor",
    "$comment",
    "$id",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "id",
    "label",
    "propertyOrdering",
    "readOnly",
    "title",
    "writeOnly",
    "xml",
];

/// Shorter names are near to too many others.
const SHORTEST: usize = 4;

/// A part of a schema that restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// A JSON pointer.
    pub pointer: String,
    pub why: &'static str,
}

/// What restricts nothing in a schema and looks as if it did.
pub fn unread(schema: &Value) -> Vec<Unread> {
    let mut found = Vec::new();
    collect(&Cursor::new(schema), &mut found);
    found
}

fn collect(place: &Cursor<'_>, found: &mut Vec<Unread>) {
    let Some(fields) = place.node().as_object() else { return };
    let here = fields.iter().filter_map(|(name, value)| {
        let why = why(name, value, fields)?;
        Some(Unread { pointer: format!("{}/{name}", place.pointer()), why })
    });
    found.extend(here);
    place.children().iter().for_each(|child| collect(child, found));
}

fn why(name: &str, value: &Value, beside: &Map<String, Value>) -> Option<&'static str> {
    match (name, value) {
        ("format", Value::String(format)) if !restricts(format, &named_types(beside)) => {
            Some("no format of this name is defined for the types beside it, so it restricts nothing")
        }
        ("nullable", Value::Bool(true)) if !beside.contains_key("type") => {
            Some("it adds null to the types beside it, and there are none; list null among the alternatives")
        }
        ("nullable", Value::Bool(true)) if is_listed_without_null(beside) => {
            Some("the values beside it are listed, and null is none of them; list it as well")
        }
        _ if is_misspelled(name) => {
            Some("it is no keyword of JSON Schema, though it reads like one; check its spelling")
        }
        _ => None,
    }
}

fn is_listed_without_null(fields: &Map<String, Value>) -> bool {
    let values = fields.get("enum").and_then(Value::as_array);
    values.is_some_and(|values| !values.contains(&Value::Null)) || fields.get("const").is_some_and(|one| !one.is_null())
}

/// Whether this is a keyword but for its case, its hyphens or one letter.
fn is_misspelled(name: &str) -> bool {
    let is_own = keyword(name).is_some() || ANNOTATIONS.contains(&name) || name.starts_with("x-");
    let plain = |name: &str| -> String {
        name.chars().filter(|char| !"_-$".contains(*char)).flat_map(char::to_lowercase).collect()
    };
    let own = plain(name);
    own.len() >= SHORTEST && !is_own && KEYWORDS.iter().any(|keyword| is_near(&own, &plain(keyword.name)))
}

/// Whether two words are the same but for one letter, or two neighbours that changed places.
fn is_near(one: &str, other: &str) -> bool {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one.as_bytes()[same..], &other.as_bytes()[same..]);
    match (one, other) {
        ([], []) => true,
        ([a, b, one @ ..], [c, d, other @ ..]) if a == d && b == c && one == other => true,
        ([], [_]) | ([_], []) => true,
        ([_, rest @ ..], _) if rest == other => true,
        (_, [_, rest @ ..]) if one == rest => true,
        ([_, one @ ..], [_, other @ ..]) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_looks_like_a_restriction_is_told() {
        let schema = json!({
            "title": "A", "label": "x", "x-order": 1, "readonly": true, "example": 3, "maxlength": 3,
            "properties": {
                "requried": {"type": "string", "max_length": 3, "format": "passwort", "nullable": true},
                "b": {"$ref": "#/$defs/c", "nullable": true, "enums": [1]},
            },
            "$defs": {"c": {"type": "array", "item": {}, "itmes": {}, "format": "uuid", "minItem": 1}},
        });
        let pointers: Vec<String> = unread(&schema).into_iter().map(|unread| unread.pointer).collect();
        let expected = [
            "/maxlength",
            "/properties/requried/max_length",
            "/properties/requried/format",
            "/properties/b/nullable",
            "/properties/b/enums",
            "/$defs/c/item",
            "/$defs/c/itmes",
            "/$defs/c/format",
            "/$defs/c/minItem",
        ];
        assert_eq!(pointers, expected);
    }
}
