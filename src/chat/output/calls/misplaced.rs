//! Arguments in the wrong place. A weak model that must give a `path` beside its `edits` writes it into each of them;
//! clients refuse the call, and the model, which cannot see what is wrong with it, makes it again.

use serde_json::Value;

use crate::{
    chat::output::json::{Spelled, allow},
    schema::Shape,
};

/// Bytes of arguments that are kept to look for misplaced ones.
const KEPT: usize = 1 << 18;

/// Arguments that a tool requires and a model may misplace.
#[derive(Debug)]
pub(super) struct Misplaced {
    shape: Shape,
    names: Vec<String>,
    /// The JSON written so far; `None` once it is too long.
    text: Option<String>,
}

impl Misplaced {
    /// `None` where the tool has no argument that could be misplaced, or no container to find it in.
    pub(super) fn of(shape: &Shape) -> Option<Misplaced> {
        let members = shape.members();
        let contains = |name: &String| !items(&shape.member(name)).members().is_empty();
        if !members.iter().any(contains) {
            return None;
        }
        let is_scalar = |name: &String| {
            shape.member(name).types().is_some_and(|types| !types.array && !types.object && !types.null)
        };
        let names: Vec<String> = members.into_iter().filter(|name| shape.requires(name) && is_scalar(name)).collect();
        (!names.is_empty()).then(|| Misplaced { shape: shape.clone(), names, text: Some(String::new()) })
    }

    /// More of the arguments' JSON.
    pub(super) fn read(&mut self, piece: &str) {
        self.text = self.text.take().filter(|text| text.len() + piece.len() <= KEPT).map(|text| text + piece);
    }

    /// What is missing of an object without its closing brace, as more of its text.
    pub(super) fn missing(&self) -> String {
        let object = self.text.as_ref().and_then(|text| Spelled::of(&format!("{text}}}")));
        let Some(Spelled::Members(arguments)) = object else { return String::new() };
        let found = self.names.iter().filter_map(|name| Some((name, self.find(name, &arguments)?)));
        found.map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str()))).collect()
    }

    /// The one value of this name that the declared containers have where their schema has none; nothing where the
    /// argument is in its place, or where they do not agree.
    fn find(&self, name: &str, arguments: &[(String, Spelled)]) -> Option<Spelled> {
        if named(arguments, name).is_some() {
            return None;
        }
        let containers = arguments.iter().filter(|(key, _)| {
            let members = items(&self.shape.member(key)).members();
            !members.is_empty() && !members.iter().any(|own| own == name)
        });
        let objects: Vec<&[(String, Spelled)]> = containers
            .flat_map(|(_, value)| match value {
                Spelled::List(items) => items.iter().filter_map(members).collect(),
                value => Vec::from_iter(members(value)),
            })
            .collect();
        let first = objects.iter().find_map(|object| named(object, name))?;
        let agree = objects.iter().all(|object| named(object, name) == Some(first));
        let fitted = self.shape.member(name).fit(first.clone());
        (agree && allow(self.shape.member(name).types()?, &fitted)).then_some(fitted)
    }
}

fn members(value: &Spelled) -> Option<&[(String, Spelled)]> {
    if let Spelled::Members(members) = value { Some(members) } else { None }
}

fn named<'a>(members: &'a [(String, Spelled)], name: &str) -> Option<&'a Spelled> {
    members.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// The shape of the objects in a container: of a list's items, or of the object itself.
fn items(container: &Shape) -> Shape {
    match container.types() {
        Some(types) if types.array => container.item(),
        Some(types) if types.object => container.clone(),
        _ => Shape::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: &str) {
        let schema = json!({"type": "object", "required": ["path", "edits", "count"], "properties": {
            "path": {"type": "string"}, "count": {"type": "integer"}, "note": {"type": "string"},
            "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {}, "new": {}}}},
            "files": {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}}}},
            "options": {"type": "object", "properties": {"mode": {"type": "string"}}}}});
        let mut misplaced = Misplaced::of(&Shape::of(schema)).expect("a tool whose arguments can be misplaced");
        text.chars().for_each(|char| misplaced.read(char.encode_utf8(&mut [0; 4])));
        assert_eq!(misplaced.missing(), expected, "{text}");
    }

    #[test]
    fn what_is_misplaced_is_found() {
        check(r#"{"count":1,"edits":[{"old":"a","path":"b.rs"}]"#, r#","path":"b.rs""#);
        check(r#"{"edits":[{"path":"b.rs","count":"2"},{"path":"b.rs","count":"2"}]"#, r#","path":"b.rs","count":2"#);
        check(r#"{"count":1,"options":{"mode":"x","path":"c"}"#, r#","path":"c""#);
        // In its place.
        check(r#"{"count":1,"path":"a","edits":[{"path":"b"}]"#, "");
        // They do not agree, or one of them says nothing.
        check(r#"{"count":1,"edits":[{"path":"a"},{"path":"b"}]"#, "");
        check(r#"{"count":1,"edits":[{"path":"a"},{"old":"b"}]"#, "");
        // A container that has such a member of its own.
        check(r#"{"count":1,"files":[{"path":"a"}]"#, "");
        // No value of the type.
        check(r#"{"path":"a","edits":[{"count":"many"}]"#, "");
        check("{", "");
    }

    #[test]
    fn tools_without_containers_keep_nothing() {
        let write = json!({"type": "object", "required": ["path", "content"], "properties": {
            "path": {"type": "string"}, "content": {"type": "string"}}});
        assert!(Misplaced::of(&Shape::of(write)).is_none());
    }
}
