//! Text to token ids and back, whole or as a stream.
//!
//! Encoding is the `tokenizers` crate's. Decoding is by bytes: every token stands for some bytes, and a text is the
//! bytes of its tokens as UTF-8, with U+FFFD where they are none. So a stream of tokens decodes to the same text as
//! the whole, whatever the bytes are.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;
use tokenizers::{AddedToken, Tokenizer as Pipeline};

use super::{
    added,
    mended::{doubles, mended},
    plain_text, vocabulary,
};
use crate::chat::{Error, LoadError};
use crate::checkpoint::{TokenType, TokenizerSource, Vocabulary};

/// A model's tokenizer.
pub struct Tokenizer {
    pipeline: Pipeline,
    bytes: TokenBytes,
    /// The names of special tokens, which stand for no text.
    special: BTreeMap<u32, String>,
    /// Whether one space at the start of a decoded text is an artefact of encoding.
    strips_first_space: bool,
    /// What is odd about it.
    warnings: Vec<String>,
}

/// The bytes of every token id, in one block; special tokens have none.
struct TokenBytes {
    block: Vec<u8>,
    /// Token `id` is `block[ends[id - 1]..ends[id]]`.
    ends: Vec<usize>,
}

/// A prompt as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// What a template made of a conversation.
    pub text: String,
    /// Bytes of `text` that are someone's words, though they read like control tokens: to be encoded as plain text.
    /// In order, without overlaps.
    pub plain: Vec<std::ops::Range<usize>>,
}

/// A token with a part to play in prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlToken {
    pub text: String,
    /// Never shown.
    pub special: bool,
}

impl Tokenizer {
    /// The tokenizer of a checkpoint.
    pub fn from_source(source: &TokenizerSource) -> Result<Tokenizer, LoadError> {
        match source {
            TokenizerSource::Json { json, added, rows } => {
                let mut pipeline = parse(json)?;
                let warnings = added::add(&mut pipeline, added, *rows)?;
                Ok(Tokenizer { warnings, ..Tokenizer::of(Listed::of(&pipeline), pipeline)? })
            }
            TokenizerSource::Gguf(vocabulary) => {
                let doubles = doubles(vocabulary);
                let (vocabulary, warnings) = mended(vocabulary, &doubles);
                let pipeline = parse(&vocabulary::to_json(&vocabulary)?)?;
                let mut listed = Listed::of(&pipeline);
                listed.add_doubles(&vocabulary, &doubles);
                Ok(Tokenizer { warnings, ..Tokenizer::of(listed, pipeline)? })
            }
        }
    }

    /// The tokenizer that a `tokenizer.json` alone describes.
    pub fn from_json(json: &[u8]) -> Result<Tokenizer, LoadError> {
        let pipeline = parse(json)?;
        Tokenizer::of(Listed::of(&pipeline), pipeline)
    }

    fn of(listed: Listed, mut pipeline: Pipeline) -> Result<Tokenizer, LoadError> {
        let wrong = |error: &dyn std::fmt::Display| LoadError::Tokenizer(error.to_string());
        // A training leftover in many files; a prompt must never be cut or filled up silently.
        pipeline.with_truncation(None).map_err(|error| wrong(&error))?;
        pipeline.with_padding(None);
        let Some(decoder) = pipeline.get_decoder() else {
            return Err(LoadError::Tokenizer("it has no decoder".to_owned()));
        };
        let decoder = serde_json::to_value(decoder).map_err(|error| wrong(&error))?;
        let spelling = Spelling::of(&decoder)?;
        let bytes = TokenBytes::of(&listed, &spelling);
        let special = listed.added.into_iter().filter(|(_, token)| token.special);
        let special = special.map(|(id, token)| (id, token.content)).collect();
        let strips_first_space = spelling.strips_first_space;
        Ok(Tokenizer { pipeline, bytes, special, strips_first_space, warnings: Vec::new() })
    }

    /// What is odd about its files, for a log.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The ids of a text. `add_special` adds what the tokenizer puts around a text of its own (a BOS, say); chat
    /// templates write those themselves. The names of special tokens within the text become those tokens.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, Error> {
        match self.pipeline.encode_fast(text, add_special) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(Error::Internal(format!("the tokenizer failed: {error}"))),
        }
    }

    /// The ids of a text that goes on with another: without the space that the tokenizer puts before a text of its own,
    /// as far as the vocabulary has a token without it.
    pub fn encode_within(&self, text: &str) -> Result<Vec<u32>, Error> {
        let mut ids = self.encode(text, false)?;
        let is_added = |ids: &[u32]| {
            let bytes = ids.iter().flat_map(|&id| self.bytes_of(id));
            bytes.take(2).eq(b" ".iter().chain(&text.as_bytes()[..1]))
        };
        if !self.strips_first_space || text.is_empty() || !is_added(&ids) {
            return Ok(ids);
        }
        let Some(rest) = self.bytes_of(ids[0]).strip_prefix(b" ") else { return Ok(ids) };
        if rest.is_empty() {
            ids.remove(0);
        } else if let Some(id) = (0..self.vocab_size() as u32).find(|&id| self.bytes_of(id) == rest) {
            ids[0] = id;
        }
        Ok(ids)
    }

    /// The ids of a prompt. What is marked as plain text is encoded as that, though it reads like control tokens.
    pub fn encode_rendered(&self, rendered: &Rendered) -> Result<Vec<u32>, Error> {
        let Rendered { text, plain } = rendered;
        if plain.is_empty() {
            return self.encode(text, false);
        }
        plain_text::encode(&self.pipeline, text, plain)
            .map_err(|error| Error::Internal(format!("the tokenizer failed: {error}")))
    }

    /// What the tokenizer takes for a single token wherever it stands in a text, and never for text.
    pub fn control_tokens(&self) -> Vec<ControlToken> {
        let added = self.pipeline.get_added_tokens_decoder();
        added.into_values().map(|token| ControlToken { text: token.content, special: token.special }).collect()
    }

    /// The text of a whole sequence, without its special tokens; bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let mut decoder = Decoder::default();
        let mut text: String = tokens.iter().map(|&token| decoder.push(self, token)).collect();
        text.push_str(&decoder.finish());
        text
    }

    /// The name of a special token; `None` for any other.
    pub fn special_name(&self, id: u32) -> Option<&str> {
        self.special.get(&id).map(String::as_str)
    }

    /// The id of a special token, by its name.
    pub fn special_id(&self, name: &str) -> Option<u32> {
        self.id(name).filter(|id| self.special.contains_key(id))
    }

    /// The ids of all special tokens of this name: a GGUF may have it twice.
    pub fn special_ids(&self, name: &str) -> impl Iterator<Item = u32> {
        self.special.iter().filter(move |(_, other)| *other == name).map(|(&id, _)| id)
    }

    /// The names of all special tokens.
    pub fn special_names(&self) -> impl Iterator<Item = &str> {
        self.special.values().map(String::as_str)
    }

    /// One more than the greatest id. A model may have more logits than that, for the sake of round numbers.
    pub fn vocab_size(&self) -> usize {
        self.bytes.ends.len()
    }

    /// The bytes a token stands for; special tokens and unknown ids have none.
    pub fn bytes_of(&self, id: u32) -> &[u8] {
        self.bytes.of_token(id)
    }

    /// A token's name in the vocabulary.
    pub fn name(&self, id: u32) -> Option<String> {
        self.pipeline.id_to_token(id)
    }

    /// The bytes a token stands for or, of a special one, its name.
    pub fn spelling(&self, id: u32) -> Cow<'_, [u8]> {
        match self.bytes_of(id) {
            [] => Cow::Owned(self.name(id).unwrap_or_default().into_bytes()),
            bytes => Cow::Borrowed(bytes),
        }
    }

    /// The id of a token, by its name in the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.pipeline.token_to_id(token)
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("vocab_size", &self.vocab_size()).finish_non_exhaustive()
    }
}

/// Decodes a stream of tokens: says text as soon as it is certain, and holds back the bytes of a character that is
/// not yet complete.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The start of a character, at most three bytes.
    incomplete: Vec<u8>,
    started: bool,
}

impl Decoder {
    /// Of tokens that go on with a text, or that are held to be a text exactly: their first space is the text's.
    pub fn of_all() -> Decoder {
        Decoder { started: true, ..Decoder::default() }
    }

    /// The text that this token completes; often empty. All tokens must come from one tokenizer.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> String {
        let mut bytes = tokenizer.bytes.of_token(token);
        if !self.started && !bytes.is_empty() {
            self.started = true;
            if tokenizer.strips_first_space {
                bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
            }
        }
        self.incomplete.extend_from_slice(bytes);
        self.take_complete()
    }

    /// What is left at the end: U+FFFD where a character was never completed.
    pub fn finish(&mut self) -> String {
        if std::mem::take(&mut self.incomplete).is_empty() { String::new() } else { char::REPLACEMENT_CHARACTER.into() }
    }

    fn take_complete(&mut self) -> String {
        let mut text = String::new();
        let mut rest = self.incomplete.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, after) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            rest = after;
            let Some(broken) = error.error_len() else {
                self.incomplete = rest.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[broken..];
        }
        text.push_str(&String::from_utf8_lossy(rest));
        self.incomplete.clear();
        text
    }
}

fn parse(json: &[u8]) -> Result<Pipeline, LoadError> {
    Pipeline::from_bytes(json).map_err(|error| LoadError::Tokenizer(error.to_string()))
}

/// Every token by its id.
struct Listed {
    names: Vec<String>,
    /// Those that are found in a text as a whole.
    added: BTreeMap<u32, AddedToken>,
}

impl Listed {
    fn of(pipeline: &Pipeline) -> Listed {
        let vocabulary = pipeline.get_vocab(true);
        let count = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
        let mut names = vec![String::new(); count];
        for (name, id) in vocabulary {
            names[id as usize] = name;
        }
        Listed { names, added: pipeline.get_added_tokens_decoder().into_iter().collect() }
    }

    /// Takes in the tokens that a GGUF has a second time: a pipeline knows one id a name, but the model may well say
    /// the other.
    fn add_doubles(&mut self, vocabulary: &Vocabulary, doubles: &[usize]) {
        for &id in doubles {
            let name = &vocabulary.tokens[id];
            self.names[id].clone_from(name);
            let special = match vocabulary.types[id] {
                TokenType::Control | TokenType::Unknown => true,
                TokenType::UserDefined => false,
                TokenType::Normal | TokenType::Unused | TokenType::Byte => continue,
            };
            self.added.insert(id as u32, AddedToken::from(name.clone(), special));
        }
    }
}

impl TokenBytes {
    fn of(listed: &Listed, spelling: &Spelling) -> TokenBytes {
        let mut bytes = TokenBytes { block: Vec::new(), ends: Vec::with_capacity(listed.names.len()) };
        for (id, name) in (0u32..).zip(&listed.names) {
            match listed.added.get(&id) {
                Some(token) if token.special => {}
                Some(token) => bytes.block.extend_from_slice(token.content.as_bytes()),
                None => spelling.spell(name, &mut bytes.block),
            }
            bytes.ends.push(bytes.block.len());
        }
        bytes
    }

    /// Unknown ids have no bytes.
    fn of_token(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends.get(id - 1).copied().unwrap_or(0) };
        self.ends.get(id).map_or(&[], |&end| &self.block[start..end])
    }
}

/// How a vocabulary spells bytes, read from the decoder of a `tokenizer.json`.
#[derive(Debug, Default)]
struct Spelling {
    /// Each character of a name is one byte, in GPT-2's alphabet.
    byte_level: bool,
    /// The character that stands for a space.
    space: Option<char>,
    /// Names such as `<0x0A>` are single bytes.
    byte_names: bool,
    /// What the names of parts within a word open with; other names begin a word, after a space.
    within_word: Option<String>,
    strips_first_space: bool,
}

impl Spelling {
    fn of(decoder: &Value) -> Result<Spelling, LoadError> {
        let mut spelling = Spelling::default();
        spelling.read(decoder)?;
        Ok(spelling)
    }

    fn read(&mut self, decoder: &Value) -> Result<(), LoadError> {
        let unsupported = || LoadError::Tokenizer(format!("mettle does not know its decoder {decoder}"));
        match decoder["type"].as_str().unwrap_or_default() {
            "Sequence" => decoder["decoders"].as_array().into_iter().flatten().try_for_each(|part| self.read(part))?,
            "ByteLevel" => self.byte_level = true,
            "ByteFallback" => self.byte_names = true,
            "Fuse" => {}
            "Replace" if decoder["content"] == " " => {
                self.space = Some(single_char(&decoder["pattern"]["String"]).ok_or_else(unsupported)?);
            }
            "Metaspace" => {
                self.space = Some(single_char(&decoder["replacement"]).ok_or_else(unsupported)?);
                self.strips_first_space = decoder["prepend_scheme"] != "never";
            }
            "WordPiece" => {
                self.within_word = Some(decoder["prefix"].as_str().ok_or_else(unsupported)?.to_owned());
                self.strips_first_space = true;
            }
            "Strip" if decoder["content"] == " " && decoder["stop"] == 0 => {
                self.strips_first_space = decoder["start"] != 0;
            }
            _ => return Err(unsupported()),
        }
        Ok(())
    }

    fn spell(&self, name: &str, out: &mut Vec<u8>) {
        if self.byte_level {
            let spelled: Option<Vec<u8>> = name.chars().map(byte_of_char).collect();
            // A name with other characters is no spelling: it stands for itself.
            out.extend(spelled.unwrap_or_else(|| name.as_bytes().to_vec()));
        } else if let Some(byte) = byte_name(name).filter(|_| self.byte_names) {
            out.push(byte);
        } else if let Some(prefix) = &self.within_word {
            match name.strip_prefix(prefix) {
                Some(rest) => out.extend_from_slice(rest.as_bytes()),
                None => out.extend([b" ", name.as_bytes()].concat()),
            }
        } else {
            let mut utf8 = [0; 4];
            for char in name.chars() {
                let char = if Some(char) == self.space { ' ' } else { char };
                out.extend_from_slice(char.encode_utf8(&mut utf8).as_bytes());
            }
        }
    }
}

fn single_char(value: &Value) -> Option<char> {
    let mut chars = value.as_str()?.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// `<0x0A>` → 10.
fn byte_name(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// The byte that a character stands for in GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes
/// are the characters from U+0100 on, in order.
fn byte_of_char(char: char) -> Option<u8> {
    ALPHABET.get(char as usize).copied().flatten()
}

const ALPHABET: [Option<u8>; 0x144] = {
    let mut alphabet = [None; 0x144];
    let (mut byte, mut next) = (0, 0x100);
    while byte < 0x100 {
        if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            alphabet[byte] = Some(byte as u8);
        } else {
            alphabet[next] = Some(byte as u8);
            next += 1;
        }
        byte += 1;
    }
    alphabet
};

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
pub(crate) mod tests;
