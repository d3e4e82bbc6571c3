//! A place in a schema: the whole schema and what stands there. The one place that follows references.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::{
    keyword::{Subschemas, keyword},
    types::Types,
};

/// References followed in a row, and choices within choices, before giving up; schemas may be circular.
const REFERENCES: usize = 16;

/// Keywords whose parts each describe the value that the whole describes.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Where definitions stand, which the parts of a schema may refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// A place in a schema.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    root: &'a Value,
    node: &'a Value,
    /// The place as a JSON pointer (RFC 6901) from the root.
    pointer: String,
}

impl<'a> Cursor<'a> {
    /// The whole schema.
    pub fn new(root: &'a Value) -> Cursor<'a> {
        Cursor { root, node: root, pointer: String::new() }
    }

    /// The place that this pointer names; `None` where there is nothing.
    pub fn at(root: &'a Value, pointer: &str) -> Option<Cursor<'a>> {
        root.pointer(pointer).map(|node| Cursor { root, node, pointer: pointer.to_owned() })
    }

    /// The same place with another schema in it, which may refer to the same definitions.
    pub fn with_node<'b>(&self, node: &'b Value) -> Cursor<'b>
    where
        'a: 'b,
    {
        Cursor { root: self.root, node, pointer: self.pointer.clone() }
    }

    /// What stands here.
    pub fn node(&self) -> &'a Value {
        self.node
    }

    /// The whole schema.
    pub fn root(&self) -> &'a Value {
        self.root
    }

    /// The place as a JSON pointer from the root.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The value of a keyword here.
    pub fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.node.get(keyword)
    }

    /// The reference that stands here, as it is spelled.
    pub fn reference(&self) -> Option<&'a str> {
        self.get("$ref")?.as_str()
    }

    /// What a reference into this schema refers to: `#`, or `#` and a JSON pointer, percent-encoded or not.
    pub fn target(&self, reference: &str) -> Option<Cursor<'a>> {
        Cursor::at(self.root, &percent_decoded(reference.strip_prefix('#')?))
    }

    /// What this place refers to in the end, which is itself where it refers to nothing, or in a circle.
    pub fn resolved(&self) -> Cursor<'a> {
        self.resolve().unwrap_or_else(|| self.clone())
    }

    /// [`Cursor::resolved`]; `None` where a reference leads nowhere.
    fn resolve(&self) -> Option<Cursor<'a>> {
        let mut cursor = self.clone();
        for _ in 0..REFERENCES {
            let Some(reference) = cursor.reference() else { return Some(cursor) };
            cursor = cursor.target(reference)?;
        }
        None
    }

    /// The schemas that stand in the keywords here, without what they refer to.
    pub fn children(&self) -> Vec<Cursor<'a>> {
        let fields = self.node.as_object();
        fields.into_iter().flat_map(children).map(|(step, node)| self.child(step, node)).collect()
    }

    /// The schema of each property that is described here and may be there.
    pub fn properties(&self) -> impl Iterator<Item = (&'a str, Cursor<'a>)> + use<'a, '_> {
        let properties = self.get("properties").and_then(Value::as_object);
        let may_be = |property: &(&'a String, &'a Value)| *property.1 != false;
        properties.into_iter().flatten().filter(may_be).map(|(name, node)| {
            let schema = self.child(format_args!("/properties/{}", escaped(name)), node);
            (name.as_str(), schema)
        })
    }

    /// The value of a keyword that is a single schema.
    pub fn single(&self, keyword: &str) -> Option<Cursor<'a>> {
        self.get(keyword).map(|node| self.child(format_args!("/{keyword}"), node))
    }

    /// The schemas in a keyword's list; `None` where there is no list.
    pub fn list(&self, keyword: &str) -> Option<Vec<Cursor<'a>>> {
        let list = self.get(keyword)?.as_array()?.iter().enumerate();
        Some(list.map(|(index, node)| self.child(format_args!("/{keyword}/{index}"), node)).collect())
    }

    /// The schemas of which a value must satisfy one, `anyOf` or `oneOf`, without those that nothing satisfies.
    pub fn choices(&self) -> Option<Vec<Cursor<'a>>> {
        let mut choices = self.list("anyOf").or_else(|| self.list("oneOf"))?;
        choices.retain(|choice| *choice.node != false);
        Some(choices)
    }

    /// The values that a value must be one of: `const` or `enum`.
    pub fn constants(&self) -> Option<&'a [Value]> {
        let one = self.get("const").map(std::slice::from_ref);
        one.or_else(|| self.get("enum").and_then(Value::as_array).map(Vec::as_slice))
    }

    fn child(&self, step: impl Display, node: &'a Value) -> Cursor<'a> {
        Cursor { root: self.root, node, pointer: format!("{}{step}", self.pointer) }
    }

    /// The types that are allowed here; `None` where the schema does not say.
    pub fn types(&self) -> Option<Types> {
        let types = self.types_of(REFERENCES);
        Some(types).filter(|&types| types != Types::NONE)
    }

    fn types_of(&self, depth: usize) -> Types {
        let mut types = Types::NONE;
        let Some(place) = self.resolve().filter(|_| depth > 0) else { return types };
        match place.get("type") {
            Some(Value::String(name)) => types.add_named(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(|name| types.add_named(name)),
            _ => {}
        }
        if types != Types::NONE {
            types.null |= place.get("nullable").is_some_and(|nullable| *nullable == true);
            return types;
        }
        if let Some(value) = place.get("const") {
            types.add_value(value);
        }
        let values = place.get("enum").and_then(Value::as_array);
        values.into_iter().flatten().for_each(|value| types.add_value(value));
        for part in place.alternatives() {
            types.add(part.types_of(depth - 1));
        }
        types.object |= place.get("properties").is_some();
        types.array |= place.get("items").is_some();
        types
    }

    fn alternatives(&self) -> impl Iterator<Item = Cursor<'a>> + use<'a, '_> {
        ALTERNATIVES.iter().filter_map(|keyword| self.list(keyword)).flatten()
    }

    /// The schema of this member of an object.
    pub fn member(&self, name: &str) -> Option<Cursor<'a>> {
        let get = |place: &Cursor<'a>| {
            let described = place.get("properties").and_then(|properties| properties.get(name));
            let described = described.map(|node| place.child(format_args!("/properties/{}", escaped(name)), node));
            described.or_else(|| place.single("additionalProperties").filter(|schema| schema.node.is_object()))
        };
        self.find(&get, REFERENCES)
    }

    /// The schema of an item of an array.
    pub fn item(&self) -> Option<Cursor<'a>> {
        self.find(&|place| place.single("items"), REFERENCES)
    }

    /// What `get` finds here, or else in one of the alternatives.
    fn find(&self, get: &dyn Fn(&Cursor<'a>) -> Option<Cursor<'a>>, depth: usize) -> Option<Cursor<'a>> {
        let place = self.resolve().filter(|_| depth > 0)?;
        get(&place).or_else(|| place.alternatives().find_map(|part| part.find(get, depth - 1)))
    }

    /// The names of an object's members, in the schema's order.
    pub fn members(&self) -> Vec<&'a str> {
        let properties = self.resolve().and_then(|place| place.get("properties")?.as_object());
        properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)).collect()
    }

    /// Whether the object must have this member.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.resolve().and_then(|place| place.get("required")?.as_array());
        required.is_some_and(|names| names.iter().any(|own| own == name))
    }

    /// A copy of what stands here as a schema of its own, with the definitions that it may refer to.
    pub fn standalone(&self) -> Value {
        let mut schema = self.node.clone();
        if let Value::Object(fields) = &mut schema
            && refers(self.node)
        {
            for name in DEFINITIONS {
                if let Some(definitions) = self.root.get(name) {
                    fields.insert(name.to_owned(), definitions.clone());
                }
            }
        }
        schema
    }
}

/// The schemas that stand in these keywords, each with its place from there as a part of a JSON pointer.
pub fn children(fields: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (name, value) in fields {
        let subschemas = keyword(name).map_or(Subschemas::None, |keyword| keyword.subschemas);
        match (subschemas, value) {
            (Subschemas::Map, Value::Object(map)) => {
                found.extend(map.iter().map(|(key, child)| (format!("/{name}/{}", escaped(key)), child)));
            }
            (Subschemas::List | Subschemas::OneOrList, Value::Array(list)) => {
                found.extend(list.iter().enumerate().map(|(index, child)| (format!("/{name}/{index}"), child)));
            }
            (Subschemas::One | Subschemas::OneOrList, child) => found.push((format!("/{name}"), child)),
            _ => {}
        }
    }
    found
}

/// Calls `each` with every schema that stands in these keywords.
pub fn for_each_child(fields: &mut Map<String, Value>, mut each: impl FnMut(&mut Value)) {
    for (name, value) in fields.iter_mut() {
        let subschemas = keyword(name).map_or(Subschemas::None, |keyword| keyword.subschemas);
        match (subschemas, value) {
            (Subschemas::Map, Value::Object(map)) => map.values_mut().for_each(&mut each),
            (Subschemas::List | Subschemas::OneOrList, Value::Array(list)) => list.iter_mut().for_each(&mut each),
            (Subschemas::One | Subschemas::OneOrList, child) => each(child),
            _ => {}
        }
    }
}

/// Whether a reference stands in this or below it.
fn refers(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key("$ref") || fields.values().any(refers),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed() {
        let schema = json!({
            "properties": {"a": {"$ref": "#/$defs/b"}, "loop": {"$ref": "#/$defs/loop"}, "none": {"$ref": "#/$defs/no"}},
            "$defs": {"b": {"$ref": "#/$defs/c%20d"}, "c d": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}},
        });
        let root = Cursor::new(&schema);
        let check = |name: &str, pointer: &str, types: bool| {
            let member = root.member(name).expect("a member");
            assert_eq!(member.resolved().pointer(), pointer);
            assert_eq!(member.types().is_some(), types, "{name}");
        };
        check("a", "/$defs/c d", true);
        check("loop", "/properties/loop", false);
        check("none", "/properties/none", false);
    }

    #[test]
    fn a_part_alone_takes_the_definitions_it_refers_to() {
        let schema = json!({
            "properties": {"a": {"items": {"$ref": "#/$defs/b"}}, "plain": {"type": "string"}},
            "$defs": {"b": {"type": "integer"}},
        });
        let root = Cursor::new(&schema);
        let check = |name: &str, expected: Value| {
            assert_eq!(root.member(name).expect("a member").standalone(), expected);
        };
        check("a", json!({"items": {"$ref": "#/$defs/b"}, "$defs": {"b": {"type": "integer"}}}));
        check("plain", json!({"type": "string"}));
    }

    #[test]
    fn names_are_escaped_in_pointers() {
        let schema = json!({"properties": {"a/b~c": {"anyOf": [{"properties": {"d": {"type": "null"}}}]}}});
        let member = Cursor::new(&schema).member("a/b~c").and_then(|member| member.member("d")).expect("a member");
        assert_eq!(member.pointer(), "/properties/a~1b~0c/anyOf/0/properties/d");
        assert_eq!(Cursor::at(&schema, member.pointer()).expect("the same").node(), member.node());
    }
}
