//! Other words for the same checkpoint: what configs and names differ in between tools makes no other model.

use mettle::mlx::models::Kind;
use serde_json::{Value, json};

use super::golden::{EXACT, Golden};
use crate::support::{Edited, distance};

/// The edited copy of `name` gives the answers of the original.
fn check(name: &str, edit: impl FnOnce(Edited) -> Edited) {
    let mut golden = Golden::of(name);
    let folder = edit(Edited::of(&golden.path)).save();
    golden.path = folder.path().to_owned();
    let ours = golden.ours(EXACT).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (ours, row) in ours.iter().zip(&golden.logits) {
        assert!(distance(ours, row) <= 1e-4, "{name}: {} apart", distance(ours, row));
    }
}

#[test]
fn the_other_names_of_an_architecture() {
    for model in mettle::mlx::models::MODELS.iter().filter(|model| model.kind == Kind::Text) {
        for other in &model.names[1..] {
            // Qwen's text part alone is another config, in a test below.
            if *other != "qwen3_5_text" {
                let name = if model.names[0] == "llama" { "llama-bf16" } else { model.names[0] };
                check(name, |copy| copy.set(&["model_type"], json!(other)));
            }
        }
    }
}

#[test]
fn rope_scaling_inside_rope_parameters() {
    for kind in ["linear", "llama3", "yarn", "longrope"] {
        check(&format!("llama-rope-{kind}"), |copy| {
            let mut rope = copy.config["rope_scaling"].clone();
            rope["rope_theta"] = copy.config["rope_theta"].clone();
            let copy = copy.set(&["rope_scaling"], Value::Null).set(&["rope_theta"], Value::Null);
            copy.set(&["rope_parameters"], rope)
        });
    }
}

#[test]
fn the_older_word_for_the_rope_type() {
    check("llama-rope-linear", |copy| {
        let kind = copy.config["rope_scaling"]["rope_type"].clone();
        copy.set(&["rope_scaling", "rope_type"], Value::Null).set(&["rope_scaling", "type"], kind)
    });
}

#[test]
fn a_window_that_is_null_is_none() {
    check("llama-bf16", |copy| copy.set(&["model_type"], json!("mistral")).set(&["sliding_window"], json!(null)));
    check("llama-untied", |copy| copy.set(&["sliding_window"], json!(3)));
}

#[test]
fn frequencies_that_older_checkpoints_store() {
    check("llama-f32", |copy| copy.add("model.layers.0.self_attn.rotary_emb.inv_freq", &[16]));
}

#[test]
fn the_text_part_of_qwen_alone() {
    for name in ["qwen3_5", "qwen3_5-q4"] {
        check(name, |copy| {
            let copy = copy.rename(|name| name.trim_start_matches("language_model.").to_owned());
            let mut config = copy.config["text_config"].clone();
            if let Some(quantization) = copy.config.get("quantization").and_then(Value::as_object) {
                let own = quantization.iter().map(|(path, value)| (path.replace("language_model.", ""), value.clone()));
                config["quantization"] = own.collect();
            }
            Edited { config, ..copy }
        });
    }
}

#[test]
fn the_full_attention_interval_said_by_layer_types_alone() {
    check("qwen3_5", |copy| copy.set(&["text_config", "full_attention_interval"], Value::Null));
}
