//! Fields that did nothing: a header of the answer tells its client, a warning tells whoever runs the server once for
//! each, and `/v1/capabilities` lists them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use axum::{http::HeaderValue, response::Response};

use super::Warn;
use crate::protocol::{Ignored, without_indices};

/// Lists what did nothing, each by where it lies in the body; what is no plain ASCII, and commas, percent-encoded.
const HEADER: &str = "x-mettle-ignored";

/// Bytes of the header's value.
const LONGEST: usize = 2000;

/// Names that are remembered. Whoever sends made-up ones without end is told in the header still.
const REMEMBERED: usize = 1000;

/// What was ignored since the server started.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<BTreeMap<String, Seen>>);

/// A field that did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub why: &'static str,
    /// Requests that had it, each time it was in one.
    pub count: u64,
}

impl Remembered {
    /// Takes what a request had in vain in. `warn` hears of each name the first time.
    pub(super) fn note(&self, ignored: &[Ignored], warn: &Warn) {
        let mut new = Vec::new();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Ignored { path, why } in ignored {
            let name = shown(&without_indices(path));
            let is_full = seen.len() >= REMEMBERED;
            match seen.get_mut(&name) {
                Some(seen) => seen.count += 1,
                None if is_full => {}
                None => {
                    new.push(format!("requests have the field {name}, which does nothing here: {why}"));
                    seen.insert(name, Seen { why, count: 1 });
                }
            }
        }
        drop(seen);
        new.iter().for_each(|warning| warn(warning));
    }

    /// All names, in their order.
    pub(super) fn list(&self) -> Vec<(String, Seen)> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().map(|(name, seen)| (name.clone(), seen.clone())).collect()
    }
}

/// The response with the header that says what did nothing, if anything did.
pub(super) fn told(mut response: Response, ignored: &[Ignored]) -> Response {
    if let Some(value) = value(ignored) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

fn value(ignored: &[Ignored]) -> Option<HeaderValue> {
    let mut value = String::new();
    for Ignored { path, .. } in ignored {
        let path = shown(path);
        if value.len() + path.len() > LONGEST {
            value.push_str(", ...");
            break;
        }
        if !value.is_empty() {
            value.push_str(", ");
        }
        value.push_str(&path);
    }
    if value.is_empty() { None } else { HeaderValue::from_str(&value).ok() }
}

/// A path in plain ASCII, cut where it is long.
fn shown(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if out.len() > 200 {
            out.push_str("...");
            break;
        }
        if byte.is_ascii_graphic() && !b",%".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn ignored(paths: &[&str]) -> Vec<Ignored> {
        paths.iter().map(|path| Ignored { path: (*path).to_owned(), why: "no" }).collect()
    }

    #[test]
    fn each_name_warns_once() {
        let remembered = Remembered::default();
        let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&warnings);
        let warn: Warn = Arc::new(move |warning: &str| heard.lock().unwrap().push(warning.to_owned()));
        remembered.note(&ignored(&["messages[0].x", "messages[1].x", "y"]), &warn);
        remembered.note(&ignored(&["y"]), &warn);
        assert_eq!(warnings.lock().unwrap().len(), 2, "{warnings:?}");
        let counts: Vec<(String, u64)> = remembered.list().into_iter().map(|(name, seen)| (name, seen.count)).collect();
        assert_eq!(counts, [("messages[].x".to_owned(), 2), ("y".to_owned(), 2)]);
        let many: Vec<String> = (0..5000).map(|index| format!("z{index}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        remembered.note(&ignored(&many), &warn);
        assert_eq!((remembered.list().len(), warnings.lock().unwrap().len()), (REMEMBERED, REMEMBERED));
    }

    #[test]
    fn a_header_is_short_and_plain() {
        let value = |paths: &[&str]| value(&ignored(paths)).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(value(&[]), None);
        assert_eq!(value(&["a", "b[0].c"]).unwrap(), "a, b[0].c");
        assert_eq!(value(&["é,\n%", "\0"]).unwrap(), "%C3%A9%2C%0A%25, %00");
        let long = value(&["x".repeat(1000).as_str(); 100]).unwrap();
        assert!(long.len() <= LONGEST + 5 && long.ends_with(", ..."), "{}", long.len());
    }
}
