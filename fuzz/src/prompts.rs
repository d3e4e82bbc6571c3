//! Rendering a conversation, and what holds for every prompt.

use std::sync::LazyLock;

use crate::{
    chat::{ControlToken, LoadError, Rendered, Request, Template, Tokenizer},
    checkpoint::{Templates, TokenType, TokenizerSource, Vocabulary},
};

/// A control token that no template writes: wherever it stands in a prompt, it is someone's words.
pub const SMUGGLED: &str = "<|\u{5b57}|>";

/// What templates write.
const CONTROLS: [&str; 8] =
    ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "[INST]", "[/INST]", "<|eot_id|>", "<|channel|>"];

/// What is shown to whoever asks for it.
const SHOWN: [&str; 6] = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];

/// A small part of what mettle allows: a template is rendered a dozen times when it is loaded.
const FUEL: u64 = 100_000;

/// Bytes of a prompt that is not encoded.
const LONG: usize = 100_000;

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let control = [SMUGGLED].into_iter().chain(CONTROLS).map(|name| (name.to_owned(), TokenType::Control));
    let shown = SHOWN.iter().map(|name| ((*name).to_owned(), TokenType::UserDefined));
    // GPT-2's spelling of bytes: those that print as they are, the others from U+0100 on.
    let prints = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..);
    let printed = (0..=255).filter(prints).map(char::from);
    let others = (0..=255).filter(|byte| !prints(byte)).zip(0x100..).filter_map(|(_, code)| char::from_u32(code));
    let bytes = printed.chain(others).map(|char| (char.to_string(), TokenType::Normal));
    let (tokens, types) = control.chain(shown).chain(bytes).unzip();
    let vocabulary = Vocabulary {
        model: "gpt2".to_owned(),
        pre: Some("qwen2".to_owned()),
        tokens,
        types,
        scores: Vec::new(),
        merges: Vec::new(),
        bos: Some(1),
        eos: Some(2),
        eot: None,
        eom: None,
        unknown: None,
        add_bos: None,
        add_eos: None,
        add_space_prefix: None,
        template: None,
        tool_template: None,
    };
    Tokenizer::from_source(&TokenizerSource::Gguf(Box::new(vocabulary))).expect("a tokenizer")
});

/// A template with the tokenizer's control tokens.
pub fn template(source: &str) -> Result<Template, LoadError> {
    let tokens = [("bos_token", "<s>"), ("eos_token", "</s>")].map(|(name, token)| (name.to_owned(), token.to_owned()));
    let templates = Templates { default: source.to_owned(), ..Templates::default() };
    let controls: Vec<ControlToken> = TOKENIZER.control_tokens();
    Template::with_fuel(templates, tokens.to_vec(), &controls, FUEL)
}

/// Renders and encodes a request; a refusal is as good. `spells` says that the template may write anything itself.
pub fn check(template: &Template, request: &Request, spells: bool) {
    let Ok(prompt) = template.render(request) else { return };
    let Rendered { text, plain } = &prompt;
    let mut done = 0;
    for range in plain {
        assert!(done <= range.start && text.get(range.clone()).is_some_and(|text| !text.is_empty()), "{prompt:?}");
        done = range.end;
    }
    // A tokenizer takes its time over a word of a megabyte.
    if text.len() > LONG {
        return;
    }
    let tokens = TOKENIZER.encode_rendered(&prompt).expect("a prompt can be encoded");
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| TOKENIZER.spelling(*token).into_owned()).collect();
    assert_eq!(String::from_utf8_lossy(&bytes), *text, "encoding changes nothing: {request:?}");
    let smuggled = TOKENIZER.special_id(SMUGGLED).expect("a special token");
    assert!(spells || !tokens.contains(&smuggled), "{request:?} became {prompt:?}");
}

/// Whether a template might write [`SMUGGLED`] itself.
pub fn may_spell(source: &str) -> bool {
    source.contains(['\u{5b57}', '\\'])
}
