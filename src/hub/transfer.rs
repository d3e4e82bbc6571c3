//! One file's bytes from the hub into its partial file: resumed, counted, hashed on the way, checked at the end.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Response, StatusCode, Url};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncWriteExt, BufWriter};

use super::http::{self, About, Http, Verb};
use super::place::Repo;
use super::{Error, Event, Progress, cache};

/// Tries without a byte of progress before a file is given up.
const TRIES: u32 = 4;

/// A file of the hub and what identifies its bytes.
pub(super) struct Remote {
    pub name: String,
    pub url: Url,
    /// For a large file its SHA-256, for a small one git's object id.
    pub etag: String,
    /// Bytes; `None` if the hub does not say.
    pub size: Option<u64>,
}

impl Remote {
    /// What the bytes must hash to; a git object id says nothing about the plain bytes.
    fn sha256(&self) -> Option<&str> {
        (self.etag.len() == 64 && self.etag.chars().all(|c| c.is_ascii_hexdigit())).then_some(&self.etag)
    }
}

/// Bytes that are here, over all files of a download.
pub(super) struct Count<'a> {
    done: AtomicU64,
    progress: Progress<'a>,
}

impl<'a> Count<'a> {
    /// Nothing is here yet.
    pub fn new(progress: Progress<'a>) -> Count<'a> {
        Count { done: AtomicU64::new(0), progress }
    }

    /// One file's share of the count.
    pub fn file(&self) -> FileCount<'_> {
        FileCount { all: self, own: 0 }
    }
}

/// One file's share of a [`Count`].
pub(super) struct FileCount<'a> {
    all: &'a Count<'a>,
    own: u64,
}

impl FileCount<'_> {
    /// The file now has `bytes` bytes: more than before, or fewer if it starts anew.
    pub fn at(&mut self, bytes: u64) {
        let change = bytes.wrapping_sub(self.own);
        let done = self.all.done.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        self.own = bytes;
        (self.all.progress)(Event::Bytes { done });
    }
}

/// Where a file comes from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub http: &'a Http,
    pub repo: &'a Repo,
    pub remote: &'a Remote,
}

/// The download of one file.
pub(super) struct Transfer<'a> {
    origin: Origin<'a>,
    partial: &'a Path,
    count: FileCount<'a>,
    /// Over the first `have` bytes of the partial file.
    hasher: Sha256,
    have: u64,
    /// Once it has so many bytes it may stop.
    enough: u64,
}

impl<'a> Transfer<'a> {
    /// A download into the file `partial`, which may hold the beginning already.
    pub fn new(origin: Origin<'a>, partial: &'a Path, count: FileCount<'a>) -> Transfer<'a> {
        Transfer { origin, partial, count, hasher: Sha256::new(), have: 0, enough: u64::MAX }
    }

    /// Fills the partial file and checks it. Goes on where a broken connection stopped, until [`TRIES`] in a row
    /// brought nothing. What is there after an error can be resumed; wrong bytes are deleted.
    pub async fn run(&mut self) -> Result<(), Error> {
        self.persist().await?;
        (self.count.all.progress)(Event::Checking { file: self.origin.remote.name.clone() });
        self.check().inspect_err(|_| {
            // The next attempt would build on them and be wrong again.
            let _ = fs::remove_file(self.partial);
        })
    }

    /// Fills the partial file with its first `bytes` bytes, at least. Nothing is checked yet.
    pub async fn begin(&mut self, bytes: u64) -> Result<(), Error> {
        self.enough = bytes;
        self.persist().await
    }

    async fn persist(&mut self) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let before = cache::size_of(self.partial);
            let Err(error) = self.attempt().await else { return Ok(()) };
            tries = if cache::size_of(self.partial) > before { 1 } else { tries + 1 };
            if !error.is_transient() || tries >= TRIES {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(100 << tries)).await;
        }
    }

    /// One connection's worth.
    async fn attempt(&mut self) -> Result<(), Error> {
        self.resume().await?;
        self.count.at(self.have);
        if self.have > 0 && self.origin.remote.size == Some(self.have) {
            return Ok(());
        }
        let mut response = self.ask().await?;
        if self.have > 0 && response.status() != StatusCode::PARTIAL_CONTENT {
            // The server ignores ranges, or has no such range: the whole file from its start.
            (self.hasher, self.have) = (Sha256::new(), 0);
            self.count.at(0);
            if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
                response = self.ask().await?;
            }
        }
        self.append(response).await
    }

    /// Takes up what an earlier attempt left. What no digest will protect starts anew.
    async fn resume(&mut self) -> Result<(), Error> {
        let left = cache::size_of(self.partial);
        if left == self.have {
            return Ok(());
        }
        let trusted = self.origin.remote.sha256().is_some() && self.origin.remote.size.is_none_or(|size| left <= size);
        if left == 0 || !trusted {
            (self.hasher, self.have) = (Sha256::new(), 0);
            return Ok(());
        }
        let path = self.partial.to_path_buf();
        let hashed = tokio::task::spawn_blocking(move || hash_file(&path)).await;
        let hashed = hashed.expect("hashing panicked, which is a bug");
        (self.hasher, self.have) = hashed.map_err(|error| Error::io("read", self.partial, error))?;
        Ok(())
    }

    async fn ask(&self) -> Result<Response, Error> {
        let Origin { http, repo, remote } = self.origin;
        let about = About { repo, file: Some(&remote.name) };
        http.send_once(Verb::Get, remote.url.clone(), self.have, about).await
    }

    /// Writes the response's body behind the first `have` bytes.
    async fn append(&mut self, mut response: Response) -> Result<(), Error> {
        let failed = |error| Error::io("write", self.partial, error);
        let mut options = tokio::fs::OpenOptions::new();
        let options =
            if self.have > 0 { options.append(true) } else { options.write(true).create(true).truncate(true) };
        let file = options.open(self.partial).await.map_err(failed)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let ended = loop {
            if self.have >= self.enough {
                break Ok(());
            }
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break Ok(()),
                Err(error) => break Err(http::broken(&error)),
            };
            self.hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(failed)?;
            self.have += chunk.len() as u64;
            self.count.at(self.have);
        };
        // What came before a broken connection is kept, too.
        file.flush().await.map_err(failed)?;
        ended?;
        if self.origin.remote.size.is_some_and(|size| self.have < size.min(self.enough)) {
            let url = http::shown(&self.origin.remote.url);
            return Err(Error::Network { url, reason: "the connection ended too early".into() });
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        let mismatch = |what, expected: &str, found: &str| Error::Mismatch {
            file: format!("{}/{}", self.origin.repo.repo, self.origin.remote.name),
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        };
        let digest = hex(&self.hasher.clone().finalize());
        match (self.origin.remote.size, self.origin.remote.sha256()) {
            (Some(size), _) if size != self.have => Err(mismatch("size", &size.to_string(), &self.have.to_string())),
            (_, Some(expected)) if expected != digest => Err(mismatch("sha256", expected, &digest)),
            _ => Ok(()),
        }
    }
}

/// The running hash and the length of a file. Blocks.
pub(super) fn hash_file(path: &Path) -> std::io::Result<(Sha256, u64)> {
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let (mut hasher, mut length) = (Sha256::new(), 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((hasher, length));
        }
        hasher.update(&buffer[..read]);
        length += read as u64;
    }
}

/// Lower-case hexadecimal, as digests are written.
pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
