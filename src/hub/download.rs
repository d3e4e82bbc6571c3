//! Models from the hub: list, refuse what cannot run, download what is missing with resume, check, link.
//!
//! Written over plain HTTP rather than with crate hf-hub: its 1.0 starts a cut file from zero, compares no digest, and
//! brings two hundred crates along.

use std::fs;
use std::path::PathBuf;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use super::cache::{self, RepoCache};
use super::http::{self, About, Http, Verb, header};
use super::place::Repo;
use super::transfer::{Count, Origin, Remote, Transfer};
use super::{Config, Error, Event, Progress, files};

/// Files in flight at once: enough to fill a line, few enough that a slow one finishes a file now and then.
const PARALLEL: usize = 4;

/// Bytes of a GGUF that are looked at first: they hold the architecture, and the whole header of a small vocabulary.
const FIRST_PART: u64 = 1 << 20;

/// The model's folder or GGUF file if all of it is in the cache. No network call.
pub(super) fn locate(config: &Config, repo: &Repo) -> Option<PathBuf> {
    let cache = RepoCache::new(config, &repo.repo);
    let commit = cache.commit_of(repo.revision())?;
    files::model_in(&cache.snapshot(&commit), repo.file.as_deref())
}

/// The newest complete snapshot of another commit than the one that `main` points to, and its commit: another tool may have noted where the branch is now without downloading it, or have downloaded a commit by its id.
pub(super) fn locate_older(config: &Config, repo: &Repo) -> Option<(PathBuf, String)> {
    if repo.revision() != "main" {
        return None;
    }
    let cache = RepoCache::new(config, &repo.repo);
    let commits = cache.commits();
    commits.into_iter().find_map(|commit| {
        let path = files::model_in(&cache.snapshot(&commit), repo.file.as_deref())?;
        Some((path, commit))
    })
}

/// Downloads what is missing of the repository's model and returns its folder or GGUF file.
pub(super) async fn fetch(config: &Config, http: &Http, repo: &Repo, progress: Progress<'_>) -> Result<PathBuf, Error> {
    let download = Download { config, http, repo, cache: RepoCache::new(config, &repo.repo), progress };
    let listing = download.listing().await?;
    let names = files::choose_or_explain(&repo.repo, &listing.names, repo.file.as_deref())?;
    let remotes = download.describe(&listing.commit, &names).await?;
    download.check_architecture(&remotes).await?;
    download.check_complete(&listing.names, &remotes).await?;
    download.check_gguf(&remotes).await?;
    download.get_all(&remotes).await?;
    download.publish(&listing.commit, &remotes)
}

struct Download<'a> {
    config: &'a Config,
    http: &'a Http,
    repo: &'a Repo,
    cache: RepoCache,
    progress: Progress<'a>,
}

/// A revision's commit and file names.
struct Listing {
    commit: String,
    names: Vec<String>,
}

/// The hub's answer about a revision, as far as it is read.
#[derive(Deserialize)]
struct Revision {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Download<'_> {
    async fn listing(&self) -> Result<Listing, Error> {
        let (owner, name) = self.repo.repo.split_once('/').expect("a repository without a slash is a bug");
        let url = self.http.url(&["api", "models", owner, name, "revision", self.repo.revision()]);
        let about = About { repo: self.repo, file: None };
        let response = self.http.send(Verb::Get, url.clone(), about).await?;
        let body = response.bytes().await.map_err(|error| http::broken(&error))?;
        let revision: Revision =
            serde_json::from_slice(&body).map_err(|error| http::nonsense(&url, error.to_string()))?;
        if !files::is_safe(&revision.sha) || revision.sha.contains('/') {
            return Err(http::nonsense(&url, "the commit is no commit"));
        }
        let names = revision.siblings.into_iter().map(|sibling| sibling.rfilename);
        Ok(Listing { commit: revision.sha, names: names.filter(|name| files::is_safe(name)).collect() })
    }

    /// Reads config.json before anything big, so that what mettle cannot run costs no gigabytes.
    async fn check_architecture(&self, remotes: &[Remote]) -> Result<(), Error> {
        let known = &self.config.architectures;
        if known.is_empty() {
            return Ok(());
        }
        let Some(text) = self.small(remotes, "config.json").await? else { return Ok(()) };
        match files::architecture(&text) {
            Some(found) if !known.contains(&found) => {
                Err(Error::Architecture { place: self.repo.repo.clone(), found, known: known.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Reads the index before the weights: a repository that lacks some of them is no model, however much of it comes.
    async fn check_complete(&self, names: &[String], remotes: &[Remote]) -> Result<(), Error> {
        let place = || self.repo.repo.clone();
        if !remotes.iter().any(|remote| remote.name.ends_with(".safetensors")) {
            return Ok(());
        }
        let index = self.small(remotes, files::INDEX).await?;
        match files::missing_weights(names, index.as_deref()) {
            Some(missing) if missing.is_empty() => Ok(()),
            Some(missing) => Err(Error::Incomplete { place: place(), missing }),
            None => Err(Error::Incomplete { place: place(), missing: vec![format!("a readable {}", files::INDEX)] }),
        }
    }

    /// Reads the header of a GGUF before the rest of it: the download goes on behind it.
    async fn check_gguf(&self, remotes: &[Remote]) -> Result<(), Error> {
        let first = remotes.iter().find(|remote| remote.name.ends_with(".gguf"));
        let (Some(judge), Some(remote)) = (self.config.judge, first) else { return Ok(()) };
        let Some(size) = remote.size else { return Ok(()) };
        let blob = self.cache.blob(&remote.etag);
        cache::make_parent(&blob)?;
        let waits = || (self.progress)(Event::Waiting { file: remote.name.clone() });
        let _lock = cache::lock(&self.cache.lock(&remote.etag), waits).await?;
        let partial = self.cache.partial(&remote.etag);
        let mut part = FIRST_PART;
        loop {
            let path = if blob.is_file() { &blob } else { &partial };
            let refused = |reason| Error::Refused { place: format!("{}/{}", self.repo.repo, remote.name), reason };
            let known = judge(&remote.name, path, size).map_err(refused)?;
            if known.is_some() || cache::size_of(path) >= size {
                return Ok(());
            }
            let origin = Origin { http: self.http, repo: self.repo, remote };
            let count = Count::new(&|_| ());
            Transfer::new(origin, &partial, count.file()).begin(part).await?;
            part *= 4;
        }
    }

    /// The content of a small file, downloaded before the others; `None` where the model has none of this name.
    async fn small(&self, remotes: &[Remote], name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(remote) = remotes.iter().find(|remote| remote.name == name) else { return Ok(None) };
        self.get(remote, &Count::new(&|_| ())).await?;
        let path = self.cache.blob(&remote.etag);
        fs::read(&path).map(Some).map_err(|error| Error::io("read", &path, error))
    }

    async fn describe(&self, commit: &str, names: &[String]) -> Result<Vec<Remote>, Error> {
        // Collected first: a stream that maps by a closure over references is not `Send`.
        let asked: Vec<_> = names.iter().map(|name| self.describe_one(commit, name)).collect();
        stream::iter(asked).buffered(2 * PARALLEL).try_collect().await
    }

    async fn describe_one(&self, commit: &str, name: &str) -> Result<Remote, Error> {
        let (owner, model) = self.repo.repo.split_once('/').expect("a repository without a slash is a bug");
        let mut parts = vec![owner, model, "resolve", commit];
        parts.extend(name.split('/'));
        let url = self.http.url(&parts);
        let about = About { repo: self.repo, file: Some(name) };
        let response = self.http.send(Verb::Head, url.clone(), about).await?;
        let headers = response.headers();
        // Of a file that lies on another host, the answer's own ETag and length are those of the redirect.
        let linked = |own: &str, linked: &str| header(headers, linked).or_else(|| header(headers, own));
        let etag = linked("etag", "x-linked-etag").unwrap_or_default();
        let etag = etag.trim_start_matches("W/").trim_matches('"');
        if !files::is_safe(etag) || etag.contains('/') {
            return Err(http::nonsense(&url, "it names no ETag"));
        }
        let away = response.status().is_redirection();
        let size = header(headers, "x-linked-size");
        let size = size.or_else(|| header(headers, "content-length").filter(|_| !away));
        let size = size.and_then(|size| size.parse().ok());
        Ok(Remote { name: name.to_string(), url, etag: etag.to_string(), size })
    }

    async fn get_all(&self, remotes: &[Remote]) -> Result<(), Error> {
        let missing: u64 = remotes.iter().map(|remote| self.missing(remote)).sum();
        cache::check_space(&self.cache.folder(), missing)?;
        let sizes = remotes.iter().map(|remote| remote.size).sum();
        (self.progress)(Event::Size { files: remotes.len(), bytes: sizes });
        let count = Count::new(self.progress);
        let started: Vec<_> = remotes.iter().map(|remote| self.get(remote, &count)).collect();
        stream::iter(started).buffer_unordered(PARALLEL).try_collect().await
    }

    /// Bytes of the file that are not on disk yet.
    fn missing(&self, remote: &Remote) -> u64 {
        let here =
            cache::size_of(&self.cache.blob(&remote.etag)).max(cache::size_of(&self.cache.partial(&remote.etag)));
        remote.size.unwrap_or(0).saturating_sub(here)
    }

    /// Links all files into the commit's snapshot, config.json last: a snapshot that has one is complete.
    fn publish(&self, commit: &str, remotes: &[Remote]) -> Result<PathBuf, Error> {
        let (last, first): (Vec<&Remote>, Vec<&Remote>) = remotes.iter().partition(|one| one.name == "config.json");
        for remote in first.into_iter().chain(last) {
            self.cache.link(commit, &remote.name, &remote.etag)?;
        }
        self.cache.set_ref(self.repo.revision(), commit)?;
        let snapshot = self.cache.snapshot(commit);
        let model = files::model_in(&snapshot, self.repo.file.as_deref());
        model.ok_or_else(|| Error::NoModel { place: self.repo.repo.clone() })
    }

    /// The blob of one file: there already, or waited for, or downloaded.
    async fn get(&self, remote: &Remote, count: &Count<'_>) -> Result<(), Error> {
        let blob = self.cache.blob(&remote.etag);
        cache::make_parent(&blob)?;
        let waits = || (self.progress)(Event::Waiting { file: remote.name.clone() });
        let _lock = cache::lock(&self.cache.lock(&remote.etag), waits).await?;
        if blob.is_file() {
            count.file().at(cache::size_of(&blob));
            return Ok(());
        }
        let partial = self.cache.partial(&remote.etag);
        let origin = Origin { http: self.http, repo: self.repo, remote };
        Transfer::new(origin, &partial, count.file()).run().await?;
        fs::rename(&partial, &blob).map_err(|error| Error::io("rename", &partial, error))
    }
}
