//! What converters of GGUFs get wrong in known ways: put right where it can be, and told.

use std::{borrow::Cow, collections::HashSet};

use crate::{
    chat::dialect::TURN_ENDS,
    checkpoint::{TokenType, Vocabulary},
};

/// The vocabulary with its known mistakes put right, and what was wrong, for a log.
///
/// `doubles` are its [`doubles`].
pub(super) fn mended<'a>(vocabulary: &'a Vocabulary, doubles: &[usize]) -> (Cow<'a, Vocabulary>, Vec<String>) {
    let marks = text_marks(vocabulary);
    let mut mended = Cow::Borrowed(vocabulary);
    let mut warnings = Vec::new();
    if !marks.is_empty() {
        let types = &mut mended.to_mut().types;
        marks.iter().for_each(|&id| types[id] = TokenType::Control);
        let names: Vec<&str> = marks.iter().take(5).map(|&id| vocabulary.tokens[id].as_str()).collect();
        let more = if marks.len() > names.len() { ", …" } else { "" };
        warnings.push(format!(
            "the GGUF's tokenizer.ggml.token_type has {}{more} as text; taken as control tokens, which they are by \
             their names. Its converter was wrong: converting the model anew helps",
            names.join(", ")
        ));
    }
    if vocabulary.model == "gpt2" && vocabulary.pre.is_none() {
        warnings.push(
            "the GGUF has no tokenizer.ggml.pre, so text is split in the way called default, which is wrong for most \
             models: answers will be worse. Its converter was too old: convert the model anew, or take another file"
                .to_owned(),
        );
    }
    if let Some(first) = doubles.first() {
        warnings.push(format!(
            "the GGUF's tokenizer.ggml.tokens has {} names twice, {:?} first; texts take the last of each",
            doubles.len(),
            vocabulary.tokens[*first]
        ));
    }
    (mended, warnings)
}

/// The ids of tokens whose name stands again further on.
pub(super) fn doubles(vocabulary: &Vocabulary) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(vocabulary.tokens.len());
    let backwards = vocabulary.tokens.iter().enumerate().rev();
    let mut doubles: Vec<usize> = backwards.filter(|(_, name)| !seen.insert(name.as_str())).map(|(id, _)| id).collect();
    doubles.reverse();
    doubles
}

/// The ids of control tokens that are typed as text: the well-known ends of a turn (llama.cpp takes these by name,
/// too), the file's own begin and end tokens, and what no text could ever be merged to and is written as a mark.
fn text_marks(vocabulary: &Vocabulary) -> Vec<usize> {
    let own = [vocabulary.bos, vocabulary.eos, vocabulary.eot, vocabulary.eom];
    let is_own = |id: usize| own.iter().flatten().any(|&own| own as usize == id);
    let typed = vocabulary.tokens.iter().zip(&vocabulary.types).enumerate();
    let wrong = typed.filter(|(id, (name, kind))| match kind {
        TokenType::Control | TokenType::Unknown | TokenType::Byte => false,
        TokenType::Normal if is_mark(name) => true,
        _ => TURN_ENDS.contains(&name.as_str()) || is_own(*id) && is_tag(name),
    });
    let wrong: Vec<usize> = wrong.map(|(id, _)| id).collect();
    let merged = merged(vocabulary, &wrong);
    let is_text = |id: usize| {
        let name = vocabulary.tokens[id].as_str();
        merged.contains(name) && !TURN_ENDS.contains(&name) && !is_own(id)
    };
    wrong.into_iter().filter(|&id| !is_text(id)).collect()
}

/// `<|im_start|>`, `<｜User｜>`: what converters themselves take for control tokens by its form.
fn is_mark(name: &str) -> bool {
    let between = |open: &str, close: &str| {
        name.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).is_some_and(|inner| !inner.is_empty())
    };
    between("<|", "|>") || between("<｜", "｜>")
}

/// `</s>`, `[EOS]`, and every mark.
fn is_tag(name: &str) -> bool {
    name.len() > 2 && (name.starts_with('<') && name.ends_with('>') || name.starts_with('[') && name.ends_with(']'))
}

/// Those of the tokens' names that a merge makes.
fn merged<'a>(vocabulary: &'a Vocabulary, ids: &[usize]) -> HashSet<&'a str> {
    let names: HashSet<&str> = ids.iter().map(|&id| vocabulary.tokens[id].as_str()).collect();
    let joined = vocabulary.merges.iter().filter(|merge| merge.ends_with('>')).map(|merge| merge.replacen(' ', "", 1));
    joined.filter_map(|name| names.get(name.as_str()).copied()).collect()
}
