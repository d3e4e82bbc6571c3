//! The tokenizer inside a GGUF: its metadata under `tokenizer.`, unpacked.

use std::path::Path;

use super::super::Error;
use super::reader::{Metadata, Value};

/// A GGUF's tokenizer. The lists run over the token ids.
#[derive(Debug, Clone, PartialEq)]
pub struct Vocabulary {
    /// The kind: "gpt2" (byte-level BPE), "llama" (SentencePiece), …
    pub model: String,
    /// How text is split before merging: "smollm", "llama-bpe", …; only byte-level BPE has one.
    pub pre: Option<String>,
    /// Their names.
    pub tokens: Vec<String>,
    /// What each is.
    pub types: Vec<TokenType>,
    /// SentencePiece's scores; empty in byte-level BPE.
    pub scores: Vec<f32>,
    /// Pairs with a space between, best first; empty in SentencePiece.
    pub merges: Vec<String>,
    /// The token that begins a document.
    pub bos: Option<u32>,
    /// The token that ends one.
    pub eos: Option<u32>,
    /// The token that ends a turn.
    pub eot: Option<u32>,
    /// The token that ends a message, for tools.
    pub eom: Option<u32>,
    /// The token for what has none.
    pub unknown: Option<u32>,
    /// Whether an encoded text begins with `bos`; `None` leaves it to the kind.
    pub add_bos: Option<bool>,
    /// Whether an encoded text ends with `eos`.
    pub add_eos: Option<bool>,
    /// Whether SentencePiece puts a space before the text.
    pub add_space_prefix: Option<bool>,
    /// The chat template.
    pub template: Option<String>,
    /// A chat template of its own for requests with tools.
    pub tool_template: Option<String>,
}

/// What a token is; the numbers are the format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenType {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

pub(super) fn of(path: &Path, metadata: &Metadata) -> Result<Vocabulary, Error> {
    let Some(model) = metadata.text("tokenizer.ggml.model") else {
        return Err(Error::missing(path, "the GGUF holds no tokenizer (no tokenizer.ggml.model)"));
    };
    let tokens = strings(path, metadata, "tokenizer.ggml.tokens")?;
    if tokens.is_empty() {
        return Err(Error::missing(path, "the GGUF holds no tokenizer (no tokenizer.ggml.tokens)"));
    }
    let merges = strings(path, metadata, "tokenizer.ggml.merges")?;
    // Without them every text would be cut into single bytes, and the model would answer nonsense.
    if model == "gpt2" && metadata.get("tokenizer.ggml.merges").is_none() {
        let message = "the GGUF has no tokenizer.ggml.merges, which a tokenizer of the kind gpt2 needs; its converter \
                       was broken: convert the model anew, or take another file";
        return Err(Error::missing(path, message));
    }
    let types = token_types(path, metadata, tokens.len())?;
    let scores = scores(path, metadata, tokens.len())?;
    let id = |key: &str| match metadata.unsigned(&format!("tokenizer.ggml.{key}_token_id")) {
        // Some converters write -1 or a number beyond the vocabulary for "none".
        Some(id) if id < tokens.len() as u64 => Some(id as u32),
        _ => None,
    };
    Ok(Vocabulary {
        model: model.to_owned(),
        pre: metadata.text("tokenizer.ggml.pre").map(str::to_owned),
        types,
        scores,
        merges,
        bos: id("bos"),
        eos: id("eos"),
        eot: id("eot"),
        eom: id("eom"),
        unknown: id("unknown"),
        add_bos: metadata.boolean("tokenizer.ggml.add_bos_token"),
        add_eos: metadata.boolean("tokenizer.ggml.add_eos_token"),
        add_space_prefix: metadata.boolean("tokenizer.ggml.add_space_prefix"),
        template: metadata.text("tokenizer.chat_template").map(str::to_owned),
        tool_template: metadata.text("tokenizer.chat_template.tool_use").map(str::to_owned),
        tokens,
    })
}

/// A list of strings; an absent one is empty.
fn strings(path: &Path, metadata: &Metadata, key: &str) -> Result<Vec<String>, Error> {
    let wrong = || Error::damaged(path, format!("{key} is no list of strings"));
    match metadata.get(key) {
        None => Ok(Vec::new()),
        Some(Value::List(list)) => {
            list.iter().map(|item| if let Value::Text(text) = item { Ok(text.clone()) } else { Err(wrong()) }).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn token_types(path: &Path, metadata: &Metadata, count: usize) -> Result<Vec<TokenType>, Error> {
    let key = "tokenizer.ggml.token_type";
    let Some(value) = metadata.get(key) else {
        return Ok(vec![TokenType::Normal; count]);
    };
    let types: Option<Vec<TokenType>> = value.list().and_then(|list| list.iter().map(token_type).collect());
    check_length(path, key, types, count)
}

fn token_type(value: &Value) -> Option<TokenType> {
    Some(match value.unsigned()? {
        0 | 1 => TokenType::Normal,
        2 => TokenType::Unknown,
        3 => TokenType::Control,
        4 => TokenType::UserDefined,
        5 => TokenType::Unused,
        6 => TokenType::Byte,
        _ => return None,
    })
}

fn scores(path: &Path, metadata: &Metadata, count: usize) -> Result<Vec<f32>, Error> {
    let key = "tokenizer.ggml.scores";
    let Some(value) = metadata.get(key) else {
        return Ok(Vec::new());
    };
    let score = |value: &Value| value.number().map(|score| score as f32);
    check_length(path, key, value.list().and_then(|list| list.iter().map(score).collect()), count)
}

fn check_length<T>(path: &Path, key: &str, list: Option<Vec<T>>, count: usize) -> Result<Vec<T>, Error> {
    match list {
        None => Err(Error::damaged(path, format!("{key} is no list of the values it should hold"))),
        Some(list) if list.len() != count => {
            Err(Error::damaged(path, format!("{key} has {} entries for {count} tokens", list.len())))
        }
        Some(list) => Ok(list),
    }
}
