//! Vectors: a tiny BERT's beside transformers', the real MiniLM's beside sentence-transformers', and those of models
//! that write text beside what they are made of.

use std::{fs, path::Path, sync::Arc};

use mettle::{
    checkpoint::Checkpoint,
    engine::Encoder,
    mlx::{self, Embedder, Loaded, Options},
};
use serde_json::Value;
use tokenizers::Tokenizer;

use super::golden::{EXACT, EXACT_BY_MLX, FAST, FAST_BY_MLX, Golden};
use crate::support::{self, cosine, distance};

fn load(path: &Path, options: Options) -> Embedder {
    let checkpoint = Arc::new(Checkpoint::open(path).unwrap_or_else(|error| panic!("{error}")));
    let loaded = mlx::load(checkpoint, options).finish().unwrap_or_else(|error| panic!("{error}"));
    loaded.embedder()
}

fn embed(embedder: &mut Embedder, rows: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    embedder.embed(&rows).unwrap_or_else(|error| panic!("{error}"))
}

/// The rows of `bert/hidden.json` and what `field` says of each.
fn tiny(field: &str) -> (Vec<Vec<u32>>, Vec<Vec<f32>>) {
    let text = fs::read(support::models().join("bert/hidden.json")).expect("committed");
    let json: Value = serde_json::from_slice(&text).expect("JSON");
    let rows = json["rows"].as_array().expect("a list");
    let ids = rows.iter().map(|row| serde_json::from_value(row["ids"].clone()).expect("ids"));
    let vectors = rows.iter().map(|row| serde_json::from_value(row[field].clone()).expect("numbers"));
    (ids.collect(), vectors.collect())
}

/// A copy of the tiny BERT that pools as `flag` says, and normalises if `last` says so.
fn pooled_by(flag: &str, normalised: bool) -> tempfile::TempDir {
    let (from, to) = (support::models().join("bert"), tempfile::tempdir().expect("a temporary folder"));
    for name in ["config.json", "model.safetensors"] {
        fs::copy(from.join(name), to.path().join(name)).expect("copied");
    }
    let module =
        |kind: &str| serde_json::json!({"path": "pool", "type": format!("sentence_transformers.models.{kind}")});
    let kinds = if normalised { &["Transformer", "Pooling", "Normalize"][..] } else { &["Transformer", "Pooling"] };
    let modules: Vec<Value> = kinds.iter().map(|kind| module(kind)).collect();
    fs::create_dir(to.path().join("pool")).expect("a folder");
    fs::write(to.path().join("modules.json"), Value::from(modules).to_string()).expect("written");
    fs::write(to.path().join("pool/config.json"), serde_json::json!({flag: true}).to_string()).expect("written");
    to
}

#[test]
fn the_tiny_bert_is_transformers() {
    let last = pooled_by("pooling_mode_lasttoken", false);
    for (path, field) in [(support::models().join("bert"), "mean"), (last.path().to_owned(), "last")] {
        let (rows, expected) = tiny(field);
        for options in [EXACT, EXACT_BY_MLX, FAST] {
            let mut embedder = load(&path, options);
            assert_eq!(embedder.context(), 128);
            let together = embed(&mut embedder, &rows);
            let bar = if options.precision == FAST.precision { 2e-3 } else { 1e-5 };
            for ((ours, expected), row) in together.iter().zip(&expected).zip(&rows) {
                let apart = distance(ours, expected);
                assert!(apart <= bar, "{field}, {options:?}, {} tokens: {apart:.1e} apart", row.len());
            }
            if !options.mlx_ops {
                let alone: Vec<_> =
                    rows.iter().flat_map(|row| embed(&mut embedder, std::slice::from_ref(row))).collect();
                assert_eq!(alone, together, "{field}, {options:?}: company changes a vector");
            }
        }
    }
}

#[test]
fn the_tiny_bert_by_mlx_in_sixteen_bits() {
    let (rows, expected) = tiny("mean");
    let ours = embed(&mut load(&support::models().join("bert"), FAST_BY_MLX), &rows);
    for (ours, expected) in ours.iter().zip(&expected) {
        assert!(cosine(ours, expected) >= 0.999, "cosine {}", cosine(ours, expected));
    }
}

#[test]
fn normalised_vectors_have_length_one() {
    let folder = pooled_by("pooling_mode_mean_tokens", true);
    let (rows, expected) = tiny("mean");
    for (ours, expected) in embed(&mut load(folder.path(), EXACT), &rows).iter().zip(&expected) {
        let length = ours.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
        assert!((length - 1.0).abs() < 1e-6 && cosine(ours, expected) > 0.999_999, "length {length}");
    }
}

/// A model that writes text: the vectors of rows together are those of each alone, and depend on every token.
#[test]
fn models_that_write_text_make_vectors() {
    for name in ["llama-bf16", "qwen3_5", "qwen3_moe"] {
        let golden = Golden::of(name);
        for options in [FAST, EXACT_BY_MLX] {
            let mut embedder = load(&golden.path, options);
            let rows = vec![golden.prompt[..7].to_vec(), golden.prompt.clone(), golden.prompt[1..7].to_vec()];
            let together = embed(&mut embedder, &rows);
            for (row, vector) in rows.iter().zip(&together) {
                let alone = &embed(&mut embedder, std::slice::from_ref(row))[0];
                assert!(distance(alone, vector) <= 1e-4, "{name}, {options:?}");
                let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
                assert!((length - 1.0).abs() < 1e-5, "{name}, {options:?}: length {length}");
            }
            assert!(cosine(&together[0], &together[2]) < 0.9999, "{name}: the first token does not show");
        }
    }
}

/// Every step loads a matrix: the table, four of each layer, the head; the last one has what is left.
#[test]
fn a_load_goes_in_steps() {
    for (name, steps) in [("bert", 10), ("llama-bf16", 10), ("qwen3_5", 19)] {
        let checkpoint = Checkpoint::open(&support::models().join(name)).expect("it opens");
        let mut loading = mlx::load(Arc::new(checkpoint), EXACT);
        let unfinished = (0..).take_while(|_| loading.step().expect("it loads").is_none()).count();
        assert_eq!(unfinished + 1, steps, "{name}");
    }
}

#[test]
fn minilm_is_sentence_transformers() {
    let Some(path) = support::minilm() else { return };
    let text = fs::read(support::models().join("all-minilm-l6-v2.json")).expect("committed");
    let json: Value = serde_json::from_slice(&text).expect("JSON");
    let texts = json["texts"].as_array().expect("a list");
    assert!(texts.len() >= 20);
    let mut tokenizer = Tokenizer::from_file(path.join("tokenizer.json")).expect("a tokenizer");
    tokenizer.with_truncation(None).expect("none");
    tokenizer.with_padding(None);
    let rows: Vec<Vec<u32>> = texts
        .iter()
        .map(|golden| {
            let text = golden["text"].as_str().expect("text");
            let encoding = tokenizer.encode(text, true).expect("ids");
            assert_eq!(Some(encoding.len() as u64), golden["tokens"].as_u64(), "{text:?}");
            encoding.get_ids().to_vec()
        })
        .collect();
    for (options, bar) in [(EXACT, 0.999_999), (FAST, 0.999_9), (EXACT_BY_MLX, 0.999_999)] {
        let mut embedder = load(&path, options);
        assert_eq!(embedder.context(), 256);
        let mut worst = 1.0_f64;
        for (golden, ours) in texts.iter().zip(embed(&mut embedder, &rows)) {
            let expected: Vec<f32> = serde_json::from_value(golden["vector"].clone()).expect("numbers");
            let angle = cosine(&ours, &expected);
            assert!(angle >= bar, "{options:?}, {}: cosine {angle:.7}", golden["text"]);
            worst = worst.min(angle);
        }
        eprintln!("{options:?}: the worst cosine of {} texts is {worst:.8}", texts.len());
    }
}

#[test]
fn what_a_token_costs() {
    let cost = |name: &str| {
        let checkpoint = Checkpoint::open(&support::models().join(name)).expect("it opens");
        let loaded = mlx::load(Arc::new(checkpoint), FAST).finish().expect("it loads");
        assert!(matches!((&loaded, name), (Loaded::Embedding(_), "bert") | (Loaded::Text { .. }, _)), "{name}");
        loaded.cost().clone()
    };
    // Two layers of 64 features: 4 heads and 2 of keys of 32, a network of 96, a tied table of 256.
    let llama = cost("llama-bf16");
    let (layer, norms) = (64 * 128 * 2 + 64 * 64 * 2 + 3 * 64 * 96, 5 * 64);
    assert_eq!(llama.products_to_write(), (2 * layer + 256 * 64) as f64);
    assert_eq!(llama.bytes_to_write(1, 0), (2 * (2 * layer + 256 * 64 + norms)) as f64);
    assert_eq!(llama.kv_bytes(100), (2 * 100 * 2 * 2 * 32 * 2) as f64);
    assert_eq!((llama.context, llama.vocabulary), (1024, 256));
    // An untied head is read at every token, its table is not.
    let untied = cost("llama-untied");
    assert!(untied.memory > untied.bytes_to_write(1, 0) + (2 * 256 * 64 - 1) as f64, "{untied:?}");
    // Two windows of 12 and a layer that sees all.
    let window = cost("llama-window");
    assert_eq!(window.kv_bytes(100), ((100 + 2 * 12) * 2 * 2 * 32 * 2) as f64);
    // One layer of four has keys and values.
    assert_eq!(cost("qwen3_5").kv_bytes(100), (100 * 2 * 32 * 2) as f64);
    // Two of four experts in one layer of two.
    let moe = cost("qwen3_moe");
    assert_eq!(moe.expert_bytes(), (4 * 3 * 64 * 32 * 2) as f64);
    assert_eq!(cost("bert").kv_bytes(100), 0.0);
}
