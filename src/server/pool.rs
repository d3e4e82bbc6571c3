//! The models that are loaded, by their names.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    chat::Model,
    protocol::{Kind, Refusal},
};

/// The loaded models.
#[derive(Default)]
pub struct Pool {
    entries: Vec<Entry>,
}

/// A loaded model.
pub(super) struct Entry {
    /// At least one; the first is what the model is called where nobody said otherwise.
    names: Vec<String>,
    model: Arc<Model>,
    /// Seconds since 1970.
    loaded: u64,
}

impl Pool {
    /// A pool without models.
    pub fn new() -> Pool {
        Pool::default()
    }

    /// Takes a model in. `names` are all it may be asked for by: its alias, its repository, its path. The first is
    /// what lists show.
    ///
    /// # Panics
    /// If there is no name.
    pub fn insert(&mut self, names: Vec<String>, model: Model) {
        assert!(!names.is_empty(), "a model without a name is a bug");
        let loaded = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.entries.push(Entry { names, model: Arc::new(model), loaded });
    }

    /// The model of this name; without a name, the only one.
    pub(super) fn find(&self, name: Option<&str>) -> Result<&Entry, Refusal> {
        let (kind, problem) = match (name, self.entries.as_slice()) {
            (Some(name), entries) => match entries.iter().find(|entry| entry.names.iter().any(|own| own == name)) {
                Some(entry) => return Ok(entry),
                None => (Kind::UnknownModel, format!("there is no model {name:?} here")),
            },
            (None, [only]) => return Ok(only),
            (None, _) => (Kind::Invalid, "no model is named".to_owned()),
        };
        let names: Vec<&str> = self.entries.iter().flat_map(|entry| &entry.names).map(String::as_str).collect();
        let message = match names.is_empty() {
            true => format!("{problem}; no model is loaded"),
            false => format!("{problem}; loaded: {}", names.join(", ")),
        };
        Err(Refusal { kind, field: Some("model".to_owned()), message })
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Ends all that runs and frees the models' memory. Blocks until that is done.
    pub(super) fn close(&self) {
        self.entries.iter().for_each(|entry| entry.model.engine().close(Duration::ZERO));
    }
}

impl Entry {
    pub(super) fn name(&self) -> &str {
        &self.names[0]
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    pub(super) fn loaded(&self) -> u64 {
        self.loaded
    }
}
