//! Names that a schema does not declare, by their value. llguidance tells them from declared ones by their spelling, so
//! `"\u0061"` would pass for another name than `"a"`. A pattern it enforces by value, and what is declared by name alone
//! can be said as a pattern of all other names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::cursor::for_each_child;

/// Characters of an object's declared names, in all, that a pattern excludes.
const LONGEST: usize = 4000;

/// Keywords whose schemas llguidance merges with what stands beside them. It merges no two patterns of names that have
/// a name in common.
const MERGED: [&str; 4] = ["allOf", "anyOf", "oneOf", "$ref"];

/// A pattern of all names. Those that are declared llguidance leaves out.
const ANY: &str = r"^(?:.|\n)*$";

/// Makes patterns of the names that a schema's objects leave open. Whether that is done everywhere; where it is not,
/// names must be written without escapes of other characters than those that need one.
pub fn by_value(schema: &mut Value) -> bool {
    let is_merged = merges(schema);
    if is_merged && any(schema, &|fields| has_members(fields, "patternProperties")) {
        return !any(schema, &is_open);
    }
    exclude(schema, is_merged)
}

/// Whether objects with declared names are merged with others anywhere.
fn merges(schema: &mut Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    let parts = MERGED.iter().filter_map(|keyword| fields.get(*keyword)).count();
    let several = fields.get("allOf").and_then(Value::as_array).is_some_and(|all| all.len() > 1);
    let mut found = several || parts > 1 || parts == 1 && has_members(fields, "properties");
    for_each_child(fields, |child| found |= merges(child));
    found
}

/// Whether this holds of a schema or of one below it.
fn any(schema: &mut Value, holds: &dyn Fn(&Map<String, Value>) -> bool) -> bool {
    let Value::Object(fields) = schema else { return false };
    let mut found = holds(fields);
    for_each_child(fields, |child| found |= any(child, holds));
    found
}

fn exclude(schema: &mut Value, is_merged: bool) -> bool {
    let Value::Object(fields) = schema else { return true };
    let mut done = true;
    for_each_child(fields, |child| done &= exclude(child, is_merged));
    if !is_open(fields) {
        return done;
    }
    let Some(pattern) = pattern_of_others(fields, is_merged) else { return false };
    let further = fields.remove("additionalProperties").unwrap_or(Value::Bool(true));
    fields.insert("patternProperties".into(), json!({pattern: further}));
    fields.insert("additionalProperties".into(), Value::Bool(false));
    done
}

/// A pattern of the names that an object leaves open. What is said of those by a pattern is said of declared names that
/// match it, too, so where anything is said the pattern matches none of them.
fn pattern_of_others(fields: &Map<String, Value>, is_merged: bool) -> Option<String> {
    let declared = fields.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = declared.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let is_free = fields.get("additionalProperties").is_none_or(|schema| *schema == true || *schema == json!({}));
    // A control character has two spellings in a pattern, and one in a name.
    let has_one_spelling = |name: &&str| !name.chars().any(|char| char.is_ascii_control());
    if has_members(fields, "patternProperties") {
        return None;
    }
    if is_free && names.iter().all(has_one_spelling) {
        return Some(ANY.to_owned());
    }
    let is_short = names.iter().map(|name| name.len()).sum::<usize>() <= LONGEST;
    (is_short && !is_merged).then(|| format!("^{}$", other_than(&names)))
}

/// Whether names may stand here beside those that something is said of.
fn is_open(fields: &Map<String, Value>) -> bool {
    let has_names = has_members(fields, "properties") || has_members(fields, "patternProperties");
    has_names && fields.get("additionalProperties") != Some(&Value::Bool(false))
}

fn has_members(fields: &Map<String, Value>, keyword: &str) -> bool {
    fields.get(keyword).and_then(Value::as_object).is_some_and(|map| !map.is_empty())
}

/// A regular expression of all texts but these.
fn other_than(texts: &[&str]) -> String {
    const CHAR: &str = r"(?:.|\n)";
    let mut rests: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    for text in texts {
        let mut chars = text.chars();
        if let Some(first) = chars.next() {
            rests.entry(first).or_default().push(chars.as_str());
        }
    }
    let may_be_empty = if texts.contains(&"") { "" } else { "?" };
    if rests.is_empty() {
        return format!("(?:{CHAR}+){may_be_empty}");
    }
    let begun: String = rests.keys().map(|&first| code(first)).collect();
    let mut choices = vec![format!("[^{begun}]{CHAR}*")];
    choices.extend(rests.iter().map(|(&first, rests)| format!("{}{}", code(first), other_than(rests))));
    format!("(?:{}){may_be_empty}", choices.join("|"))
}

/// A character as a regular expression, in and outside a class.
fn code(char: char) -> String {
    if char.is_ascii_alphanumeric() || char == '_' { char.to_string() } else { format!("\\x{{{:x}}}", char as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_a_pattern() {
        let mut schema = json!({"properties": {"a": true, "ab": true}, "additionalProperties": {"type": "null"}});
        assert!(by_value(&mut schema));
        let pattern = r"^(?:[^a](?:.|\n)*|a(?:[^b](?:.|\n)*|b(?:(?:.|\n)+)))?$";
        assert_eq!(schema["patternProperties"], json!({pattern: {"type": "null"}}));
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn what_is_merged_is_excluded_where_its_patterns_can_be() {
        let open = json!({"properties": {"a": {"const": 1}}});
        let typed = json!({"properties": {"a": {"const": 1}}, "additionalProperties": {"type": "null"}});
        for (mut schema, done) in [
            (json!({"allOf": [open, open]}), true),
            (json!({"allOf": [open, typed]}), false),
            (json!({"anyOf": [open, typed]}), true),
            (json!({"items": {"$ref": "#/$defs/x", "properties": {"b": true}}, "$defs": {"x": open}}), true),
            (json!({"allOf": [open, {"patternProperties": {"^x": true}}]}), false),
            (json!({"patternProperties": {"^x": true}}), false),
            (json!({"allOf": [open, {"properties": {"a": true}, "additionalProperties": false}]}), true),
        ] {
            assert_eq!(by_value(&mut schema), done, "{schema}");
        }
    }
}
