//! A checkpoint's text side: where its tokenizer, its chat template and its special tokens are written down.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::gguf::Vocabulary;
use super::{Error, read_json};

/// A tokenizer as the checkpoint has it.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenizerSource {
    /// The content of a `tokenizer.json`.
    Json(Vec<u8>),
    /// The vocabulary of a GGUF.
    Gguf(Box<Vocabulary>),
}

#[derive(Debug)]
pub(super) enum Text {
    Folder { folder: PathBuf, tokenizer_config: Option<Value>, generation_config: Option<Value> },
    Gguf(Box<Vocabulary>),
}

impl Text {
    pub(super) fn of_folder(folder: &Path) -> Result<Text, Error> {
        let optional = |name: &str| {
            let path = folder.join(name);
            if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
        };
        Ok(Text::Folder {
            folder: folder.to_owned(),
            tokenizer_config: optional("tokenizer_config.json")?,
            generation_config: optional("generation_config.json")?,
        })
    }

    pub(super) fn tokenizer(&self) -> Result<TokenizerSource, Error> {
        let folder = match self {
            Text::Gguf(vocabulary) => return Ok(TokenizerSource::Gguf(vocabulary.clone())),
            Text::Folder { folder, .. } => folder,
        };
        let path = folder.join("tokenizer.json");
        if path.exists() {
            return std::fs::read(&path).map(TokenizerSource::Json).map_err(|error| Error::io(&path, error));
        }
        let other = ["tokenizer.model", "vocab.json", "tiktoken.model"].iter().find(|name| folder.join(name).exists());
        let message = match other {
            Some(name) => format!("the folder has {name} but no tokenizer.json, which mettle needs; convert it first"),
            None => "the folder has no tokenizer.json; pull the model again".to_owned(),
        };
        Err(Error::missing(folder, message))
    }

    pub(super) fn tokenizer_config(&self) -> Option<&Value> {
        match self {
            Text::Folder { tokenizer_config, .. } => tokenizer_config.as_ref(),
            Text::Gguf(_) => None,
        }
    }

    pub(super) fn generation_config(&self) -> Option<&Value> {
        match self {
            Text::Folder { generation_config, .. } => generation_config.as_ref(),
            Text::Gguf(_) => None,
        }
    }

    pub(super) fn template(&self) -> Result<Option<String>, Error> {
        let (folder, tokenizer_config) = match self {
            Text::Gguf(vocabulary) => return Ok(vocabulary.template.clone()),
            Text::Folder { folder, tokenizer_config, .. } => (folder, tokenizer_config),
        };
        let path = folder.join("chat_template.jinja");
        if path.exists() {
            return std::fs::read_to_string(&path).map(Some).map_err(|error| Error::io(&path, error));
        }
        let path = folder.join("chat_template.json");
        if path.exists() {
            let json = read_json(&path)?;
            return match json.get("chat_template") {
                Some(template) => choose_template(&path, template),
                None => Err(Error::damaged(&path, "it has no \"chat_template\"")),
            };
        }
        match tokenizer_config.as_ref().and_then(|config| config.get("chat_template")) {
            Some(template) => choose_template(&folder.join("tokenizer_config.json"), template),
            None => Ok(None),
        }
    }

    /// The text of `bos_token` or `eos_token`.
    pub(super) fn special_token(&self, key: &str) -> Option<String> {
        match self {
            Text::Folder { tokenizer_config, .. } => {
                let token = tokenizer_config.as_ref()?.get(key)?;
                Some(token.as_str().or_else(|| token.get("content")?.as_str())?.to_owned())
            }
            Text::Gguf(vocabulary) => {
                let id = if key == "bos_token" { vocabulary.bos } else { vocabulary.eos };
                vocabulary.tokens.get(id? as usize).cloned()
            }
        }
    }

    /// The id of a special token, from the tokenizer's own list of added tokens.
    pub(super) fn special_id(&self, token: &str) -> Result<Option<u32>, Error> {
        let Text::Folder { folder, tokenizer_config, .. } = self else {
            return Ok(None);
        };
        let decoder = tokenizer_config.as_ref().and_then(|config| config.get("added_tokens_decoder"));
        for (id, entry) in decoder.and_then(Value::as_object).into_iter().flatten() {
            if entry.get("content").and_then(Value::as_str) == Some(token) {
                return Ok(id.parse().ok());
            }
        }
        let path = folder.join("tokenizer.json");
        if !path.exists() {
            return Ok(None);
        }
        let json = read_json(&path)?;
        let added = json.get("added_tokens").and_then(Value::as_array);
        let entry =
            added.into_iter().flatten().find(|entry| entry.get("content").and_then(Value::as_str) == Some(token));
        Ok(entry.and_then(|entry| u32::try_from(entry.get("id")?.as_u64()?).ok()))
    }
}

/// A template is a string, or a list of named ones.
fn choose_template(path: &Path, value: &Value) -> Result<Option<String>, Error> {
    if value.is_null() {
        return Ok(None);
    }
    if let Some(template) = value.as_str() {
        return Ok(Some(template.to_owned()));
    }
    let named: Vec<(&str, &str)> = value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.get("name")?.as_str()?, entry.get("template")?.as_str()?)))
        .collect();
    match named.as_slice() {
        [] => Err(Error::damaged(path, "its \"chat_template\" is neither a string nor a list of named templates")),
        [(_, only)] => Ok(Some((*only).to_owned())),
        several => match several.iter().find(|(name, _)| *name == "default") {
            Some((_, template)) => Ok(Some((*template).to_owned())),
            None => {
                let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                Err(Error::unsupported(path, format!("of its chat templates ({names}) none is called \"default\"")))
            }
        },
    }
}
