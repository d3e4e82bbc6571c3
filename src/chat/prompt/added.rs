//! Takes into a pipeline what the files beside its `tokenizer.json` add. The pipeline gives new tokens their ids, as it
//! does for transformers.

use std::collections::HashMap;

use tokenizers::{AddedToken, Tokenizer as Pipeline};

use crate::{
    chat::LoadError,
    checkpoint::{self, Rank},
};

/// Adds the tokens and returns what is odd about them. `rows`: how many tokens the model has embeddings for; it could
/// not read one beyond.
pub(super) fn add(
    pipeline: &mut Pipeline,
    tokens: &[checkpoint::AddedToken],
    rows: Option<u64>,
) -> Result<Vec<String>, LoadError> {
    let mut warnings = Vec::new();
    let known = pipeline.get_added_tokens_decoder();
    // The pipeline's own rule: behind the last of both.
    let behind = known.keys().max().map_or(0, |last| last + 1);
    let mut next = behind.max(pipeline.get_vocab_size(false) as u32);
    let mut known: HashMap<String, (u32, AddedToken)> =
        known.into_iter().map(|(id, token)| (token.content.clone(), (id, token))).collect();
    let mut added = Vec::new();
    for token in tokens {
        let content = &token.content;
        let Some(taken) = merged(token, known.get(content).map(|(_, known)| known)) else { continue };
        let id = known.get(content).map(|(id, _)| *id).or_else(|| pipeline.token_to_id(content));
        if id.is_none() && rows.is_some_and(|rows| u64::from(next) >= rows) {
            let rows = rows.unwrap_or_default();
            warnings.push(format!(
                "the tokenizer's configuration adds {content:?} as token {next}, but the model has {rows} tokens; it is \
                 left out"
            ));
            continue;
        }
        let id = id.unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        if let Some(named) = token.id.filter(|named| *named != u64::from(id)) {
            warnings.push(format!(
                "the tokenizer's configuration gives {content:?} the id {named}, but by tokenizer.json it is {id}; it \
                 stays {id}"
            ));
        }
        known.insert(content.clone(), (id, taken.clone()));
        added.push(taken);
    }
    pipeline.add_tokens(added).map_err(|error| LoadError::Tokenizer(error.to_string()))?;
    Ok(warnings)
}

/// The token as both files have it together; `None` where it stays as it is.
fn merged(token: &checkpoint::AddedToken, known: Option<&AddedToken>) -> Option<AddedToken> {
    match (token.rank, known) {
        (Rank::New, Some(_)) => None,
        (Rank::Special, Some(known)) => Some(known.clone().special(true)),
        _ => Some(
            AddedToken::from(token.content.clone(), token.special)
                .single_word(token.single_word)
                .lstrip(token.lstrip)
                .rstrip(token.rstrip)
                .normalized(token.normalized),
        ),
    }
}
