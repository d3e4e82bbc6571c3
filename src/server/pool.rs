//! The models of this server by their names: loaded already, or to be loaded when one is asked for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{sync::watch, time::timeout};

use crate::{
    chat::{self, Field},
    engine::Stats,
    protocol::{Kind, Refusal},
};

/// Requests that may wait for one model to be loaded.
const WAITING: usize = 256;

/// How long after a load that failed the next request tries again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Seconds after which whoever did not wait for a load may look again.
const LOOK_AGAIN: u32 = 10;

/// A model that can be asked.
#[derive(Clone)]
pub enum Loaded {
    Chat(Arc<chat::Model>),
    Embedding(Arc<chat::EmbeddingModel>),
}

/// Loads a model on the calling thread; says why it cannot.
pub type Loader = Arc<dyn Fn() -> Result<Loaded, String> + Send + Sync>;

/// The models of a server.
#[derive(Default)]
pub struct Pool {
    entries: Vec<Arc<Entry>>,
}

/// A model under its names.
pub(super) struct Entry {
    /// At least one; the first is what the model is called where nobody said otherwise.
    names: Vec<String>,
    /// `None` where the model was loaded when it was taken in.
    loader: Option<Loader>,
    state: watch::Sender<State>,
    /// Requests that wait for it to be loaded.
    waiting: AtomicUsize,
}

/// How far a model is.
#[derive(Clone)]
pub(super) enum State {
    Absent,
    Loading,
    Loaded {
        model: Loaded,
        /// Seconds since 1970.
        since: u64,
    },
    Failed {
        why: String,
        at: Instant,
    },
}

impl From<chat::Model> for Loaded {
    fn from(model: chat::Model) -> Loaded {
        Loaded::Chat(Arc::new(model))
    }
}

impl From<chat::EmbeddingModel> for Loaded {
    fn from(model: chat::EmbeddingModel) -> Loaded {
        Loaded::Embedding(Arc::new(model))
    }
}

impl Loaded {
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Loaded::Chat(_) => "chat",
            Loaded::Embedding(_) => "embedding",
        }
    }

    /// The most tokens of one text, or of a conversation with its answer.
    pub(super) fn context(&self) -> usize {
        match self {
            Loaded::Chat(model) => model.context(),
            Loaded::Embedding(model) => model.context(),
        }
    }

    /// Why it answers no more, if it does not.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Loaded::Chat(model) => model.failure(),
            Loaded::Embedding(model) => model.failure(),
        }
    }

    /// Why a model that still chats makes no embeddings, if it does not.
    pub(super) fn embedding_failure(&self) -> Option<String> {
        match self {
            Loaded::Chat(model) => model.embeddings()?.failure(),
            Loaded::Embedding(_) => None,
        }
    }

    /// What its engine has done and is doing.
    pub(super) fn stats(&self) -> Stats {
        match self {
            Loaded::Chat(model) => model.engine().stats(),
            Loaded::Embedding(model) => model.stats(),
        }
    }

    fn close(&self) {
        match self {
            Loaded::Chat(model) => {
                model.engine().close(Duration::ZERO);
                model.embeddings().into_iter().for_each(|vectors| vectors.close());
            }
            Loaded::Embedding(model) => model.close(),
        }
    }
}

impl Pool {
    /// A pool without models.
    pub fn new() -> Pool {
        Pool::default()
    }

    /// Takes a loaded model in. `names` are all it may be asked for by: its alias, its repository, its path. The first
    /// is what lists show.
    ///
    /// # Panics
    /// If there is no name.
    pub fn insert(&mut self, names: Vec<String>, model: impl Into<Loaded>) {
        self.add(names, None, State::Loaded { model: model.into(), since: now() });
    }

    /// Takes a model in that is loaded when somebody asks for it.
    ///
    /// # Panics
    /// If there is no name.
    pub fn register(&mut self, names: Vec<String>, loader: Loader) {
        self.add(names, Some(loader), State::Absent);
    }

    fn add(&mut self, names: Vec<String>, loader: Option<Loader>, state: State) {
        assert!(!names.is_empty(), "a model without a name is a bug");
        let state = watch::Sender::new(state);
        let entry = Entry { names, loader, state, waiting: AtomicUsize::new(0) };
        self.entries.push(Arc::new(entry));
    }

    /// The model of this name; without a name, the only one.
    pub(super) fn find(&self, name: Option<&str>) -> Result<&Arc<Entry>, Refusal> {
        let (kind, problem) = match (name, self.entries.as_slice()) {
            (Some(name), entries) => match entries.iter().find(|entry| entry.names.iter().any(|own| own == name)) {
                Some(entry) => return Ok(entry),
                None => (Kind::UnknownModel, format!("there is no model {name:?} here")),
            },
            (None, [only]) => return Ok(only),
            (None, _) => (Kind::Invalid, "no model is named".to_owned()),
        };
        let names: Vec<&str> = self.entries.iter().flat_map(|entry| &entry.names).map(String::as_str).collect();
        let message = if names.is_empty() {
            format!("{problem}; no model is loaded")
        } else {
            format!("{problem}; loaded: {}", names.join(", "))
        };
        Err(Refusal::new(kind, message))
    }

    /// A request for something that this model does not do.
    pub(super) fn wrong_kind(&self, entry: &Entry, kind: &str, wanted: &str) -> Refusal {
        let others = self.entries.iter().filter(|other| match other.state() {
            State::Loaded { model, .. } => model.kind() != kind,
            _ => false,
        });
        let others: Vec<&str> = others.map(|other| other.name()).collect();
        let instead = if others.is_empty() { "no other model is loaded".to_owned() } else { others.join(", ") };
        let message =
            format!("{:?} is a model of kind {kind}, which does not answer {wanted}; others: {instead}", entry.name());
        Refusal::new(Kind::Invalid, message)
    }

    pub(super) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Ends all that runs and frees the models' memory. Blocks until that is done.
    pub(super) fn close(&self) {
        for entry in &self.entries {
            if let State::Loaded { model, .. } = entry.state() {
                model.close();
            }
        }
    }
}

impl Entry {
    pub(super) fn name(&self) -> &str {
        &self.names[0]
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// The model, loaded first if need be. Whoever asks waits for that, `patience` at most: a client that comes back
    /// later would find the same.
    ///
    /// # Errors
    /// It cannot be loaded, or not in time, or too many wait.
    pub(super) async fn loaded(self: &Arc<Entry>, patience: Duration) -> Result<Loaded, Refusal> {
        if let State::Loaded { model, .. } = &*self.state.borrow() {
            return self.alive(model.clone());
        }
        let waiting = Waiting::new(&self.waiting);
        if waiting.others >= WAITING {
            let message = format!("{} requests are waiting for the model {} already", waiting.others, self.name());
            return Err(Refusal::new(Kind::Busy, message).after(LOOK_AGAIN));
        }
        self.begin_loading();
        let mut state = self.state.subscribe();
        let settled = timeout(patience, state.wait_for(|state| !matches!(state, State::Loading))).await;
        let state = match settled {
            Ok(Ok(state)) => state.clone(),
            _ => self.state(),
        };
        match state {
            State::Loaded { model, .. } => self.alive(model),
            State::Failed { why, .. } => {
                let message = format!("the model {} could not be loaded: {why}", self.name());
                Err(Refusal::new(Kind::Failed, message))
            }
            State::Absent | State::Loading => {
                let message = format!("the model {} is still being loaded; try again later", self.name());
                Err(Refusal::new(Kind::Loading, message).after(LOOK_AGAIN))
            }
        }
    }

    /// The model, unless it has failed.
    fn alive(&self, model: Loaded) -> Result<Loaded, Refusal> {
        match model.failure() {
            Some(why) => Err(Refusal::new(Kind::Failed, format!("the model {} has failed: {why}", self.name()))),
            None => Ok(model),
        }
    }

    /// What the chat layer refused of a request to this model, with the fields called as `name` does.
    pub(super) fn refusal(&self, error: &chat::Error, name: fn(Field) -> String) -> Refusal {
        let refusal = Refusal::of_chat(error, name);
        if refusal.kind == Kind::Failed {
            let message = format!("the model {} has failed: {}", self.name(), refusal.message);
            return Refusal { message, ..refusal };
        }
        refusal
    }

    /// Starts to load it where nobody does so yet and there is something to load it by.
    fn begin_loading(self: &Arc<Entry>) {
        let Some(loader) = self.loader.clone() else { return };
        let begins = self.state.send_if_modified(|state| {
            let begins = match state {
                State::Absent => true,
                State::Failed { at, .. } => at.elapsed() >= TRY_AGAIN,
                State::Loading | State::Loaded { .. } => false,
            };
            if begins {
                *state = State::Loading;
            }
            begins
        });
        if !begins {
            return;
        }
        let entry = Arc::clone(self);
        tokio::spawn(async move {
            let loaded = tokio::task::spawn_blocking(move || loader()).await;
            let loaded = loaded.unwrap_or_else(|_| Err("loading it panicked".to_owned()));
            entry.state.send_replace(match loaded {
                Ok(model) => State::Loaded { model, since: now() },
                Err(why) => State::Failed { why, at: Instant::now() },
            });
        });
    }
}

/// One who waits, until it is dropped.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    others: usize,
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Waiting<'a> {
        Waiting { count, others: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
