//! A checkpoint's text side: where its tokenizer, its chat template and its special tokens are written down.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::added::{self, AddedToken};
use super::gguf::Vocabulary;
use super::{Error, read_json};

/// A tokenizer as the checkpoint has it.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenizerSource {
    /// The content of a `tokenizer.json`, and what the files beside it add.
    Json { json: Vec<u8>, added: Vec<AddedToken>, rows: Option<u64> },
    /// The vocabulary of a GGUF.
    Gguf(Box<Vocabulary>),
}

#[derive(Debug)]
pub(super) enum Text {
    Folder {
        folder: PathBuf,
        tokenizer_config: Option<Value>,
        /// Older folders name their special tokens here.
        special_tokens_map: Option<Box<Value>>,
        generation_config: Option<Value>,
    },
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
            special_tokens_map: optional("special_tokens_map.json")?.map(Box::new),
            generation_config: optional("generation_config.json")?,
        })
    }

    /// `rows`: how many tokens the model has embeddings for.
    pub(super) fn tokenizer(&self, rows: Option<u64>) -> Result<TokenizerSource, Error> {
        let (folder, config, map) = match self {
            Text::Gguf(vocabulary) => return Ok(TokenizerSource::Gguf(vocabulary.clone())),
            Text::Folder { folder, tokenizer_config, special_tokens_map, .. } => {
                (folder, tokenizer_config.as_ref(), special_tokens_map.as_deref())
            }
        };
        let path = folder.join("tokenizer.json");
        if path.exists() {
            let json = std::fs::read(&path).map_err(|error| Error::io(&path, error))?;
            return Ok(TokenizerSource::Json { json, added: added::of(folder, config, map)?, rows });
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

    /// The text of a special token: of `bos_token`, say.
    pub(super) fn special_token(&self, part: &str) -> Option<String> {
        match self {
            Text::Folder { tokenizer_config, special_tokens_map, .. } => {
                let homes = [tokenizer_config.as_ref(), special_tokens_map.as_deref()].into_iter().flatten();
                let mut tokens = homes.filter_map(|home| home.get(part));
                tokens.find_map(|token| token.as_str().or_else(|| token.get("content")?.as_str())).map(str::to_owned)
            }
            Text::Gguf(vocabulary) => {
                let id = match part {
                    "bos_token" => vocabulary.bos,
                    "eos_token" => vocabulary.eos,
                    "unk_token" => vocabulary.unknown,
                    _ => None,
                };
                vocabulary.tokens.get(id? as usize).cloned()
            }
        }
    }
}
