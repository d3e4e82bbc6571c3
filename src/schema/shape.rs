//! A place in a schema that keeps the schema alive, for readers that outlive the request they read for.

use std::sync::Arc;

use serde_json::Value;

use super::{cursor::Cursor, types::Types};

/// A place in a schema, or one of which nothing is known.
#[derive(Debug, Clone)]
pub struct Shape(Option<(Arc<Value>, String)>);

impl Shape {
    /// The whole of a schema.
    pub fn of(schema: Value) -> Shape {
        Shape(Some((Arc::new(schema), String::new())))
    }

    /// A place of which nothing is known.
    pub fn unknown() -> Shape {
        Shape(None)
    }

    /// The types that are allowed here; `None` where the schema does not say.
    pub fn types(&self) -> Option<Types> {
        self.cursor()?.types()
    }

    /// The schema of this member of an object.
    pub fn member(&self, name: &str) -> Shape {
        self.at(self.cursor().and_then(|cursor| cursor.member(name)))
    }

    /// The schema of an item of an array.
    pub fn item(&self) -> Shape {
        self.at(self.cursor().and_then(|cursor| cursor.item()))
    }

    /// The names of an object's members, in the schema's order.
    pub fn members(&self) -> Vec<String> {
        self.cursor().map_or(Vec::new(), |cursor| cursor.members().into_iter().map(str::to_owned).collect())
    }

    /// Whether the object must have this member.
    pub fn requires(&self, name: &str) -> bool {
        self.cursor().is_some_and(|cursor| cursor.requires(name))
    }

    fn cursor(&self) -> Option<Cursor<'_>> {
        let Shape(Some((root, pointer))) = self else { return None };
        Cursor::at(root, pointer)
    }

    fn at(&self, place: Option<Cursor<'_>>) -> Shape {
        let Shape(Some((root, _))) = self else { return Shape::unknown() };
        Shape(place.map(|place| (Arc::clone(root), place.pointer().to_owned())))
    }
}
