//! Why a checkpoint cannot be read: every message names the file and, where there is one, the way out.

use std::path::{Path, PathBuf};

/// A model folder or file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system would not let us read.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The file ends before what it promises.
    #[error(
        "{} is cut short: {what} ends at byte {expected}, but the file has {actual} bytes ({} are missing); \
         the download may be incomplete, delete the file and pull the model again",
        path.display(),
        expected.saturating_sub(*actual)
    )]
    Truncated { path: PathBuf, what: String, expected: u64, actual: u64 },
    /// The file's content contradicts its format.
    #[error("{} is damaged: {message}", path.display())]
    Damaged { path: PathBuf, message: String },
    /// A file or a field that a model needs is not there.
    #[error("{}: {message}", path.display())]
    Missing { path: PathBuf, message: String },
    /// A sound file of a kind that mettle does not read.
    #[error("{}: {message}", path.display())]
    Unsupported { path: PathBuf, message: String },
}

impl Error {
    /// What is wrong, without the path: of a file that has none yet.
    pub fn message(&self) -> String {
        match self {
            Error::Damaged { message, .. } => format!("it is damaged: {message}"),
            Error::Missing { message, .. } | Error::Unsupported { message, .. } => message.clone(),
            Error::Io { .. } | Error::Truncated { .. } => self.to_string(),
        }
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> Error {
        Error::Io { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, message: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), message: message.into() }
    }

    pub(crate) fn missing(path: &Path, message: impl Into<String>) -> Error {
        Error::Missing { path: path.to_owned(), message: message.into() }
    }

    pub(crate) fn unsupported(path: &Path, message: impl Into<String>) -> Error {
        Error::Unsupported { path: path.to_owned(), message: message.into() }
    }
}
