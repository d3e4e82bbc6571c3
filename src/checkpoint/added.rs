//! The tokens that the files beside a `tokenizer.json` add to it, or say more of. Which file counts is transformers'
//! choice (compared with 5.24).

use std::path::Path;

use serde_json::Value;

use super::{Error, read_json};

/// The parts that special tokens have, as transformers names them.
pub(super) const SPECIAL_TOKENS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// A token as another file than `tokenizer.json` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedToken {
    pub content: String,
    /// Never shown.
    pub special: bool,
    /// Only where no word goes on before or behind it.
    pub single_word: bool,
    /// Takes the space before it.
    pub lstrip: bool,
    /// Takes the space behind it.
    pub rstrip: bool,
    /// Found in the text as it is after normalisation.
    pub normalized: bool,
    /// The id that the file names, if it names one.
    pub id: Option<u64>,
    pub rank: Rank,
}

/// How much a file's word counts where `tokenizer.json` has the same token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Its flags count.
    Flags,
    /// It is special, whatever the flags say; the others stay.
    Special,
    /// Nothing: it only adds the token.
    New,
}

impl AddedToken {
    fn new(content: &str, special: bool, rank: Rank) -> AddedToken {
        AddedToken {
            content: content.to_owned(),
            special,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: !special,
            id: None,
            rank,
        }
    }
}

/// The tokens in the order in which they are added. Where `tokenizer_config.json` has an `added_tokens_decoder`,
/// `special_tokens_map.json` and `added_tokens.json` are leftovers.
pub(super) fn of(folder: &Path, config: Option<&Value>, map: Option<&Value>) -> Result<Vec<AddedToken>, Error> {
    let decoder = config.and_then(|config| config.get("added_tokens_decoder"));
    let homes: Vec<&Value> = [config, map.filter(|_| decoder.is_none())].into_iter().flatten().collect();
    let named: Vec<&str> =
        SPECIAL_TOKENS.iter().filter_map(|part| homes.iter().find_map(|home| text(home.get(part)?))).collect();
    let mut tokens = match decoder {
        Some(decoder) => decoded(&folder.join("tokenizer_config.json"), decoder)?,
        None => listed(&folder.join("added_tokens.json"), &named)?,
    };
    tokens.extend(named.iter().map(|token| AddedToken::new(token, true, Rank::Special)));
    let extra =
        homes.iter().flat_map(|home| ["extra_special_tokens", "additional_special_tokens"].map(|key| home.get(key)));
    tokens.extend(extra.flatten().flat_map(texts).map(|token| AddedToken::new(token, true, Rank::New)));
    tokens.retain(|token| !token.content.is_empty());
    Ok(tokens)
}

/// `{"151643": {"content": "<|endoftext|>", "special": true, …}}`, by id.
fn decoded(path: &Path, decoder: &Value) -> Result<Vec<AddedToken>, Error> {
    let wrong =
        |id: &str| Error::damaged(path, format!("added_tokens_decoder: {id} is no token with an id and a content"));
    let mut tokens = Vec::new();
    for (id, entry) in decoder.as_object().into_iter().flatten() {
        let number: u64 = id.parse().map_err(|_| wrong(id))?;
        let content = entry.get("content").and_then(Value::as_str).ok_or_else(|| wrong(id))?;
        let flag = |name: &str, otherwise: bool| entry.get(name).and_then(Value::as_bool).unwrap_or(otherwise);
        let special = flag("special", false);
        tokens.push(AddedToken {
            single_word: flag("single_word", false),
            lstrip: flag("lstrip", false),
            rstrip: flag("rstrip", false),
            normalized: flag("normalized", !special),
            id: Some(number),
            ..AddedToken::new(content, special, Rank::Flags)
        });
    }
    tokens.sort_by_key(|token| token.id);
    Ok(tokens)
}

/// `{"<|new|>": 32000}`, as older folders have it.
fn listed(path: &Path, named: &[&str]) -> Result<Vec<AddedToken>, Error> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let json = read_json(path)?;
    let entries = json.as_object().into_iter().flatten();
    let token = |(content, id): (&String, &Value)| AddedToken {
        id: id.as_u64(),
        ..AddedToken::new(content, named.contains(&content.as_str()), Rank::New)
    };
    let mut tokens: Vec<AddedToken> = entries.map(token).collect();
    tokens.sort_by_key(|token| token.id);
    Ok(tokens)
}

/// A token's text, alone or with flags.
fn text(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token.get("content")?.as_str())
}

/// The texts of a list, or of an object that names each.
fn texts(tokens: &Value) -> Vec<&str> {
    match tokens {
        Value::Array(list) => list.iter().filter_map(text).collect(),
        Value::Object(named) => named.values().filter_map(text).collect(),
        _ => Vec::new(),
    }
}
