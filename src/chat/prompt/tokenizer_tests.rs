//! Tokenizers made by the tests: a byte-level BPE and a SentencePiece one, as GGUFs hold them.

use std::io::Write;

use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

use super::*;
use crate::checkpoint::{Checkpoint, Rank};

fn vocabulary(model: &str, pre: &str, tokens: Vec<(String, TokenType)>) -> Vocabulary {
    let (tokens, types) = tokens.into_iter().unzip();
    Vocabulary {
        model: model.to_owned(),
        pre: Some(pre.to_owned()),
        tokens,
        types,
        scores: Vec::new(),
        merges: Vec::new(),
        bos: Some(0),
        eos: Some(1),
        eot: None,
        eom: None,
        unknown: None,
        add_bos: None,
        add_eos: None,
        add_space_prefix: None,
        template: None,
        tool_template: None,
    }
}

/// Ids 0 and 1 are control tokens, 2 is user-defined, 3 + n is the byte n, then two merged tokens.
pub(crate) fn byte_level(pre: &str) -> Vocabulary {
    let mut tokens: Vec<(String, TokenType)> =
        [("<|s|>", TokenType::Control), ("<|e|>", TokenType::Control), ("<tool é>", TokenType::UserDefined)]
            .map(|(token, kind)| (token.to_owned(), kind))
            .into();
    let mut alphabet: Vec<(u8, char)> =
        (0..0x200).filter_map(char::from_u32).filter_map(|char| Some((byte_of_char(char)?, char))).collect();
    alphabet.sort_unstable();
    assert_eq!(alphabet.len(), 256);
    tokens.extend(alphabet.iter().map(|(_, char)| (char.to_string(), TokenType::Normal)));
    tokens.extend(["Ġa", "Ġab"].map(|token| (token.to_owned(), TokenType::Normal)));
    Vocabulary { merges: vec!["Ġ a".to_owned(), "Ġa b".to_owned()], ..vocabulary("gpt2", pre, tokens) }
}

/// Ids 0 to 2 are <s>, </s> and <unk>, 3 + n is the byte n, then pieces.
pub(crate) fn sentence_piece() -> Vocabulary {
    let mut tokens: Vec<(String, TokenType)> =
        [("<s>", TokenType::Control), ("</s>", TokenType::Control), ("<unk>", TokenType::Unknown)]
            .map(|(token, kind)| (token.to_owned(), kind))
            .into();
    tokens.extend((0..=255).map(|byte| (format!("<0x{byte:02X}>"), TokenType::Byte)));
    let mut scores = vec![0.0; tokens.len()];
    for (piece, score) in [
        ("▁", -10.0),
        ("h", -11.0),
        ("i", -12.0),
        ("t", -13.0),
        ("hi", -1.0),
        ("▁hi", -3.0),
        ("▁h", -2.0),
        ("it", -4.0),
        ("é", -14.0),
    ] {
        tokens.push((piece.to_owned(), TokenType::Normal));
        scores.push(score);
    }
    Vocabulary { scores, unknown: Some(2), ..vocabulary("llama", "default", tokens) }
}

pub(crate) fn load(vocabulary: Vocabulary) -> Tokenizer {
    Tokenizer::from_source(&TokenizerSource::Gguf(Box::new(vocabulary))).unwrap()
}

/// The text with each of its pieces in the vocabulary's own spelling.
fn pieces(tokenizer: &Tokenizer, text: &str, add_special: bool) -> Vec<String> {
    let ids = tokenizer.encode(text, add_special).unwrap();
    ids.iter().map(|&id| tokenizer.pipeline.id_to_token(id).unwrap()).collect()
}

#[test]
fn byte_level_encodes() {
    let tokenizer = load(byte_level("smollm"));
    assert_eq!(pieces(&tokenizer, "a ab<|e|>12\u{e9}", true), ["a", "Ġab", "<|e|>", "1", "2", "Ã", "©"]);
    assert_eq!(pieces(&tokenizer, "<tool é>", false), ["<tool é>"]);
    assert_eq!((tokenizer.id("Ġab"), tokenizer.id("zzz")), (Some(260), None));
    assert_eq!(tokenizer.vocab_size(), 261);
    let llama3 = load(byte_level("llama-bpe"));
    assert_eq!(pieces(&llama3, "a", true), ["<|s|>", "a"]);
    let both = Vocabulary { add_bos: Some(true), add_eos: Some(true), ..byte_level("smollm") };
    assert_eq!(pieces(&load(both), "a", true), ["<|s|>", "a", "<|e|>"]);
}

#[test]
fn sentence_piece_encodes() {
    let tokenizer = load(sentence_piece());
    // "hi" has the best score, so "▁h" never forms; "it" loses its "i" to it.
    assert_eq!(pieces(&tokenizer, "hit hi", true), ["<s>", "▁hi", "t", "▁hi"]);
    assert_eq!(pieces(&tokenizer, "é\n", false), ["▁", "é", "<0x0A>"]);
    assert_eq!(pieces(&tokenizer, "</s>hi", false), ["</s>", "▁hi"]);
    let unprefixed = load(Vocabulary { add_space_prefix: Some(false), ..sentence_piece() });
    assert_eq!(pieces(&unprefixed, "hi hi", false), ["hi", "▁hi"]);
    assert_eq!(unprefixed.decode(&unprefixed.encode(" hi", false).unwrap()), " hi");
    assert_eq!(tokenizer.decode(&tokenizer.encode(" hi é\n日本", false).unwrap()), " hi é\n日本");
}

/// What goes on with a text has no space that the tokenizer puts before one.
#[test]
fn sentence_piece_encodes_within_a_text() {
    let tokenizer = load(sentence_piece());
    for (text, expected) in [
        ("hi hit", vec!["hi", "▁hi", "t"]),
        (" hi", vec!["▁hi"]),
        ("é\n", vec!["é", "<0x0A>"]),
        ("</s>hi", vec!["</s>", "▁hi"]),
        ("", vec![]),
    ] {
        let ids = tokenizer.encode_within(text).unwrap();
        let names: Vec<String> = ids.iter().map(|&id| tokenizer.name(id).unwrap()).collect();
        assert_eq!(names, expected, "{text:?}");
    }
}

#[test]
fn decode_equals_the_crates_own() {
    for (tokenizer, texts) in [
        (load(byte_level("gpt-2")), ["a ab\n", "naïve 日本語 😀", "<tool é> x"]),
        (load(sentence_piece()), ["hi hit", " hi  \n", "日本語 é😀"]),
    ] {
        for text in texts {
            let ids = tokenizer.encode(text, false).unwrap();
            assert_eq!(tokenizer.decode(&ids), text);
            assert_eq!(tokenizer.pipeline.decode(&ids, true).unwrap(), text);
        }
    }
}

#[test]
fn a_stream_decodes_as_the_whole() {
    let mut state = 7u64;
    let mut random = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % below
    };
    for (byte_level, tokenizer) in [(true, load(byte_level("smollm"))), (false, load(sentence_piece()))] {
        for _ in 0..500 {
            // Half of the bytes continue a character, so that whole ones, cut ones and stray ones all occur.
            let mut id = || {
                if random(2) == 0 { 3 + 0x80 + random(0x40) } else { random(272) }
            };
            let ids: Vec<u32> = (0..20).map(|_| id()).collect();
            let bytes: Vec<u8> = ids.iter().flat_map(|&id| tokenizer.bytes.of_token(id)).copied().collect();
            let whole = String::from_utf8_lossy(&bytes);
            let whole = if byte_level { &whole } else { whole.strip_prefix(' ').unwrap_or(&whole) };
            let mut decoder = Decoder::default();
            let mut streamed = String::new();
            for &id in &ids {
                let text = decoder.push(&tokenizer, id);
                assert!(decoder.incomplete.len() < 4);
                streamed.push_str(&text);
            }
            streamed.push_str(&decoder.finish());
            assert_eq!(streamed, whole, "{ids:?}");
            assert_eq!(tokenizer.decode(&ids), whole);
            if byte_level {
                assert_eq!(tokenizer.pipeline.decode(&ids, true).unwrap(), whole, "{ids:?}");
            }
        }
    }
}

#[test]
fn text_is_said_as_soon_as_it_is_whole() {
    let tokenizer = load(byte_level("smollm"));
    let mut decoder = Decoder::default();
    let mut push = |byte: u8| decoder.push(&tokenizer, 3 + u32::from(byte));
    assert_eq!([push(b'x'), push(0xc3), push(0xa9), push(0xe2), push(0x82)], ["x", "", "é", "", ""]);
    assert_eq!(push(b'y'), "\u{fffd}y");
    assert_eq!([push(0xf0), push(0x9f)], ["", ""]);
    assert_eq!([decoder.finish(), decoder.finish()], ["\u{fffd}", ""]);
}

/// Expected: what Python's `tokenizers` 0.23.3 makes of the patterns in the models' own tokenizer.json files;
/// "default" is by hand, after llama.cpp's definition.
#[test]
fn splits() {
    let check = |pre: &str, text: &str, expected: &[&str]| {
        let tokenizer = load(byte_level(pre));
        let mut text = PreTokenizedString::from(text);
        tokenizer.pipeline.get_pre_tokenizer().unwrap().pre_tokenize(&mut text).unwrap();
        let splits = text.get_splits(OffsetReferential::Original, OffsetType::Byte);
        let found: Vec<String> = splits.iter().map(|(piece, _, _)| piece.replace('Ġ', "_").replace('Ċ', "/")).collect();
        assert_eq!(found, expected, "{pre}");
    };
    let text = "I'LL don't 1234  x!\n\n";
    check("gpt-2", text, &["I", "'", "LL", "_don", "'t", "_1234", "_", "_x", "!", "//"]);
    check("smollm", text, &["I", "'", "LL", "_don", "'t", "_", "1", "2", "3", "4", "_", "_x", "!", "//"]);
    check("llama-bpe", text, &["I", "'LL", "_don", "'t", "_", "123", "4", "_", "_x", "!//"]);
    check("qwen2", text, &["I", "'LL", "_don", "'t", "_", "1", "2", "3", "4", "_", "_x", "!//"]);
    check("qwen35", "n\u{303}o 1", &["nÌĥo", "_", "1"]);
    check("tekken", "HelloWorld a/b", &["Hello", "World", "_a", "/b"]);
    check("default", "a.b 12345", &["a", ".", "b", "_", "123", "45"]);
}

#[test]
fn unusable_tokenizers() {
    let check = |vocabulary: Vocabulary, piece: &str| {
        let error = Tokenizer::from_source(&TokenizerSource::Gguf(Box::new(vocabulary))).unwrap_err().to_string();
        assert!(error.contains(piece), "{error}");
    };
    check(byte_level("klingon"), "\"klingon\", is not supported; mettle knows gpt-2");
    check(Vocabulary { model: "bert".into(), ..byte_level("gpt-2") }, "\"bert\"");
    check(Vocabulary { merges: vec!["ab".into()], ..byte_level("gpt-2") }, "no pair");
    check(Vocabulary { merges: vec!["a zz".into()], ..byte_level("gpt-2") }, "zz");
    check(Vocabulary { scores: vec![], ..sentence_piece() }, "no scores");
    assert!(Tokenizer::from_json(b"{}").is_err());
    let wordpiece = br#"{"model": {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "\#\#",
        "max_input_chars_per_word": 9, "vocab": {"u": 0}},
        "decoder": {"type": "CTC", "pad_token": "p", "word_delimiter_token": "|", "cleanup": true}}"#;
    let unknown = String::from_utf8_lossy(wordpiece).replace("\\#", "#");
    let error = Tokenizer::from_json(unknown.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("does not know its decoder") && error.contains("CTC"), "{error}");
}

/// Ids as Python's `tokenizers` 0.23.3 gives them for SmolLM2-135M-Instruct's tokenizer. Runs where the build was
/// told of the file by METTLE_TEST_GGUF.
#[test]
fn smollm2_ids() {
    let Some(path) = option_env!("METTLE_TEST_GGUF") else {
        let notice = writeln!(std::io::stderr(), "skipped: METTLE_TEST_GGUF names no SmolLM2-135M-Instruct GGUF");
        notice.unwrap();
        return;
    };
    let checkpoint = Checkpoint::open(std::path::Path::new(path)).unwrap();
    let tokenizer = Tokenizer::from_source(&checkpoint.tokenizer().unwrap()).unwrap();
    for (text, ids) in [
        ("Hello, world!", &[19556, 28, 905, 17][..]),
        ("The capital of France is", &[504, 3575, 282, 4649, 314]),
        ("1234567890 and 3.14159", &[33, 34, 35, 36, 37, 38, 39, 40, 41, 32, 284, 216, 35, 30, 33, 36, 33, 37, 41]),
        ("don't we've I'll YOU'RE", &[12420, 982, 392, 3543, 339, 3060, 12246, 23, 3256]),
        ("naïve café über Ærøskøbing", &[3546, 46494, 37366, 5549, 137, 593, 44741, 98, 21817, 5746, 21817, 7519]),
        ("<|im_start|>user\nHi<|im_end|>\n", &[1, 4093, 198, 26843, 2, 198]),
        ("  two  spaces\n\n\nlines\r\n\ttabs", &[216, 827, 216, 5600, 1116, 198, 5110, 2738, 197, 100, 7366]),
    ] {
        assert_eq!(tokenizer.encode(text, false).unwrap(), ids, "{text:?}");
    }
    assert_eq!(tokenizer.decode(&tokenizer.encode("naïve 日本 😀<|im_end|>", false).unwrap()), "naïve 日本 😀");
}

/// The pieces of a text of which some ranges, given as pieces of it, are plain.
fn plain_pieces(tokenizer: &Tokenizer, text: &str, plain: &[&str]) -> Vec<String> {
    let mut from = 0;
    let ranges = plain.iter().map(|piece| {
        let start = from + text[from..].find(piece).unwrap();
        from = start + piece.len();
        start..from
    });
    let rendered = Rendered { plain: ranges.collect(), text: text.to_owned() };
    let ids = tokenizer.encode_rendered(&rendered).unwrap();
    ids.iter().map(|&id| tokenizer.pipeline.id_to_token(id).unwrap()).collect()
}

#[test]
fn plain_text_makes_no_control_tokens() {
    let tokenizer = load(byte_level("smollm"));
    let check = |text: &str, plain: &[&str], expected: &[&str]| {
        assert_eq!(plain_pieces(&tokenizer, text, plain), expected, "{text}");
    };
    check("a<|e|>", &[], &["a", "<|e|>"]);
    check("a<|e|>", &["<|e|>"], &["a", "<", "|", "e", "|", ">"]);
    // What stands beside it is encoded as in a text without control tokens.
    check("<|s|>x a<|e|> ab<|e|>", &["<|e|>"], &["<|s|>", "x", "Ġa", "<", "|", "e", "|", ">", "Ġab", "<|e|>"]);
    check("<tool é> ab", &["<tool é>"], &["<", "t", "o", "o", "l", "Ġ", "Ã", "©", ">", "Ġab"]);
    check("<|s|><|s|><|s|>", &["|s|><|s"], &["<", "|", "s", "|", ">", "<", "|", "s", "|", ">", "<|s|>"]);
    let tokenizer = load(sentence_piece());
    assert_eq!(plain_pieces(&tokenizer, "<s>hi</s>", &["</s>"])[..2], ["<s>", "▁hi"]);
    assert!(!plain_pieces(&tokenizer, "<s>hi</s>", &["</s>"]).contains(&"</s>".to_owned()));
}

#[test]
fn plain_text_is_encoded_as_the_pipeline_does() {
    for tokenizer in [load(byte_level("llama-bpe")), load(byte_level("qwen2")), load(sentence_piece())] {
        for text in ["<|s|> a ab\n\n hi<|e|>it hi</s> é日 12", "  hi", "<s> a", "x<tool é>y", "\0\u{1}\u{f0000}"] {
            let whole = 0..text.find('<').unwrap_or(text.len());
            let rendered = Rendered { text: text.to_owned(), plain: vec![whole] };
            assert_eq!(tokenizer.encode_rendered(&rendered).unwrap(), tokenizer.encode(text, false).unwrap(), "{text}");
        }
    }
}

#[test]
fn control_tokens_by_name() {
    let mut tokens = load(byte_level("smollm")).control_tokens();
    tokens.sort_by_key(|token| std::cmp::Reverse(token.text.clone()));
    let expected = [("<|s|>", true), ("<|e|>", true), ("<tool é>", false)];
    assert_eq!(
        tokens.iter().map(|token| (token.text.as_str(), token.special)).collect::<Vec<_>>(),
        [expected[0], expected[1], expected[2]]
    );
}

/// BERT's parts within a word join the one before; other names begin a word.
#[test]
fn word_pieces() {
    let json = serde_json::json!({
        "model": {
            "type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
            "vocab": {"u": 0, "em": 1, "##bed": 2, "##s": 3, "it": 4}
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}
    });
    let tokenizer = Tokenizer::from_json(json.to_string().as_bytes()).expect("it loads");
    let ids = tokenizer.encode("it embeds it", true).expect("ids");
    assert_eq!(ids, [4, 1, 2, 3, 4]);
    assert_eq!(tokenizer.decode(&ids), "it embeds it");
}

/// What a GGUF types as text though it is a mark is a control token, and a warning names it.
#[test]
fn marks_that_a_converter_took_for_text() {
    use TokenType::{Control, Normal, Unused, UserDefined};
    // With merges, the last of them makes the token.
    let check = |name: &str, kind: TokenType, merges: &[&str], special: bool| {
        let mut vocabulary = byte_level("qwen2");
        for merge in merges {
            vocabulary.merges.push((*merge).to_owned());
            vocabulary.tokens.push(merge.replace(' ', ""));
            vocabulary.types.push(Normal);
        }
        if merges.is_empty() {
            vocabulary.tokens.push(name.to_owned());
            vocabulary.types.push(kind);
        }
        let tokenizer = load(vocabulary);
        assert_eq!(tokenizer.special_id(name).is_some(), special, "{name} {kind:?}");
        let warned = tokenizer.warnings().iter().any(|warning| warning.contains(name));
        assert_eq!(warned, special && kind != TokenType::Control, "{name} {kind:?}: {:?}", tokenizer.warnings());
        if special {
            assert_eq!(tokenizer.encode(&format!("a{name}"), false).unwrap().len(), 2, "{name}");
        }
    };
    for kind in [Control, UserDefined, Normal, Unused] {
        check("<|im_end|>", kind, &[], true);
        check("<end_of_turn>", kind, &[], true);
    }
    check("<|im_start|>", Normal, &[], true);
    check("<｜User｜>", Normal, &[], true);
    // Its makers want it shown.
    check("<|im_start|>", UserDefined, &[], false);
    check("<tool_call>", UserDefined, &[], false);
    check("<div>", Normal, &[], false);
    // What merges make is text, whatever it looks like.
    check("<|>", Normal, &[], false);
    check("<|a|>", Normal, &["< |", "<| a", "<|a |", "<|a| >"], false);
    // A file without types has its own ends as text, too.
    let mut vocabulary = byte_level("qwen2");
    vocabulary.tokens[1] = "</s>".into();
    vocabulary.types.fill(Normal);
    let tokenizer = load(vocabulary);
    assert_eq!((tokenizer.special_id("</s>"), tokenizer.special_id("<|s|>")), (Some(1), Some(0)));
    assert!(tokenizer.warnings()[0].contains("<|s|>, </s>"), "{:?}", tokenizer.warnings());
    assert!(load(byte_level("qwen2")).warnings().is_empty());
}

#[test]
fn a_gguf_without_a_way_of_splitting_is_warned_about() {
    let tokenizer = load(Vocabulary { pre: None, ..byte_level("qwen2") });
    assert!(tokenizer.warnings()[0].contains("tokenizer.ggml.pre"), "{:?}", tokenizer.warnings());
    assert!(load(Vocabulary { pre: None, ..sentence_piece() }).warnings().is_empty());
}

/// Ids decode by their place in the list; texts take the last of a name, as llama.cpp does.
#[test]
fn names_that_a_gguf_has_twice() {
    let mut vocabulary = byte_level("qwen2");
    for (name, kind) in [("Ġab", TokenType::Normal), ("<|e|>", TokenType::Control)] {
        vocabulary.tokens.push(name.to_owned());
        vocabulary.types.push(kind);
    }
    let tokenizer = load(vocabulary);
    assert_eq!(tokenizer.vocab_size(), 263);
    assert_eq!((tokenizer.bytes_of(260), tokenizer.bytes_of(261)), (&b" ab"[..], &b" ab"[..]));
    assert_eq!(tokenizer.special_ids("<|e|>").collect::<Vec<_>>(), [1, 262]);
    assert_eq!(tokenizer.decode(&[260, 1, 261, 262]), " ab ab");
    assert_eq!(tokenizer.encode(" ab<|e|>", false).unwrap(), [261, 262]);
    assert!(tokenizer.warnings()[0].contains("2 names twice"), "{:?}", tokenizer.warnings());
}

/// As transformers 5.24 has them: the configuration's flags count, named tokens are special, the rest is only added.
#[test]
fn tokens_of_the_files_beside_tokenizer_json() {
    let json = vocabulary::to_json(&byte_level("qwen2")).unwrap();
    let token = |content: &str, special: bool, rank: Rank, id: Option<u64>| crate::checkpoint::AddedToken {
        content: content.to_owned(),
        special,
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        id,
        rank,
    };
    let open = |added: Vec<crate::checkpoint::AddedToken>, rows: u64| {
        let source = TokenizerSource::Json { json: json.clone(), added, rows: Some(rows) };
        Tokenizer::from_source(&source).unwrap()
    };
    let added = vec![
        token("<|e|>", false, Rank::Flags, Some(1)),
        token("<tool é>", true, Rank::New, None),
        token("Ġab", true, Rank::Special, None),
        token("<new>", true, Rank::Flags, Some(261)),
        token("<odd>", false, Rank::Flags, Some(900)),
    ];
    let tokenizer = open(added, 263);
    assert_eq!(tokenizer.encode("<new>a<odd>", false).unwrap(), [261, tokenizer.id("a").unwrap(), 262]);
    assert_eq!(tokenizer.decode(&[1, 2, 260, 261, 262]), "<|e|><tool é><odd>");
    assert_eq!(tokenizer.special_names().collect::<Vec<_>>(), ["<|s|>", "Ġab", "<new>"]);
    assert!(tokenizer.warnings().len() == 1 && tokenizer.warnings()[0].contains("900"), "{:?}", tokenizer.warnings());
    // The model could not read a token that it has no row for.
    let tokenizer = open(vec![token("<new>", true, Rank::Flags, Some(261))], 261);
    assert_eq!(tokenizer.id("<new>"), None);
    assert!(tokenizer.warnings()[0].contains("<new>"), "{:?}", tokenizer.warnings());
}
