//! A checkpoint that cannot be run says why, by name.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::golden::{EXACT, EXACT_BY_MLX};
use crate::support::{self, Edited};

/// What opening and loading say. Panics if they have no complaint.
fn complaint(path: &Path) -> String {
    let [ours, mlxs] = [EXACT, EXACT_BY_MLX].map(|options| match support::load(path, options) {
        Err(error) => error,
        Ok(_) => panic!("{} loaded", path.display()),
    });
    assert_eq!(ours, mlxs, "the complaint does not depend on the ops");
    ours
}

/// The edited copy of `name` is refused with all of `words`.
fn check(name: &str, words: &[&str], edit: impl FnOnce(Edited) -> Edited) {
    let folder = edit(Edited::of(&support::models().join(name))).save();
    let said = complaint(folder.path());
    for word in words {
        assert!(said.contains(word), "{name}: {word:?} is not in: {said}");
    }
}

#[test]
fn missing_tensors() {
    let names = [
        ("llama-bf16", "model.embed_tokens.weight"),
        ("llama-bf16", "model.layers.1.self_attn.k_proj.weight"),
        ("llama-bf16", "model.layers.0.mlp.down_proj.weight"),
        ("llama-bf16", "model.norm.weight"),
        ("llama-untied", "lm_head.weight"),
        ("llama-q4", "model.layers.1.mlp.up_proj.biases"),
        ("qwen3_5", "language_model.model.layers.0.linear_attn.A_log"),
        ("qwen3_5", "language_model.model.layers.2.linear_attn.conv1d.weight"),
        ("qwen3_5", "language_model.model.layers.3.self_attn.q_norm.weight"),
        ("qwen3_5", "language_model.lm_head.weight"),
        ("qwen3_5-hf", "model.language_model.layers.1.linear_attn.in_proj_z.weight"),
    ];
    for (folder, name) in names {
        check(folder, &[name], |copy| copy.remove(name));
    }
}

/// Scales gone, the packed weight is a matrix of another type and shape.
#[test]
fn a_quantised_matrix_without_scales() {
    let name = "model.layers.0.self_attn.q_proj";
    check("llama-q4", &[name], |copy| copy.remove(&format!("{name}.scales")));
}

/// A bias that attention has by name alone is found in the bias folder by its being there; a stray one is refused.
#[test]
fn tensors_left_over() {
    for name in ["model.layers.2.mlp.up_proj.weight", "model.layers.0.self_attn.q_norm.weight", "extra"] {
        check("llama-bf16", &[name, "1 tensor"], |copy| copy.add(name, &[4]));
    }
    check("qwen3_5", &["language_model.model.layers.3.linear_attn.A_log"], |copy| {
        copy.add("language_model.model.layers.3.linear_attn.A_log", &[4])
    });
    let many = ["a", "b", "c"];
    check("llama-bf16", &many, |copy| many.iter().fold(copy, |copy, name| copy.add(name, &[1])));
    // One layer fewer than there are: nine tensors have no place.
    check("llama-bf16", &["9 tensors", "model.layers.1."], |copy| copy.set(&["num_hidden_layers"], json!(1)));
}

#[test]
fn shapes_that_do_not_fit() {
    let q = "model.layers.0.self_attn.q_proj.weight";
    check("llama-bf16", &[q, "[128, 64]", "[64, 128]"], |copy| copy.reshape(q, &[64, 128]));
    let norm = "model.layers.1.input_layernorm.weight";
    check("llama-bf16", &[norm, "64", "[8, 8]"], |copy| copy.reshape(norm, &[8, 8]));
    check("llama-bf16", &["model.embed_tokens.weight", "[512, 64]"], |copy| copy.set(&["vocab_size"], json!(512)));
    check("llama-q4", &["model.layers.0.self_attn.q_proj"], |copy| copy.set(&["quantization", "bits"], json!(8)));
    check("llama-q4", &["model.embed_tokens"], |copy| {
        copy.set(&["quantization", "model.embed_tokens", "group_size"], json!(64))
    });
    let conv = "language_model.model.layers.0.linear_attn.conv1d.weight";
    check("qwen3_5", &[conv], |copy| copy.reshape(conv, &[64, 4, 4]));
    check("qwen3_5", &["language_model.model.layers.0.linear_attn"], |copy| {
        copy.set(&["text_config", "linear_value_head_dim"], json!(64))
    });
}

#[test]
fn settings_that_are_wrong_or_unknown() {
    let cases: &[(&str, &[&str], Value, &[&str])] = &[
        ("llama-bf16", &["model_type"], json!("transmogrifier"), &["transmogrifier", "llama", "qwen3_5"]),
        ("llama-bf16", &["model_type"], Value::Null, &["model_type"]),
        ("llama-bf16", &["hidden_size"], Value::Null, &["hidden_size"]),
        ("llama-bf16", &["hidden_size"], json!(0), &["hidden_size"]),
        ("llama-bf16", &["num_attention_heads"], json!("four"), &["num_attention_heads", "four"]),
        ("llama-bf16", &["num_key_value_heads"], json!(3), &["3"]),
        ("llama-bf16", &["rms_norm_eps"], json!("tiny"), &["rms_norm_eps", "tiny"]),
        ("llama-bf16", &["tie_word_embeddings"], json!("yes"), &["tie_word_embeddings"]),
        ("llama-rope-yarn", &["rope_scaling", "rope_type"], json!("spiral"), &["spiral", "yarn"]),
        ("llama-rope-yarn", &["rope_scaling", "factor"], Value::Null, &["factor"]),
        // Depends on the length of the sequence, so a remembered prefix would be wrong.
        ("llama-rope-yarn", &["rope_scaling", "rope_type"], json!("dynamic"), &["dynamic"]),
        ("llama-rope-longrope", &["rope_scaling", "long_factor"], json!([1.0, 2.0]), &["long_factor", "2", "16"]),
        ("llama-q4", &["quantization"], Value::Null, &["quantization"]),
        ("llama-q4", &["quantization", "mode"], json!("mxfp4"), &["mxfp4", "scales", "F16", "self_attn"]),
        ("llama-q4", &["quantization", "mode"], json!("ternary"), &["ternary", "affine", "nvfp4"]),
        ("llama-mxfp4", &["quantization", "mode"], json!("nvfp4"), &["nvfp4", "groups of 32"]),
        ("llama-mxfp4", &["quantization", "mode"], json!("affine"), &["model.embed_tokens.biases"]),
        ("qwen3_moe", &["num_experts_per_tok"], json!(9), &["9 of 4 experts"]),
        ("qwen3_moe", &["num_experts"], json!(5), &["model.layers.0.mlp.gate.weight", "[5, 64]"]),
        ("qwen3_moe", &["num_experts"], Value::Null, &["num_experts"]),
        ("llama-q4", &["quantization", "bits"], json!(7), &["7 bits"]),
        ("qwen3_5", &["text_config", "linear_num_key_heads"], json!(3), &["3"]),
        ("qwen3_5", &["text_config", "linear_conv_kernel_dim"], Value::Null, &["linear_conv_kernel_dim"]),
    ];
    for (name, path, value, words) in cases {
        check(name, words, |copy| copy.set(path, value.clone()));
    }
}

/// Cut anywhere: in the length, the header, the data.
#[test]
fn safetensors_cut_short() {
    let whole = fs::read(support::models().join("llama-bf16/model.safetensors")).expect("weights");
    let folder = Edited::of(&support::models().join("llama-bf16")).save();
    let file = folder.path().join("model.safetensors");
    for length in [0, 7, 8, 100, 2000, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).expect("written");
        let said = complaint(folder.path());
        assert!(said.contains("model.safetensors"), "cut at {length}: {said}");
        assert!(said.contains("cut short") || said.contains("damaged"), "cut at {length}: {said}");
    }
}

#[test]
fn a_shard_that_is_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"] {
        fs::copy(support::models().join("llama-sharded").join(name), folder.path().join(name)).expect("copied");
    }
    let said = complaint(folder.path());
    assert!(said.contains("model-00002-of-00002.safetensors"), "{said}");
}

#[test]
fn gguf_cut_short() {
    let whole = fs::read(support::models().join("llama.gguf")).expect("a file");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("model.gguf");
    for length in [0, 3, 24, 1000, 20_000, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).expect("written");
        let said = complaint(&file);
        assert!(said.contains("model.gguf"), "cut at {length}: {said}");
    }
}
