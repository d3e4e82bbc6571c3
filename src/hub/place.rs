//! Where a model can be had from: this machine, a repository of the hub, or a Python package.

use std::{fmt, path::PathBuf};

use serde::Deserialize;

/// One place a model can be had from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// A folder or a GGUF file on this machine.
    #[serde(skip)]
    Local(PathBuf),
    /// A repository of the hub.
    Repo(Repo),
    /// A Python package that carries the model's files.
    Package(Package),
}

/// A repository of the hub: `org/name`, `org/name@revision`, `org/name#file.gguf`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repo {
    /// `org/name`.
    pub repo: String,
    /// A branch, a tag or a commit; without one, `main`.
    pub revision: Option<String>,
    /// The one file meant, where the repository holds several models.
    pub file: Option<String>,
}

/// A package of Python's registry: `pypi:name==version`, `pypi:name==version#file.gguf`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The package's name as the registry spells it.
    pub package: String,
    /// The exact version.
    pub version: String,
    /// The digests that its wheel may have; empty: whatever the registry's own check accepts.
    #[serde(default)]
    pub wheel_sha256: Vec<String>,
    /// The model's file inside the wheel; without it, the model that the wheel holds.
    pub file: Option<String>,
    /// The digest of that file.
    pub sha256: Option<String>,
}

impl Repo {
    /// The revision to ask for.
    pub(super) fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Local(path) => write!(f, "{}", path.display()),
            Place::Repo(repo) => write!(f, "{}", repo.repo),
            Place::Package(package) => write!(f, "pypi:{}=={}", package.package, package.version),
        }
    }
}
