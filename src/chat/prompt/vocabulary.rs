//! The vocabulary of a GGUF as the `tokenizer.json` of the same model.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::chat::LoadError;
use crate::checkpoint::{TokenType, Vocabulary};

/// GPT-2's splitting (Radford et al. 2019), and the parts that later ones share.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// One way to split text before merging.
struct Split {
    /// What GGUFs call it in `tokenizer.ggml.pre`.
    names: &'static [&'static str],
    /// Each cuts the pieces of the one before.
    patterns: &'static [&'static str],
    /// Whether a piece that is a token as a whole is not merged.
    whole_pieces: bool,
    adds_bos: bool,
}

const SPLITS: &[Split] = &[
    Split { names: &["gpt-2", "gpt2"], patterns: &[GPT2], whole_pieces: false, adds_bos: false },
    Split {
        names: &["smollm", "starcoder", "refact", "codeshell", "command-r"],
        patterns: &[r"\p{N}", GPT2],
        whole_pieces: false,
        adds_bos: false,
    },
    Split { names: &["llama-bpe", "llama3", "llama-v3"], patterns: &[LLAMA3], whole_pieces: true, adds_bos: true },
    Split { names: &["qwen2", "deepseek-r1-qwen"], patterns: &[QWEN2], whole_pieces: false, adds_bos: false },
    Split { names: &["qwen35"], patterns: &[QWEN35], whole_pieces: false, adds_bos: false },
    Split { names: &["tekken"], patterns: &[TEKKEN], whole_pieces: true, adds_bos: true },
    Split {
        names: &["default"],
        patterns: &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
        whole_pieces: false,
        adds_bos: false,
    },
];

/// Writes the `tokenizer.json`.
pub(in crate::chat) fn to_json(vocabulary: &Vocabulary) -> Result<Vec<u8>, LoadError> {
    let mut json = match vocabulary.model.as_str() {
        "gpt2" => byte_level(vocabulary)?,
        "llama" => sentence_piece(vocabulary)?,
        other => {
            let message = format!("a GGUF's tokenizer of the kind \"{other}\" is not supported, only gpt2 and llama");
            return Err(LoadError::Tokenizer(message));
        }
    };
    json["version"] = "1.0".into();
    json["added_tokens"] = added_tokens(vocabulary);
    serde_json::to_vec(&json).map_err(|error| LoadError::Tokenizer(error.to_string()))
}

fn byte_level(vocabulary: &Vocabulary) -> Result<Value, LoadError> {
    let name = vocabulary.pre.as_deref().unwrap_or("default");
    let Some(split) = SPLITS.iter().find(|split| split.names.contains(&name)) else {
        let known: Vec<&str> = SPLITS.iter().flat_map(|split| split.names).copied().collect();
        let known = known.join(", ");
        let message = format!("its way of splitting text, \"{name}\", is not supported; mettle knows {known}");
        return Err(LoadError::Tokenizer(message));
    };
    let mut steps: Vec<Value> = split
        .patterns
        .iter()
        .map(|regex| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false}))
        .collect();
    steps.push(json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}));
    // A token may begin with a space but is never empty, so the pair is cut at the first space after its start.
    let merges: Option<Vec<Value>> = vocabulary
        .merges
        .iter()
        .map(|merge| {
            let (cut, _) = merge.char_indices().skip(1).find(|(_, char)| *char == ' ')?;
            Some(json!([merge[..cut], merge[cut + 1..]]))
        })
        .collect();
    let Some(merges) = merges else {
        return Err(LoadError::Tokenizer("one of its merges is no pair".to_owned()));
    };
    Ok(json!({
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": around(vocabulary, vocabulary.add_bos.unwrap_or(split.adds_bos)),
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "ignore_merges": split.whole_pieces, "vocab": ids(vocabulary), "merges": merges},
    }))
}

/// SentencePiece's BPE keeps no merges but scores: of all pairs that make a token, the one with the best score is
/// merged first.
fn sentence_piece(vocabulary: &Vocabulary) -> Result<Value, LoadError> {
    if vocabulary.scores.len() != vocabulary.tokens.len() {
        return Err(LoadError::Tokenizer("it is SentencePiece's, but has no scores".to_owned()));
    }
    let prefix = vocabulary.add_space_prefix.unwrap_or(true);
    let mut normalizers = vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})];
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let unknown = vocabulary.unknown.map(|id| vocabulary.tokens[id as usize].as_str());
    Ok(json!({
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "post_processor": around(vocabulary, vocabulary.add_bos.unwrap_or(true)),
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE", "unk_token": unknown, "fuse_unk": true, "byte_fallback": true,
            "vocab": ids(vocabulary), "merges": merges_by_score(vocabulary),
        },
    }))
}

fn merges_by_score(vocabulary: &Vocabulary) -> Vec<(&str, &str)> {
    let by_name: HashMap<&str, usize> = vocabulary.tokens.iter().map(String::as_str).zip(0..).collect();
    let mut merges = Vec::new();
    for (id, token) in vocabulary.tokens.iter().enumerate() {
        if vocabulary.types[id] != TokenType::Normal {
            continue;
        }
        for (cut, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(cut);
            if let (Some(&first), Some(&second)) = (by_name.get(left), by_name.get(right)) {
                merges.push((vocabulary.scores[id], first, second, left, right));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    merges.into_iter().map(|(_, _, _, left, right)| (left, right)).collect()
}

fn ids(vocabulary: &Vocabulary) -> Map<String, Value> {
    vocabulary.tokens.iter().cloned().zip((0u32..).map(Value::from)).collect()
}

/// Control tokens are found in text before anything else and never shown; user-defined ones are found and shown.
fn added_tokens(vocabulary: &Vocabulary) -> Value {
    let tokens = vocabulary.tokens.iter().zip(&vocabulary.types).zip(0u32..);
    tokens
        .filter_map(|((content, kind), id)| {
            let special = match kind {
                TokenType::Control | TokenType::Unknown => true,
                TokenType::UserDefined => false,
                TokenType::Normal | TokenType::Unused | TokenType::Byte => return None,
            };
            let plain = json!({"single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
            let mut token = json!({"id": id, "content": content, "special": special});
            plain.as_object()?.iter().for_each(|(key, value)| token[key] = value.clone());
            Some(token)
        })
        .collect()
}

/// What stands before and after a text of its own.
fn around(vocabulary: &Vocabulary, adds_bos: bool) -> Value {
    let before = vocabulary.bos.filter(|_| adds_bos);
    let after = vocabulary.eos.filter(|_| vocabulary.add_eos == Some(true));
    let piece = |id: u32| json!({"SpecialToken": {"id": vocabulary.tokens[id as usize], "type_id": 0}});
    let mut single: Vec<Value> = before.into_iter().map(piece).collect();
    single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
    single.extend(after.into_iter().map(piece));
    let mut special = Map::new();
    for id in before.into_iter().chain(after) {
        let name = &vocabulary.tokens[id as usize];
        special.insert(name.clone(), json!({"id": name, "ids": [id], "tokens": [name]}));
    }
    let pair = json!([{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]);
    json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special})
}
