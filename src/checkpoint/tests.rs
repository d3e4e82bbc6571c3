//! Checkpoints written by the tests themselves: sound ones, and every way to be broken.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::gguf::writer::Writer;
use super::*;

/// A safetensors file of F32 tensors, `(name, shape)`; the data counts up.
fn safetensors_file(tensors: &[(&str, &[usize])]) -> Vec<u8> {
    let (mut header, mut data) = (json!({"__metadata__": {"format": "mlx"}}), Vec::new());
    for (name, shape) in tensors {
        let start = data.len();
        for number in 0..shape.iter().product::<usize>() {
            data.extend((number as f32).to_le_bytes());
        }
        header[*name] = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

/// A folder with these files; text and bytes alike.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

const CONFIG: &[u8] = br#"{"model_type": "llama", "eos_token_id": [7, 2]}"#;

fn open_error(path: &Path) -> String {
    Checkpoint::open(path).unwrap_err().to_string()
}

/// The error of a folder must hold each of these pieces.
fn check_error(files: &[(&str, &[u8])], pieces: &[&str]) {
    let folder = folder(files);
    let error = open_error(folder.path());
    for piece in pieces {
        assert!(error.contains(piece), "{piece:?} is not in: {error}");
    }
}

#[test]
fn one_safetensors_file() {
    let weights = safetensors_file(&[("a.weight", &[2, 3]), ("b", &[4])]);
    let folder = folder(&[("config.json", CONFIG), ("model.safetensors", &weights), ("._x.safetensors", b"junk")]);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!((checkpoint.architecture(), checkpoint.format()), ("llama", Format::Safetensors));
    let b = checkpoint.tensor("b").unwrap();
    assert_eq!((b.dtype, b.shape.as_slice(), b.len), (Dtype::F32, &[4][..], 16));
    assert_eq!(checkpoint.read(b).unwrap(), [0f32, 1., 2., 3.].map(f32::to_le_bytes).concat());
    assert_eq!(checkpoint.tensors().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["a.weight", "b"]);
    assert!(checkpoint.tensor("c").is_none());
}

#[test]
fn shards_with_and_without_index() {
    let (first, second) = (safetensors_file(&[("a", &[2])]), safetensors_file(&[("b", &[3])]));
    let names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let index = json!({"weight_map": {"a": names[0], "b": names[1]}}).to_string();
    let all: &[(&str, &[u8])] = &[
        ("config.json", CONFIG),
        (names[0], &first),
        (names[1], &second),
        ("model.safetensors.index.json", index.as_bytes()),
    ];
    for files in [all, &all[..3]] {
        let folder = folder(files);
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        let b = checkpoint.tensor("b").unwrap();
        assert_eq!(checkpoint.read(b).unwrap().len(), 12);
        assert_eq!(checkpoint.tensors().count(), 2);
    }
    check_error(&[all[0], all[1], all[3]], &[names[1], "1 of the model's files"]);
    check_error(&[all[0], all[2]], &[names[0]]);
    check_error(&[all[0], (names[0], &first), (names[1], &first)], &["tensor a twice", names[1]]);
    let outside = br#"{"weight_map": {"a": "../secret.safetensors"}}"#;
    check_error(&[all[0], ("model.safetensors.index.json", outside)], &["no file name", "../secret"]);
}

#[test]
fn broken_folders() {
    let weights = safetensors_file(&[("a", &[2])]);
    check_error(&[], &["neither *.safetensors nor a .gguf"]);
    check_error(&[("model.safetensors", &weights)], &["no config.json"]);
    for (config, piece) in [("{", "no valid JSON"), ("[]", "no object"), ("{}", "model_type")] {
        let files: &[(&str, &[u8])] = &[("config.json", config.as_bytes()), ("model.safetensors", &weights)];
        check_error(files, &["config.json", piece]);
    }
    check_error(&[("a.gguf", b""), ("b.gguf", b"")], &["several models (a.gguf, b.gguf)"]);
    check_error(&[("m-00001-of-00002.gguf", b"")], &["split"]);
    assert!(open_error(Path::new("/no/such/folder")).contains("/no/such/folder"));
}

#[test]
fn broken_safetensors() {
    let write = |header: Value, data: usize| {
        let header = header.to_string();
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; data]].concat()
    };
    let entry = |dtype: &str, shape: Value, offsets: Value| json!({"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}});
    for (bytes, piece) in [
        (write(entry("F32", json!([2]), json!([0, 8])), 3), "5 are missing"),
        (write(entry("F32", json!([2]), json!([0, 7])), 8), "takes 8 bytes, its range has 7"),
        (write(entry("F32", json!([2]), json!([8, 0])), 8), "no range"),
        (write(entry("F32", json!([-2]), json!([0, 8])), 8), "shape"),
        (write(entry("F32", json!([u64::MAX, 2]), json!([0, 8])), 8), "overflows"),
        (write(entry("F32", json!([2]), json!([u64::MAX - 8, u64::MAX])), 8), "beyond any file"),
        (write(entry("Q9", json!([2]), json!([0, 8])), 8), "type Q9"),
        (write(json!({}), 0), "no tensors"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff{}".to_vec(), "no safetensors file"),
        (b"\x02\0\0\0\0\0\0\0[]".to_vec(), "no JSON object"),
        (b"version https".to_vec(), "no safetensors file"),
    ] {
        check_error(&[("config.json", CONFIG), ("model.safetensors", &bytes)], &[piece]);
    }
}

#[test]
fn cut_anywhere_is_an_error() {
    let weights = safetensors_file(&[("a.weight", &[2, 3]), ("b", &[4])]);
    for cut in (0..weights.len()).step_by(7) {
        check_error(
            &[("config.json", CONFIG), ("model.safetensors", &weights[..cut])],
            &["model.safetensors", "cut short", "incomplete"],
        );
    }
    let gguf = Writer::llama().bytes();
    let folder = folder(&[]);
    let path = folder.path().join("m.gguf");
    for cut in (0..gguf.len()).step_by(7) {
        std::fs::write(&path, &gguf[..cut]).unwrap();
        let error = open_error(&path);
        assert!(error.contains("m.gguf is cut short") && error.contains("incomplete"), "{cut}: {error}");
    }
}

#[test]
fn any_flipped_byte_is_an_error_or_a_checkpoint() {
    let gguf = Writer::llama().bytes();
    let folder = folder(&[]);
    let path = folder.path().join("m.gguf");
    for place in (0..gguf.len() - 800).step_by(3) {
        let mut bytes = gguf.clone();
        bytes[place] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(checkpoint) = Checkpoint::open(&path) {
            checkpoint.tensors().for_each(|tensor| assert!(checkpoint.read(tensor).is_ok(), "{place}"));
        }
    }
}

fn open_gguf(writer: &Writer) -> Result<Checkpoint, Error> {
    let folder = folder(&[("m.gguf", &writer.bytes())]);
    Checkpoint::open(folder.path())
}

#[test]
fn gguf_becomes_a_hugging_face_checkpoint() {
    let checkpoint = open_gguf(&Writer::llama()).unwrap();
    assert_eq!((checkpoint.architecture(), checkpoint.format()), ("llama", Format::Gguf));
    let config = checkpoint.config();
    for (key, value) in [
        ("hidden_size", json!(32)),
        ("num_attention_heads", json!(4)),
        ("num_key_value_heads", json!(2)),
        ("head_dim", json!(8)),
        ("vocab_size", json!(5)),
        ("rms_norm_eps", json!(1e-5)),
        ("rope_theta", json!(10000.0)),
        ("rope_scaling", Value::Null),
        ("tie_word_embeddings", json!(true)),
        ("attention_bias", json!(false)),
    ] {
        assert_eq!(config[key], value, "{key}");
    }
    let embedding = checkpoint.tensor("model.embed_tokens.weight").unwrap();
    assert_eq!((embedding.dtype, embedding.shape.as_slice()), (Dtype::Q4_1, &[5, 32][..]));
    assert_eq!(checkpoint.read(embedding).unwrap(), (0..100).collect::<Vec<u8>>());
    let norm = checkpoint.tensor("model.norm.weight").unwrap();
    assert_eq!(checkpoint.read(norm).unwrap(), [1; 128]);
    assert!(checkpoint.tensor("model.layers.0.self_attn.q_proj.weight").is_some());
    assert_eq!(checkpoint.templates().unwrap().unwrap().default, "{{ messages }}");
    let special = ["bos_token", "eos_token"].map(|part| (part.to_owned(), "<|endoftext|>".to_owned()));
    assert_eq!(checkpoint.special_tokens(), special);
    assert_eq!(checkpoint.generation().eos_token_ids, [0]);
    let TokenizerSource::Gguf(vocabulary) = checkpoint.tokenizer().unwrap() else { panic!("not a GGUF's") };
    assert_eq!((vocabulary.tokens.len(), vocabulary.merges.as_slice()), (5, &["a b".to_owned()][..]));
    assert_eq!(vocabulary.pre.as_deref(), Some("smollm"));
}

#[test]
fn gguf_templates() {
    let mut writer = Writer::llama();
    writer.text("tokenizer.chat_template.tool_use", "{{ tools }}");
    let templates = open_gguf(&writer).unwrap().templates().unwrap().unwrap();
    assert_eq!((templates.default.as_str(), templates.tool_use.as_deref()), ("{{ messages }}", Some("{{ tools }}")));
}

#[test]
fn gguf_rope_scaling() {
    use super::gguf::writer::Value;
    let mut writer = Writer::llama();
    writer.text("llama.rope.scaling.type", "yarn");
    writer.set("llama.rope.scaling.factor", Value::Float(4.0));
    writer.set("llama.rope.scaling.original_context_length", Value::Unsigned(16));
    writer.set("llama.rope.dimension_count", Value::Unsigned(4));
    let checkpoint = open_gguf(&writer).unwrap();
    let expected = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16});
    assert_eq!(checkpoint.config()["rope_scaling"], expected);
    assert_eq!(checkpoint.config()["partial_rotary_factor"], json!(0.5));
    writer.text("llama.rope.scaling.type", "longrope");
    assert!(open_gguf(&writer).unwrap_err().to_string().contains("\"longrope\""));
}

/// The error of a sound GGUF after a change must hold this piece.
fn check_refusal(change: impl Fn(&mut Writer), piece: &str) {
    let mut writer = Writer::llama();
    change(&mut writer);
    let error = open_gguf(&writer).unwrap_err().to_string();
    assert!(error.contains(piece), "{piece:?} is not in: {error}");
}

#[test]
fn gguf_metadata_refusals() {
    use super::gguf::writer::Value;
    check_refusal(
        |w| w.text("general.architecture", "mamba"),
        "\"mamba\" is not supported; of GGUFs mettle reads: llama",
    );
    let mut nested = Value::List(vec![Value::Unsigned(1)]);
    (0..8).for_each(|_| nested = Value::List(vec![nested.clone()]));
    for (key, value, piece) in [
        ("split.count", Value::Unsigned(3), "split"),
        ("llama.expert_count", Value::Unsigned(8), "experts"),
        ("general.alignment", Value::Unsigned(48), "alignment is 48"),
        ("llama.block_count", Value::Boolean(true), "llama.block_count is no count"),
        ("tokenizer.ggml.token_type", Value::List(vec![]), "0 entries for 5 tokens"),
        ("nested", nested, "nested has the unknown value type 9"),
    ] {
        check_refusal(|w| w.set(key, value.clone()), piece);
    }
    for (missing, piece) in [
        ("llama.block_count", "no llama.block_count"),
        ("tokenizer.ggml.tokens", "no tokenizer"),
        ("tokenizer.ggml.model", "no tokenizer"),
        ("tokenizer.ggml.merges", "no tokenizer.ggml.merges"),
    ] {
        check_refusal(|w| w.metadata.retain(|(key, _)| key != missing), piece);
    }
}

#[test]
fn gguf_tensor_and_file_refusals() {
    for (dimensions, number, piece) in [
        (vec![5, 2], 2, "[2, 5] is no possible shape of Q4_0"),
        (vec![5], 4, "type number 4"),
        (vec![1; 5], 0, "5 dimensions"),
        (vec![u64::MAX, 2], 0, "no possible shape"),
    ] {
        check_refusal(|w| w.tensors.push(("x".into(), dimensions.clone(), number, vec![])), piece);
    }
    check_refusal(|w| w.tensors.push(w.tensors[0].clone()), "embed_tokens.weight twice");
    let big_endian = [&b"GGUF"[..], &3u32.to_be_bytes(), &[0; 64]].concat();
    check_error(&[("m.gguf", &big_endian)], &["big endian"]);
    check_error(&[("m.gguf", b"GGUF\x01\0\0\0 and more than that")], &["version 1"]);
    check_error(&[("m.gguf", b"PK\x03\x04")], &["no GGUF file"]);
}

fn text_folder(files: &[(&str, &str)]) -> (TempDir, Checkpoint) {
    let weights = safetensors_file(&[("a", &[2])]);
    let mut all: Vec<(&str, &[u8])> = vec![("config.json", CONFIG), ("model.safetensors", &weights)];
    all.extend(files.iter().map(|(name, text)| (*name, text.as_bytes())));
    let folder = folder(&all);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    (folder, checkpoint)
}

#[test]
fn template_homes() {
    let jinja = ("chat_template.jinja", "J");
    let json = ("chat_template.json", r#"{"chat_template": "C"}"#);
    let named = r#"{"chat_template": [{"name": "tool_use", "template": "X"}, {"name": "default", "template": "D"}]}"#;
    let check = |files: &[(&str, &str)], expected: Option<&str>| {
        let templates = text_folder(files).1.templates().unwrap();
        assert_eq!(templates.map(|templates| templates.default).as_deref(), expected);
    };
    check(&[], None);
    check(&[("tokenizer_config.json", r#"{"chat_template": null}"#)], None);
    check(&[("tokenizer_config.json", r#"{"chat_template": "T"}"#)], Some("T"));
    check(&[("tokenizer_config.json", named)], Some("D"));
    check(&[("tokenizer_config.json", r#"{"chat_template": [{"name": "x", "template": "O"}]}"#)], Some("O"));
    check(&[("tokenizer_config.json", named), json], Some("C"));
    check(&[("tokenizer_config.json", named), json, jinja], Some("J"));
    let own = [("additional_chat_templates/tool_use.jinja", "U"), ("other.jinja", "I"), jinja];
    let templates = text_folder(&own).1.templates().unwrap().unwrap();
    assert_eq!((templates.default.as_str(), templates.tool_use.as_deref()), ("J", Some("U")));
    let included: Vec<&str> = templates.files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(included, ["chat_template.jinja", "other.jinja", "additional_chat_templates/tool_use.jinja"]);
    let templates = text_folder(&[own[0], ("tokenizer_config.json", named)]).1.templates().unwrap().unwrap();
    assert_eq!((templates.default.as_str(), templates.tool_use.as_deref()), ("D", Some("U")));
    let nameless = named.replace("default", "rag");
    let (_folder, checkpoint) = text_folder(&[("tokenizer_config.json", &nameless)]);
    assert!(checkpoint.templates().unwrap_err().to_string().contains("(tool_use, rag)"));
}

#[test]
fn generation_from_every_place() {
    let generation_config = r#"{"eos_token_id": 9, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "do_sample": true}"#;
    let tokenizer_config = r#"{"eos_token": {"content": "<e>"}, "bos_token": "<b>"}"#;
    let tokenizer = r#"{"added_tokens": [{"id": 11, "content": "<e>"}]}"#;
    let files = [
        ("generation_config.json", generation_config),
        ("tokenizer_config.json", tokenizer_config),
        ("tokenizer.json", tokenizer),
    ];
    let (_folder, checkpoint) = text_folder(&files);
    let expected = Generation {
        eos_token_ids: vec![2, 7, 9],
        sampling: vec![("temperature", 0.6), ("top_k", 20.0), ("top_p", 0.95)],
    };
    assert_eq!(checkpoint.generation(), expected);
    let special = [("bos_token".to_owned(), "<b>".to_owned()), ("eos_token".to_owned(), "<e>".to_owned())];
    assert_eq!(checkpoint.special_tokens(), special);
    let TokenizerSource::Json { json, added, rows } = checkpoint.tokenizer().unwrap() else { panic!("a folder") };
    assert_eq!((json.as_slice(), rows), (tokenizer.as_bytes(), None));
    assert_eq!(added.iter().map(|token| token.content.as_str()).collect::<Vec<_>>(), ["<b>", "<e>"]);
    let greedy = generation_config.replace("\"do_sample\": true", "\"do_sample\": false");
    let (_folder, checkpoint) = text_folder(&[("generation_config.json", &greedy)]);
    let expected = Generation { eos_token_ids: vec![2, 7, 9], ..Generation::default() };
    assert_eq!(checkpoint.generation(), expected);
    assert!(checkpoint.tokenizer().unwrap_err().to_string().contains("no tokenizer.json"));
    let map = ("special_tokens_map.json", r#"{"eos_token": "<old>", "unk_token": {"content": "<u>"}}"#);
    let special = text_folder(&[("tokenizer_config.json", tokenizer_config), map]).1.special_tokens();
    let special: Vec<&str> = special.iter().map(|(_, token)| token.as_str()).collect();
    assert_eq!(special, ["<b>", "<e>", "<u>"]);
}

/// Each token as `content special rank id`, after transformers 5.24's choice of files.
#[test]
fn added_tokens_of_the_other_files() {
    let tokenizer = ("tokenizer.json", "{}");
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let files: Vec<(&str, &str)> = [tokenizer].into_iter().chain(files.iter().copied()).collect();
        let TokenizerSource::Json { added, .. } = text_folder(&files).1.tokenizer().unwrap() else { panic!() };
        let shown = added.iter().map(|one| {
            let id = one.id.map_or("-".to_owned(), |id| id.to_string());
            format!("{} {} {:?} {id}", one.content, one.special, one.rank)
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{files:?}");
    };
    let map = ("special_tokens_map.json", r#"{"eos_token": "<e>", "additional_special_tokens": ["<x>"]}"#);
    let listed = ("added_tokens.json", r#"{"<n>": 9, "<e>": 8}"#);
    check(&[], &[]);
    check(&[map, listed], &["<e> true New 8", "<n> false New 9", "<e> true Special -", "<x> true New -"]);
    // With a decoder, the older files are leftovers.
    let decoder = r#"{"added_tokens_decoder": {"10": {"content": "<b>", "special": true}, "9": {"content": "<a>"}},
        "pad_token": {"content": "<p>"}, "extra_special_tokens": {"image_token": "<i>"}}"#;
    let expected = ["<a> false Flags 9", "<b> true Flags 10", "<p> true Special -", "<i> true New -"];
    check(&[("tokenizer_config.json", decoder), map, listed], &expected);
    let wrong = ("tokenizer_config.json", r#"{"added_tokens_decoder": {"nine": {"content": "<a>"}}}"#);
    let error = text_folder(&[tokenizer, wrong]).1.tokenizer().unwrap_err().to_string();
    assert!(error.contains("added_tokens_decoder: nine") && error.contains("tokenizer_config.json"), "{error}");
}

/// A tensor's name and shape.
type Named<'a> = (&'a str, &'a [usize]);

/// The files of a folder are `(name, tensors)`, its index maps tensors to files; `expected` is each tensor with its
/// length, or a piece of the error.
fn check_index(files: &[(&str, &[Named])], index: Value, expected: Result<&[(&str, usize)], &str>) {
    let bytes: Vec<(&str, Vec<u8>)> = files.iter().map(|(name, tensors)| (*name, safetensors_file(tensors))).collect();
    let index = json!({ "weight_map": index }).to_string();
    let mut all: Vec<(&str, &[u8])> = vec![("config.json", CONFIG), ("model.safetensors.index.json", index.as_bytes())];
    all.extend(bytes.iter().map(|(name, bytes)| (*name, bytes.as_slice())));
    let folder = folder(&all);
    match (Checkpoint::open(folder.path()), expected) {
        (Ok(checkpoint), Ok(expected)) => {
            let mut found: Vec<(&str, usize)> = checkpoint.tensors().map(|one| (one.name.as_str(), one.len)).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{files:?} {index}");
        }
        (Err(error), Err(piece)) => assert!(error.to_string().contains(piece), "{error}"),
        (found, _) => panic!("{files:?} {index}: {found:?}"),
    }
}

#[test]
fn an_index_that_is_about_other_files() {
    const ONE: &str = "model-00001-of-00002.safetensors";
    const TWO: &str = "model-00002-of-00002.safetensors";
    let a: Named = ("a", &[2]);
    let b: Named = ("b", &[3]);
    let both = Ok(&[("a", 8), ("b", 12)][..]);
    let three = json!({"a": "model-00001-of-00003.safetensors", "b": "model-00003-of-00003.safetensors"});
    check_index(&[("model.safetensors", &[a, b])], json!({"a": ONE, "b": TWO}), both);
    check_index(&[(ONE, &[a]), (TWO, &[b])], three.clone(), both);
    check_index(&[(ONE, &[a])], three.clone(), Err(TWO));
    check_index(&[], three, Err("2 of the model's files"));
    // A whole file before shards, unless the index names it.
    check_index(&[("model.safetensors", &[a]), (ONE, &[b])], json!({"a": ONE, "b": TWO}), Ok(&[("a", 8)]));
    check_index(
        &[("model.safetensors", &[a]), ("more.safetensors", &[b])],
        json!({"a": "model.safetensors", "b": "more.safetensors"}),
        both,
    );
    check_index(&[(ONE, &[a]), ("consolidated.safetensors", &[a]), (TWO, &[b])], json!({"a": "x.safetensors"}), both);
    // Of the same names, but another build's: no tensor is where it says.
    check_index(&[(ONE, &[a]), (TWO, &[b])], json!({"a": TWO, "b": ONE}), both);
    check_index(&[(ONE, &[a, b]), (TWO, &[b])], json!({"a": TWO, "b": ONE}), Err("tensor b twice"));
}

#[test]
fn an_index_picks_tensors() {
    const ONE: &str = "model-1.safetensors";
    const TWO: &str = "model-2.safetensors";
    let old: Named = ("b", &[5]);
    let a: Named = ("a.weight", &[2]);
    let b: Named = ("b", &[3]);
    check_index(
        &[(ONE, &[a, old]), (TWO, &[b])],
        json!({"a.weight": ONE, "b": TWO}),
        Ok(&[("a.weight", 8), ("b", 12)]),
    );
    check_index(
        &[(ONE, &[a, old]), (TWO, &[b])],
        json!({"a.weight": ONE, "b": ONE}),
        Ok(&[("a.weight", 8), ("b", 20)]),
    );
    check_index(
        &[(ONE, &[a, b, ("mtp.fc", &[1])])],
        json!({"a.weight": ONE, "b": ONE}),
        Ok(&[("a.weight", 8), ("b", 12)]),
    );
    // What quantising added under the index of the unquantised model.
    let quantised: &[(&str, &[usize])] = &[a, ("a.scales", &[1]), ("a.biases", &[1]), ("c.scales", &[1])];
    let expected = Ok(&[("a.biases", 4), ("a.scales", 4), ("a.weight", 8)][..]);
    check_index(&[(ONE, quantised)], json!({"a.weight": ONE}), expected);
}

/// By its first part alone: readable, refused, or too little to tell.
#[test]
fn the_first_part_of_a_gguf() {
    let check = |writer: &Writer, cut: usize, name: &str, expected: Result<bool, &str>| {
        let bytes = writer.bytes();
        let folder = folder(&[("part", &bytes[..cut.min(bytes.len())])]);
        let found = is_gguf_readable(Path::new(name), &folder.path().join("part"), bytes.len() as u64);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{cut}"),
            (Err(error), Err(piece)) => assert!(error.to_string().contains(piece), "{error}"),
            (found, _) => panic!("{cut}: {found:?}, not {expected:?}"),
        }
    };
    let sound = Writer::llama();
    let length = sound.bytes().len();
    for cut in (0..length - 1000).step_by(11) {
        check(&sound, cut, "m.gguf", Ok(false));
    }
    check(&sound, length - 1, "m.gguf", Ok(true));
    check(&sound, 0, "m-00001-of-00002.gguf", Err("split"));
    let mut other = Writer::llama();
    other.text("general.architecture", "mamba");
    check(&other, usize::MAX, "m.gguf", Err("\"mamba\""));
    let mut kind = Writer::llama();
    kind.tensors.push(("x".into(), vec![32], 4, vec![]));
    check(&kind, usize::MAX, "m.gguf", Err("type number 4"));
    let absent = folder(&[]).path().join("none");
    assert!(!is_gguf_readable(Path::new("m.gguf"), &absent, 9).unwrap());
}
