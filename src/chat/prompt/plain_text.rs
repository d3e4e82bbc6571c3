//! Encoding a prompt in which some text reads like control tokens and is none.

use std::ops::Range;

use tokenizers::tokenizer::normalizer::Range as Slice;
use tokenizers::tokenizer::pre_tokenizer::Split;
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, Result,
    Token, Tokenizer as Pipeline,
};

/// The ids of `text`: the pipeline's own steps, but with no control token within `plain`.
pub(in crate::chat) fn encode(pipeline: &Pipeline, text: &str, plain: &[Range<usize>]) -> Result<Vec<u32>> {
    let controls = control_tokens(pipeline, text, plain);
    let mut pieces = PreTokenizedString::from(text);
    pieces.split(|_, whole| Ok(cut(&whole, &controls)))?;
    if let Some(normalizer) = pipeline.get_normalizer() {
        pieces.normalize(|piece| normalizer.normalize(piece))?;
    }
    if let Some(pre_tokenizer) = pipeline.get_pre_tokenizer() {
        pre_tokenizer.pre_tokenize(&mut pieces)?;
    }
    pieces.tokenize(|piece| tokens_of(pipeline, piece.get()))?;
    Ok(pieces.into_encoding(None, 0, OffsetType::Byte)?.get_ids().to_vec())
}

/// The control tokens outside `plain`, in order.
fn control_tokens(pipeline: &Pipeline, text: &str, plain: &[Range<usize>]) -> Vec<Token> {
    let masked = masked(text, plain);
    let vocabulary = pipeline.get_added_vocabulary();
    let pieces = vocabulary.extract_and_normalize(pipeline.get_normalizer(), &masked);
    let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
    let tokens = splits.into_iter().filter_map(|(_, offsets, tokens)| {
        let token = tokens.as_ref()?.first()?;
        Some(Token::new(token.id, token.value.clone(), offsets))
    });
    tokens.collect()
}

/// The text with each character of `plain` replaced by one of the same length that is in no token's name.
fn masked(text: &str, plain: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for range in plain {
        out.push_str(&text[done..range.start]);
        out.extend(text[range.clone()].chars().map(|char| match char.len_utf8() {
            1 => '\u{1}',
            2 => '\u{81}',
            3 => '\u{e0ff}',
            _ => '\u{10fff0}',
        }));
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// A text cut into control tokens and what stands between them.
fn cut(whole: &NormalizedString, controls: &[Token]) -> Vec<Split> {
    let mut pieces: Vec<Split> = Vec::new();
    let mut done = 0;
    let between = |range: Range<usize>| whole.slice(Slice::Original(range)).map(Split::from);
    for control in controls {
        let (start, end) = control.offsets;
        pieces.extend(between(done..start).filter(|_| done < start));
        let token = Token::new(control.id, control.value.clone(), (0, end - start));
        pieces.extend(whole.slice(Slice::Original(start..end)).map(|name| Split::from((name, Some(vec![token])))));
        done = end;
    }
    let end = whole.len_original();
    pieces.extend(between(done..end).filter(|_| done < end));
    pieces
}

/// The tokens of plain text. A vocabulary may hold a control token's name as a word; then it is cut in two.
fn tokens_of(pipeline: &Pipeline, text: &str) -> Result<Vec<Token>> {
    let mut tokens = pipeline.get_model().tokenize(text)?;
    let added = pipeline.get_added_vocabulary();
    let name = |token: &Token| {
        let is_name = added.simple_id_to_token(token.id).is_some_and(|name| name == token.value);
        is_name && text.get(token.offsets.0..token.offsets.1) == Some(token.value.as_str())
    };
    while let Some(index) = tokens.iter().position(|token| name(token) && token.value.chars().count() > 1) {
        let (start, end) = tokens[index].offsets;
        let middle = text[start..end].char_indices().nth(1).map_or(end, |(at, _)| start + at);
        let mut parts = Vec::new();
        for (from, to) in [(start, middle), (middle, end)] {
            let part = pipeline.get_model().tokenize(&text[from..to])?;
            parts.extend(
                part.into_iter()
                    .map(|token| Token::new(token.id, token.value, (token.offsets.0 + from, token.offsets.1 + from))),
            );
        }
        tokens.splice(index..=index, parts);
    }
    Ok(tokens)
}
