//! The fields of a JSON object, taken out one by one. What nobody asked for in the end is noted as ignored, or refused
//! where the server is strict: so no field is accepted in silence. What a request may have is what was asked for, so
//! no list of known names is kept beside the code that reads them.

use std::{cell::RefCell, rc::Rc};

use serde_json::{Map, Value};

use super::{Kind, Refusal};
use crate::schema;

/// Characters of a wrong value that an error shows.
const SHOWN: usize = 60;

/// The most ignored fields that one request is told of.
const TOLD: usize = 100;

const UNKNOWN: &str = "no field of this name is known here";

/// A field that did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Where it lies in the body, such as `messages[0].foo`.
    pub path: String,
    pub why: &'static str,
}

impl Ignored {
    /// A part of the request that this model makes nothing of.
    pub fn by_model(path: String) -> Ignored {
        Ignored { path, why: "this model's chat template does not render it" }
    }
}

/// A field that is known here, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Where it may lie in a body, such as `messages[].name`.
    pub path: String,
    pub fate: Fate,
}

/// What becomes of a known field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Honoured,
    /// Taken, and without effect.
    Ignored(&'static str),
    /// A value that asks for something is a wrong request.
    Refused(&'static str),
}

/// What is noted while one body is read, shared by all its objects.
#[derive(Debug, Clone, Default)]
pub struct Notes(Rc<RefCell<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    /// Refuses unknown fields.
    strict: bool,
    ignored: Vec<Ignored>,
    /// All fields that were asked for; `None` where nobody wants to know.
    known: Option<Vec<Known>>,
}

impl Notes {
    /// Notes of a body whose unknown fields are refused where `strict` is set, and otherwise ignored.
    pub fn new(strict: bool) -> Notes {
        Notes(Rc::new(RefCell::new(Noted { strict, ..Noted::default() })))
    }

    /// Notes that hold every field that is asked for, too.
    pub fn of_all() -> Notes {
        Notes(Rc::new(RefCell::new(Noted { known: Some(Vec::new()), ..Noted::default() })))
    }

    /// The fields that did nothing, in the order in which that was found.
    pub fn ignored(&self) -> Vec<Ignored> {
        self.0.borrow().ignored.clone()
    }

    /// The fields that were asked for, each once.
    pub fn known(&self) -> Vec<Known> {
        self.0.borrow().known.clone().unwrap_or_default()
    }

    /// Notes what of a schema restricts nothing, though it reads as if it did.
    pub fn unread(&self, path: &str, schema: &Value) {
        schema::unread(schema)
            .into_iter()
            .for_each(|unread| self.ignore(format!("{path}#{}", unread.pointer), unread.why));
    }

    fn ignore(&self, path: String, why: &'static str) {
        let ignored = &mut self.0.borrow_mut().ignored;
        if ignored.len() < TOLD {
            ignored.push(Ignored { path, why });
        }
    }

    fn ask(&self, path: impl FnOnce() -> String, fate: Fate) {
        let Some(known) = &mut self.0.borrow_mut().known else { return };
        let path = without_indices(&path());
        if !known.iter().any(|other| other.path == path) {
            known.push(Known { path, fate });
        }
    }
}

/// `messages[3].name` as `messages[].name`.
pub fn without_indices(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut within = false;
    for char in path.chars() {
        within &= char.is_ascii_digit();
        if !within {
            out.push(char);
        }
        within |= char == '[';
    }
    out
}

/// An object that is being read. A null is as good as no field.
#[derive(Debug)]
pub struct Fields {
    /// Where the object lies in the body, ending in a dot; empty for the body itself.
    prefix: String,
    fields: Map<String, Value>,
    /// What was asked for so far.
    asked: Vec<&'static str>,
    notes: Notes,
}

impl Fields {
    /// The fields of the object at `path`.
    ///
    /// # Errors
    /// It is no object.
    pub fn of(path: &str, value: Value, notes: &Notes) -> Result<Fields, Refusal> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
        match value {
            Value::Object(mut fields) => {
                fields.retain(|_, value| !value.is_null());
                Ok(Fields { prefix, fields, asked: Vec::new(), notes: notes.clone() })
            }
            other => Err(expected(path, "an object", &other)),
        }
    }

    /// The fields of a body of JSON.
    ///
    /// # Errors
    /// It is no JSON, and where; it is no object.
    pub fn of_body(body: &[u8], notes: &Notes) -> Result<Fields, Refusal> {
        let wrong = |message: String| Refusal::new(Kind::Invalid, message);
        let text = std::str::from_utf8(body).map_err(|error| {
            wrong(format!("the body is not UTF-8 at byte {}; send JSON encoded as UTF-8", error.valid_up_to()))
        })?;
        if text.trim_ascii().is_empty() {
            return Err(wrong("the body is empty; send a JSON object".to_owned()));
        }
        let value = serde_json::from_str(text);
        Fields::of("", value.map_err(|error| wrong(format!("the body is not valid JSON: {error}")))?, notes)
    }

    /// The notes of the body that this is a part of.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The names of what has not been taken yet, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    /// Where a field of this object lies in the body.
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A field that is honoured.
    pub fn take(&mut self, name: &'static str) -> Option<Value> {
        self.remove(name, Fate::Honoured)
    }

    fn remove(&mut self, name: &'static str, fate: Fate) -> Option<Value> {
        self.notes.ask(|| self.path(name), fate);
        self.asked.push(name);
        // Removing by swapping would reorder what is left, and errors name the first that is.
        self.fields.shift_remove(name)
    }

    /// The fields of the object of this name, if there is one.
    ///
    /// # Errors
    /// It is no object.
    pub fn object(&mut self, name: &'static str) -> Result<Option<Fields>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        Fields::of(&self.path(name), value, &self.notes).map(Some)
    }

    /// Takes a field through `read`, which says `None` where the value is not what `what` describes.
    ///
    /// # Errors
    /// It is not.
    pub fn read<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| expected(&self.path(name), what, &value))
    }

    /// A string.
    ///
    /// # Errors
    /// It is none.
    pub fn string(&mut self, name: &'static str) -> Result<Option<String>, Refusal> {
        self.read(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// A string that must be there.
    ///
    /// # Errors
    /// It is missing, or no string.
    pub fn needed(&mut self, name: &'static str) -> Result<String, Refusal> {
        let text = self.string(name)?;
        text.ok_or_else(|| Refusal::field(self.path(name), "missing; expected a string"))
    }

    /// True or false.
    ///
    /// # Errors
    /// It is neither.
    pub fn bool(&mut self, name: &'static str) -> Result<Option<bool>, Refusal> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// A number of things. One that is too large to count is as many as there can be.
    ///
    /// # Errors
    /// It is no whole number above 0.
    pub fn count(&mut self, name: &'static str) -> Result<Option<usize>, Refusal> {
        let count = |value: &Value| value.as_u64().filter(|&count| count > 0);
        let count = self.read(name, "a whole number of at least 1", count)?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// A number that holds in single precision, too: a tiny share must not become 0.
    ///
    /// # Errors
    /// It is no number, or does not hold.
    pub fn number(
        &mut self,
        name: &'static str,
        what: &str,
        holds: impl Fn(f32) -> bool,
    ) -> Result<Option<f32>, Refusal> {
        self.read(name, what, |value| {
            let number = value.as_f64()? as f32;
            (number.is_finite() && holds(number)).then_some(number)
        })
    }

    /// A field that is known and does nothing here: says so, and why.
    pub fn ignore(&mut self, name: &'static str, why: &'static str) {
        if self.remove(name, Fate::Ignored(why)).is_some() {
            self.notes.ignore(self.path(name), why);
        }
    }

    /// The same for a field that must be of a certain form nevertheless.
    ///
    /// # Errors
    /// It is not.
    pub fn ignore_form(&mut self, form: &Form) -> Result<(), Refusal> {
        let Form { name, what, holds, why } = *form;
        match self.remove(name, Fate::Ignored(why)) {
            Some(value) if !holds(&value) => Err(expected(&self.path(name), what, &value)),
            Some(_) => {
                self.notes.ignore(self.path(name), why);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A field that is known and cannot be honoured, unless its value asks for nothing.
    ///
    /// # Errors
    /// It asks for something.
    pub fn refuse(
        &mut self,
        name: &'static str,
        why: &'static str,
        asks_nothing: impl FnOnce(&Value) -> bool,
    ) -> Result<(), Refusal> {
        match self.remove(name, Fate::Refused(why)) {
            Some(value) if !asks_nothing(&value) => {
                Err(Refusal::field(self.path(name), format!("{why}; got {}", shown(&value))))
            }
            _ => Ok(()),
        }
    }

    /// Says of all that is left that it did nothing.
    ///
    /// # Errors
    /// Something is left, and the server is strict.
    pub fn finish(self) -> Result<(), Refusal> {
        let Some(first) = self.fields.keys().next() else { return Ok(()) };
        if self.notes.0.borrow().strict {
            let problem =
                format!("this field is not known here, so it would do nothing; leave it out ({})", known(&self.asked));
            return Err(Refusal::field(self.path(first), problem));
        }
        self.fields.keys().for_each(|name| self.notes.ignore(self.path(name), UNKNOWN));
        Ok(())
    }
}

/// A known field without effect that has a form all the same.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub name: &'static str,
    /// What it must be, in words.
    pub what: &'static str,
    /// Whether it is that.
    pub holds: fn(&Value) -> bool,
    /// Why it does nothing.
    pub why: &'static str,
}

/// `known are a, b and c`
fn known(names: &[&str]) -> String {
    match names {
        [] => "there are none".to_owned(),
        [only] => format!("known is {only}"),
        [most @ .., last] => format!("known are {} and {last}", most.join(", ")),
    }
}

/// A value that is not what it should be.
pub fn expected(path: &str, what: &str, value: &Value) -> Refusal {
    let problem = format!("expected {what}, got {}", shown(value));
    match path {
        "" => Refusal::new(Kind::Invalid, format!("the body: {problem}")),
        path => Refusal::field(path, problem),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value, notes: &Notes) -> Result<(), Refusal> {
        let mut fields = Fields::of("", value, notes)?;
        fields.string("a")?;
        fields.ignore("b", "nobody wants it");
        fields.refuse("c", "there are none", |value| *value == 0)?;
        if let Some(mut inner) = fields.object("d")? {
            inner.bool("e")?;
            inner.finish()?;
        }
        fields.finish()
    }

    #[test]
    fn what_is_left_is_noted_or_refused() {
        let body = json!({"x": [], "a": "1", "b": {}, "c": 0, "d": {"e": true, "y": 1}, "z": null});
        let notes = Notes::new(false);
        read(body.clone(), &notes).unwrap();
        let paths: Vec<String> = notes.ignored().into_iter().map(|ignored| ignored.path).collect();
        assert_eq!(paths, ["b", "d.y", "x"]);
        let refusal = read(body, &Notes::new(true)).unwrap_err();
        assert!(refusal.message.starts_with("d.y: ") && refusal.message.contains("known is e"), "{refusal:?}");
        let refusal = read(json!({"q": 1}), &Notes::new(true)).unwrap_err();
        assert!(refusal.message.contains("known are a, b, c and d"), "{refusal:?}");
        let refusal = read(json!({"c": 1}), &Notes::new(false)).unwrap_err();
        assert_eq!(refusal.message, "c: there are none; got 1");
    }

    #[test]
    fn what_was_asked_for_is_known() {
        let notes = Notes::of_all();
        read(json!({"d": {}}), &notes).unwrap();
        let known: Vec<(String, Fate)> = notes.known().into_iter().map(|known| (known.path, known.fate)).collect();
        let expected = [
            ("a", Fate::Honoured),
            ("b", Fate::Ignored("nobody wants it")),
            ("c", Fate::Refused("there are none")),
            ("d", Fate::Honoured),
            ("d.e", Fate::Honoured),
        ];
        assert_eq!(known, expected.map(|(path, fate)| (path.to_owned(), fate)));
    }

    #[test]
    fn a_body_of_thousands_of_unknown_fields_is_told_of_some() {
        let many: Map<String, Value> = (0..10_000).map(|index| (format!("x{index}"), json!(index))).collect();
        let notes = Notes::new(false);
        read(Value::Object(many), &notes).unwrap();
        assert_eq!(notes.ignored().len(), TOLD);
    }

    #[test]
    fn indices_are_left_out() {
        assert_eq!(without_indices("a[12].b[0][3].c1"), "a[].b[][].c1");
    }
}
