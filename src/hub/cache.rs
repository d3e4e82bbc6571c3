//! Where downloads lie on disk: the folder layout that the hub's other tools share, the locks, and the free space.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Config, Error, files};

/// A model that is on this machine, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// A name that [`super::Hub::resolve`] understands: `org/name` or `pypi:name==version`.
    pub name: String,
    /// What the loader takes.
    pub path: PathBuf,
    /// Bytes on disk; a file that two names share is counted for each.
    pub bytes: u64,
}

/// One repository's part of the hub cache: `models--org--name/{blobs,refs,snapshots}`.
///
/// A blob is named by its ETag and holds a file's bytes; a snapshot is a commit's folder of links to blobs; a ref holds
/// the commit that a branch or a tag last pointed to.
pub(super) struct RepoCache {
    root: PathBuf,
    folder: String,
}

impl RepoCache {
    /// The cache of one repository, `org/name`.
    pub fn new(config: &Config, repo: &str) -> RepoCache {
        let folder = format!("models--{}", repo.replace('/', "--"));
        RepoCache { root: config.hub_cache.clone(), folder }
    }

    /// The repository's folder, `models--org--name`.
    pub fn folder(&self) -> PathBuf {
        self.root.join(&self.folder)
    }

    /// Where a file's bytes lie, by the hub's ETag.
    pub fn blob(&self, etag: &str) -> PathBuf {
        self.folder().join("blobs").join(etag)
    }

    /// Where a download grows until it is complete and checked.
    pub fn partial(&self, etag: &str) -> PathBuf {
        self.folder().join("blobs").join(format!("{etag}.incomplete"))
    }

    /// The lock that whoever downloads this blob holds, other tools included.
    pub fn lock(&self, etag: &str) -> PathBuf {
        self.root.join(".locks").join(&self.folder).join(format!("{etag}.lock"))
    }

    /// The folder of links that is one commit.
    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder().join("snapshots").join(commit)
    }

    /// The commit that `revision` pointed to when it was last asked for.
    pub fn commit_of(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_string());
        }
        let commit = fs::read_to_string(self.folder().join("refs").join(revision)).ok()?;
        let commit = commit.trim();
        files::is_safe(commit).then(|| commit.to_string())
    }

    /// The commits that have a snapshot, newest first.
    pub fn commits(&self) -> Vec<String> {
        let mut commits = entries(&self.folder().join("snapshots"));
        commits.sort_by_key(|commit| fs::metadata(self.snapshot(commit)).and_then(|meta| meta.modified()).ok());
        commits.reverse();
        commits
    }

    /// Notes where `revision` points to. A commit needs no note.
    pub fn set_ref(&self, revision: &str, commit: &str) -> Result<(), Error> {
        if is_commit(revision) {
            return Ok(());
        }
        let path = self.folder().join("refs").join(revision);
        make_parent(&path)?;
        replace(&path, |new| fs::write(new, commit))
    }

    /// Makes the file `name` of a commit's snapshot a link to its blob: relative, so that the cache can be moved.
    pub fn link(&self, commit: &str, name: &str, etag: &str) -> Result<(), Error> {
        let path = self.snapshot(commit).join(name);
        make_parent(&path)?;
        let up = "../".repeat(2 + name.matches('/').count());
        replace(&path, |new| symlink(format!("{up}blobs/{etag}"), new))
    }
}

/// A full commit id never changes its meaning; a branch or a tag may.
pub(super) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit())
}

/// The folder in which models from packages lie.
pub(super) fn registry_folder(config: &Config) -> PathBuf {
    config.cache.join("registry")
}

/// Writes beside `path` and renames, so that no reader sees half a file.
fn replace(path: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let new = PathBuf::from(format!("{}.{}-{number}.new", path.display(), std::process::id()));
    write(&new).and_then(|()| fs::rename(&new, path)).map_err(|error| Error::io("write", path, error))
}

pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|error| Error::io("create the folder", path, error))
}

pub(super) fn make_parent(path: &Path) -> Result<(), Error> {
    path.parent().map_or(Ok(()), make_folder)
}

/// Holds the lock file at `path` until the answer is dropped; `waits` is called once if another holds it. The kernel
/// releases it if the process dies, so a lock file that lies there means nothing by itself.
pub(super) async fn lock(path: &Path, waits: impl FnOnce()) -> Result<File, Error> {
    make_parent(path)?;
    let file = File::options().create(true).append(true).open(path);
    let file = file.map_err(|error| Error::io("open the lock file", path, error))?;
    let mut waits = Some(waits);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A file system without locks (some network drives): go on alone, as the hub's other tools do.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path, error)),
            Err(TryLockError::WouldBlock) => {
                if let Some(waits) = waits.take() {
                    waits();
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Fails if fewer than `needed` bytes are free where `folder` is (or will be). Where the system cannot tell, it passes.
pub(super) fn check_space(folder: &Path, needed: u64) -> Result<(), Error> {
    let Some(existing) = folder.ancestors().find(|path| path.exists()) else {
        return Ok(());
    };
    let Ok(system) = rustix::fs::statvfs(existing) else {
        return Ok(());
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if free < needed {
        return Err(Error::DiskFull { folder: folder.to_path_buf(), needed, free });
    }
    Ok(())
}

/// Bytes below `path`, links followed.
pub(super) fn size_of(path: &Path) -> u64 {
    let Ok(meta) = fs::metadata(path) else { return 0 };
    if meta.is_file() {
        return meta.len();
    }
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries.flatten().map(|entry| size_of(&entry.path())).sum()
}

/// Every complete model in the two caches, by name.
pub(super) fn installed(config: &Config) -> Vec<Installed> {
    let mut found: Vec<Installed> = entries(&config.hub_cache)
        .into_iter()
        .filter_map(|folder| hub_model(config, &folder))
        .chain(entries(&registry_folder(config)).into_iter().filter_map(|folder| registry_model(config, &folder)))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The model of the repository's `main`, or else of its newest complete snapshot (a pinned one has no ref).
fn hub_model(config: &Config, folder: &str) -> Option<Installed> {
    let name = folder.strip_prefix("models--")?.replacen("--", "/", 1);
    let cache = RepoCache::new(config, &name);
    let model = |commit: &str| Some((commit.to_string(), files::model_in(&cache.snapshot(commit), None)?));
    let newest = || cache.commits().iter().find_map(|commit| model(commit));
    match cache.commit_of("main").and_then(|commit| model(&commit)) {
        Some((_, path)) => Some(Installed { name, bytes: size_of(&path), path }),
        None => {
            newest().map(|(commit, path)| Installed { name: format!("{name}@{commit}"), bytes: size_of(&path), path })
        }
    }
}

/// `name==version` or `name==version#file`, as the registry's folders are called.
fn registry_model(config: &Config, folder: &str) -> Option<Installed> {
    folder.split_once("==").filter(|(package, _)| !package.starts_with('.'))?;
    let inside = registry_folder(config).join(folder);
    let path = files::model_in(&inside, None)?;
    Some(Installed { name: format!("pypi:{folder}"), bytes: size_of(&path), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config =
            Config { hub_cache: folder.path().join("hub"), cache: folder.path().join("own"), ..Config::default() };
        (folder, config)
    }

    #[test]
    fn links_and_refs_are_where_other_tools_look() {
        let (_folder, config) = scratch();
        let cache = RepoCache::new(&config, "org/name");
        let commit = "0123456789012345678901234567890123456789";
        make_parent(&cache.blob("abc")).expect("writable");
        fs::write(cache.blob("abc"), "bytes").expect("writable");
        cache.link(commit, "config.json", "abc").expect("linked");
        cache.link(commit, "deep/er/x.json", "abc").expect("linked");
        cache.link(commit, "config.json", "abc").expect("linking again does no harm");
        cache.set_ref("refs/pr/1", commit).expect("written");
        cache.set_ref(commit, commit).expect("nothing to write");
        let root = config.hub_cache.join("models--org--name");
        for name in ["config.json", "deep/er/x.json"] {
            let path = root.join("snapshots").join(commit).join(name);
            assert_eq!(fs::read_to_string(path).expect("the link leads to the blob"), "bytes");
        }
        assert_eq!(fs::read_to_string(root.join("refs/refs/pr/1")).expect("a ref"), commit);
        assert_eq!(cache.commit_of("refs/pr/1").as_deref(), Some(commit));
        assert_eq!(cache.commit_of(commit).as_deref(), Some(commit));
        assert_eq!(cache.commit_of("main"), None);
        assert_eq!(entries(&root.join("refs")), ["refs"]);
    }

    #[tokio::test]
    async fn a_lock_is_waited_for_and_freed_by_dropping() {
        let (folder, _) = scratch();
        let path = folder.path().join("locks/x.lock");
        let held = lock(&path, || panic!("nobody holds it")).await.expect("locked");
        let waiting = tokio::spawn({
            let path = path.clone();
            async move {
                let (tell, told) = std::sync::mpsc::channel();
                lock(&path, move || tell.send(()).expect("listening")).await.expect("locked at last");
                told.try_recv().is_ok()
            }
        });
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(!waiting.is_finished());
        drop(held);
        assert!(waiting.await.expect("no panic"), "it said that it waits");
    }

    #[test]
    fn more_than_the_disk_holds_is_refused_with_both_numbers() {
        let (folder, _) = scratch();
        let below = folder.path().join("not/yet/there");
        check_space(&below, 1).expect("one byte fits");
        let error = check_space(&below, u64::MAX).expect_err("that never fits");
        assert!(matches!(error, Error::DiskFull { free, needed: u64::MAX, .. } if free > 0), "{error}");
    }
}
