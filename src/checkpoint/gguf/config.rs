//! The metadata of a GGUF as the `config.json` that the same model has on the Hugging Face hub.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::Error;
use super::architecture::Architecture;
use super::reader::{Header, Metadata};
use super::vocabulary::Vocabulary;

/// The config of a file of this architecture.
///
/// # Errors
/// Metadata that is missing or of the wrong kind, and what no reader of the config could honour: each by its key.
pub(super) fn of(
    architecture: &Architecture,
    path: &Path,
    header: &Header,
    vocabulary: &Vocabulary,
) -> Result<Value, Error> {
    let keys = Keys { prefix: architecture.name, path, metadata: &header.metadata };
    if keys.count("expert_count")?.is_some_and(|experts| experts > 0) {
        let message = format!("a {} GGUF with experts (mixtral) is not supported", architecture.name);
        return Err(Error::unsupported(path, message));
    }
    let hidden = keys.required("embedding_length")?;
    let heads = keys.required("attention.head_count")?;
    if heads == 0 {
        return Err(Error::damaged(path, format!("{} is 0", keys.name("attention.head_count"))));
    }
    let head_dim = keys.count("attention.key_length")?.unwrap_or(hidden / heads);
    let has = |name: &str| header.tensors.iter().any(|tensor| tensor.name == name);
    let mut config = json!({
        "architectures": [architecture.class],
        "model_type": architecture.model_type,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": keys.required("feed_forward_length")?,
        "num_hidden_layers": keys.required("block_count")?,
        "num_attention_heads": heads,
        "num_key_value_heads": keys.count("attention.head_count_kv")?.unwrap_or(heads),
        "head_dim": head_dim,
        "max_position_embeddings": keys.required("context_length")?,
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon")?,
        "rope_theta": keys.optional_number("rope.freq_base").unwrap_or(10_000.0),
        "rope_scaling": rope_scaling(&keys)?,
        "vocab_size": vocabulary.tokens.len(),
        "tie_word_embeddings": !has("output.weight"),
        "attention_bias": has("blk.0.attn_q.bias"),
        "mlp_bias": has("blk.0.ffn_up.bias"),
        "bos_token_id": vocabulary.bos,
        "eos_token_id": vocabulary.eos,
    });
    let rotated = keys.count("rope.dimension_count")?.unwrap_or(head_dim);
    if rotated != head_dim && head_dim > 0 {
        config["partial_rotary_factor"] = json!(rotated as f64 / head_dim as f64);
    }
    Ok(config)
}

/// The scaling in `config.json`'s words. That of llama 3 is no metadata but a tensor, `rope_freqs.weight`.
fn rope_scaling(keys: &Keys) -> Result<Value, Error> {
    let kind = match keys.text("rope.scaling.type") {
        Some(kind) => kind,
        // The older key, from before there were kinds.
        None if keys.optional_number("rope.scale_linear").is_some_and(|factor| factor != 1.0) => "linear",
        None => return Ok(Value::Null),
    };
    let mut scaling = Map::new();
    scaling.insert("rope_type".to_owned(), kind.into());
    match kind {
        "none" => return Ok(Value::Null),
        "linear" | "yarn" => {}
        other => {
            return Err(Error::unsupported(
                keys.path,
                format!("the rope scaling \"{other}\" of a GGUF is not supported"),
            ));
        }
    }
    let factor = keys.optional_number("rope.scaling.factor").or_else(|| keys.optional_number("rope.scale_linear"));
    let factor = factor.unwrap_or(1.0);
    scaling.insert("factor".to_owned(), factor.into());
    if let Some(original) = keys.count("rope.scaling.original_context_length")? {
        scaling.insert("original_max_position_embeddings".to_owned(), original.into());
    }
    for (key, name) in [("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")] {
        if let Some(beta) = keys.optional_number(&format!("rope.scaling.{key}")) {
            scaling.insert(name.to_owned(), beta.into());
        }
    }
    // A GGUF's factor multiplies yarn's own one (YaRN, Peng et al. 2023, eq. 22); a config.json's replaces it.
    if let Some(attention) = keys.optional_number("rope.scaling.attn_factor").filter(|attention| *attention != 1.0) {
        scaling.insert("attention_factor".to_owned(), (attention * (1.0 + 0.1 * factor.ln())).into());
    }
    Ok(Value::Object(scaling))
}

/// The metadata under the architecture's name.
struct Keys<'a> {
    prefix: &'a str,
    path: &'a Path,
    metadata: &'a Metadata,
}

impl Keys<'_> {
    /// A key's whole name: `llama.block_count`.
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn required(&self, key: &str) -> Result<u64, Error> {
        self.count(key)?.ok_or_else(|| Error::missing(self.path, format!("the GGUF has no {}", self.name(key))))
    }

    fn count(&self, key: &str) -> Result<Option<u64>, Error> {
        let Some(value) = self.metadata.get(&self.name(key)) else {
            return Ok(None);
        };
        // A list has one entry a layer; a llama whose layers differ is none.
        let first = value.list().map_or(Some(value), |list| list.first());
        let same = value.list().is_none_or(|list| list.iter().all(|item| Some(item) == first));
        match first.and_then(|value| value.unsigned()) {
            Some(count) if same => Ok(Some(count)),
            Some(_) => Err(Error::unsupported(self.path, format!("{} differs from layer to layer", self.name(key)))),
            None => Err(Error::damaged(self.path, format!("{} is no count", self.name(key)))),
        }
    }

    fn number(&self, key: &str) -> Result<f64, Error> {
        self.optional_number(key)
            .ok_or_else(|| Error::missing(self.path, format!("the GGUF has no {}", self.name(key))))
    }

    /// A number that the file stores as f32, as the decimal that was meant: 1e-5, not 9.999999747378752e-6.
    fn optional_number(&self, key: &str) -> Option<f64> {
        let number = self.metadata.number(&self.name(key))?;
        (number as f32).to_string().parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.metadata.text(&self.name(key))
    }
}
