//! Our tokenizer as llguidance sees one: a trie of every token's bytes, and how forced bytes become tokens.

use std::sync::Arc;

use llguidance::toktrie::{INVALID_TOKEN, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::chat::Tokenizer;

struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

/// The vocabulary of a model whose answers end with one of `stop_tokens`.
pub(super) fn environment(tokenizer: &Arc<Tokenizer>, stop_tokens: &[u32]) -> TokEnv {
    let count = tokenizer.vocab_size();
    let words: Vec<Vec<u8>> = (0..count as u32).map(|id| word(tokenizer, stop_tokens, id)).collect();
    let ends: Vec<TokenId> = stop_tokens.iter().copied().filter(|&id| (id as usize) < count).collect();
    let info = TokRxInfo::new(count as u32, ends.first().copied().unwrap_or(INVALID_TOKEN));
    let trie = TokTrie::from(&info, &words);
    let trie = if ends.is_empty() { trie } else { trie.with_eos_tokens(&ends) };
    Arc::new(Vocabulary { tokenizer: Arc::clone(tokenizer), trie })
}

/// A token's bytes. Special tokens and those that end an answer are no text; they stand behind a byte that no text
/// has, so that only a grammar that names them allows them.
fn word(tokenizer: &Tokenizer, stop_tokens: &[u32], id: u32) -> Vec<u8> {
    const MARKER: u8 = TokTrie::SPECIAL_TOKEN_MARKER;
    let bytes = tokenizer.bytes_of(id);
    if bytes.is_empty() || stop_tokens.contains(&id) {
        let name = tokenizer.name(id).unwrap_or_default();
        return if name.is_empty() { Vec::new() } else { [&[MARKER], name.as_bytes()].concat() };
    }
    // No UTF-8 begins so; the token of this one byte must not be taken for a marker.
    if bytes[0] == MARKER { Vec::new() } else { bytes.to_vec() }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    /// As the model was trained to spell these bytes. Where that is not these bytes exactly (a tokenizer that puts a
    /// space before, a text that names a special token), by the longest tokens.
    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let encoded = std::str::from_utf8(bytes).ok().and_then(|text| self.tokenizer.encode(text, false).ok());
        let spells = |ids: &Vec<u32>| ids.iter().flat_map(|&id| self.tokenizer.bytes_of(id)).eq(bytes);
        encoded.filter(spells).unwrap_or_else(|| self.trie.greedy_tokenize(bytes))
    }
}
