//! The variables and files by which the hub's tools say where models lie and who asks for them, read as
//! huggingface_hub's constants.py reads them (compared with 2.4). An empty variable counts as none.

use std::path::{Path, PathBuf};

use crate::error::Failure;

/// The environment of the process.
pub struct Environment {
    home: Option<PathBuf>,
}

impl Environment {
    pub fn new() -> Environment {
        Environment { home: std::env::home_dir() }
    }

    /// What `~` means.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The folder of hub downloads.
    pub fn hub_cache(&self) -> Result<PathBuf, Failure> {
        let own = self.path("HF_HUB_CACHE").or_else(|| self.path("HUGGINGFACE_HUB_CACHE"));
        own.map_or_else(|| Ok(self.hub_home()?.join("hub")), Ok)
    }

    /// The folder of mettle's own downloads.
    pub fn cache(&self) -> Result<PathBuf, Failure> {
        self.path("METTLE_CACHE_DIR").or_else(|| Some(self.home()?.join(".cache/mettle"))).ok_or_else(no_home)
    }

    /// Whether the network may not be used.
    pub fn is_offline(&self) -> bool {
        variable("HF_HUB_OFFLINE").or_else(|| variable("TRANSFORMERS_OFFLINE")).is_some_and(|value| is_true(&value))
    }

    /// The login: of the variable, or of the file that `hf auth login` writes. A file that cannot be read is warned
    /// about, since most models need none.
    ///
    /// # Errors
    /// It holds what no token does.
    pub fn token(&self) -> Result<Option<String>, Failure> {
        if variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|value| is_true(&value)) {
            return Ok(None);
        }
        for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"] {
            if let Some(token) = variable(name).and_then(|token| clean(&token)) {
                return checked(token, name);
            }
        }
        let path = self.path("HF_TOKEN_PATH").or_else(|| Some(self.hub_home().ok()?.join("token")));
        let Some(path) = path else { return Ok(None) };
        match std::fs::read_to_string(&path) {
            Ok(text) => clean(&text).map_or(Ok(None), |token| checked(token, &path.display().to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                say!("warning: the login in {} cannot be read: {error}", path.display());
                Ok(None)
            }
        }
    }

    fn hub_home(&self) -> Result<PathBuf, Failure> {
        let caches = || self.path("XDG_CACHE_HOME").or_else(|| Some(self.home()?.join(".cache")));
        let home = self.path("HF_HOME").or_else(|| Some(caches()?.join("huggingface")));
        home.ok_or_else(no_home)
    }

    /// A variable's path, with `~` and `$NAME` in it replaced.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let text = expanded(&variable(name)?);
        let below = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        Some(match (below, self.home()) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(text),
        })
    }
}

fn no_home() -> Failure {
    Failure::new("there is no home folder for models").hint("set METTLE_CACHE_DIR and HF_HOME to folders that stay")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// The words that are true; any other is false.
fn is_true(value: &str) -> bool {
    ["1", "ON", "YES", "TRUE"].contains(&value.to_ascii_uppercase().as_str())
}

/// Without the line breaks that files and secret stores put behind a token.
fn clean(token: &str) -> Option<String> {
    let token = token.replace(['\r', '\n'], "").trim().to_owned();
    (!token.is_empty()).then_some(token)
}

fn checked(token: String, home: &str) -> Result<Option<String>, Failure> {
    if token.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(Some(token));
    }
    Err(Failure::new(format!("{home} holds no token: there are characters in it that no token has"))
        .hint("log in anew with `hf auth login`, or set HF_TOKEN to the token alone"))
}

/// `$NAME` and `${NAME}` replaced by what they are set to; an unset one stays as it is.
fn expanded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let braced = rest.strip_prefix("${").and_then(|inner| inner.split_once('}'));
        let plain = rest[1..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let (name, length) = braced.map_or((plain, 1 + plain.len()), |(name, _)| (name, name.len() + 3));
        out.push_str(&std::env::var(name).unwrap_or_else(|_| rest[..length].to_owned()));
        rest = &rest[length..];
    }
    out + rest
}
