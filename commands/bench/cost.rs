//! What a token costs, counted from the checkpoint: bytes that have to be read and products that have to be added up.
//!
//! Decoding reads every weight once a step, but for the embedding table, of which it needs a row (and all of it where
//! it is the output head as well), and the experts that no sequence is sent to; and each sequence's keys and values.
//! Reading a prompt multiplies every weight with every token, but for the head, which only the last token needs.
//! Attention's own products and recurrent states are left out, so true shares are a little higher.

use mettle::{
    checkpoint::{Checkpoint, Dtype, Tensor},
    mlx,
};
use serde_json::Value;

use crate::error::Failure;

/// The cost of one model's tokens.
pub struct Cost {
    /// Weights in the checkpoint, in bytes: what every step reads, and all experts.
    pub shared_bytes: f64,
    pub expert_bytes: f64,
    /// Products for a token: of all layers with the experts it is sent to, and of the head.
    layer_products: f64,
    head_products: f64,
    /// The share of the experts that one token is sent to.
    active: f64,
    /// Bytes of keys and values for one position of one layer.
    position_bytes: f64,
    /// Layers that see all positions, and those that see a window.
    layers: usize,
    windowed_layers: usize,
    window: usize,
}

impl Cost {
    /// `exact` keeps keys and values in f32.
    pub fn of(checkpoint: &Checkpoint, exact: bool) -> Result<Cost, Failure> {
        let config = text_config(checkpoint.config());
        let mut cost = Cost::of_attention(config, if exact { 4 } else { 2 });
        let unused = mlx::models::find(checkpoint)?.unused;
        let tied = !checkpoint.tensors().any(|tensor| tensor.name.contains("lm_head"));
        for tensor in checkpoint.tensors().filter(|tensor| !unused.iter().any(|part| tensor.name.contains(part))) {
            let (bytes, products) = (tensor.len as f64, products(checkpoint.config(), tensor) as f64);
            let name = tensor.name.as_str();
            if name.contains("lm_head") || tied && name.contains("embed_tokens") {
                cost.shared_bytes += bytes;
                cost.head_products += products;
            } else if name.contains(".experts.") || name.contains(".switch_mlp.") {
                cost.expert_bytes += bytes;
                cost.layer_products += products * cost.active;
            } else if !name.contains("embed_tokens") {
                cost.shared_bytes += bytes;
                cost.layer_products += products;
            }
        }
        Ok(cost)
    }

    fn of_attention(config: &Value, number_bytes: usize) -> Cost {
        let count = |key: &str| config[key].as_u64().map(|count| count as usize);
        let layers = count("num_hidden_layers").unwrap_or(0);
        let heads = count("num_attention_heads").unwrap_or(0);
        let kv_heads = count("num_key_value_heads").unwrap_or(heads);
        let dim = count("head_dim").unwrap_or(count("hidden_size").unwrap_or(0) / heads.max(1));
        let window = count("sliding_window").filter(|_| config["use_sliding_window"] != false);
        let (full, windowed) = match (config["layer_types"].as_array(), count("full_attention_interval")) {
            (Some(types), _) => {
                let of = |kind: &str| types.iter().filter(|name| *name == kind).count();
                (of("full_attention"), of("sliding_attention"))
            }
            (None, Some(interval)) => (layers / interval, 0),
            (None, None) if window.is_some() => (0, layers),
            (None, None) => (layers, 0),
        };
        let experts = ["num_experts", "num_local_experts", "n_routed_experts"].into_iter().find_map(count);
        let active = match (count("num_experts_per_tok"), experts) {
            (Some(active), Some(experts)) => active as f64 / experts as f64,
            _ => 1.0,
        };
        Cost {
            shared_bytes: 0.0,
            expert_bytes: 0.0,
            layer_products: 0.0,
            head_products: 0.0,
            active,
            position_bytes: (2 * kv_heads * dim * number_bytes) as f64,
            layers: full,
            windowed_layers: windowed,
            window: window.unwrap_or(usize::MAX),
        }
    }

    /// Bytes read for each token of `batch` answers written together, each behind `context` tokens.
    pub fn bytes_to_write(&self, batch: usize, context: usize) -> f64 {
        // The tokens choose their experts each on its own.
        let chosen = 1.0 - (1.0 - self.active).powi(batch as i32);
        (self.shared_bytes + self.expert_bytes * chosen) / batch as f64 + self.kv_bytes(context)
    }

    /// Bytes of the keys and values that one token looks at.
    pub fn kv_bytes(&self, context: usize) -> f64 {
        self.position_bytes * (self.layers * context + self.windowed_layers * context.min(self.window)) as f64
    }

    /// Products for each token of a prompt of so many.
    pub fn products_to_read(&self, length: usize) -> f64 {
        self.layer_products + self.head_products / length as f64
    }

    /// Products for a token of an answer.
    pub fn products_to_write(&self) -> f64 {
        self.layer_products + self.head_products
    }
}

/// The number of token ids.
///
/// # Errors
/// The checkpoint has no embedding table.
pub fn vocabulary(checkpoint: &Checkpoint) -> Result<usize, Failure> {
    let table = checkpoint.tensors().find(|tensor| tensor.name.ends_with("embed_tokens.weight"));
    table
        .map(|table| table.shape[0])
        .ok_or_else(|| Failure::new("the model has no table embed_tokens to take tokens of"))
}

/// A model that sees and hears keeps the settings of its language part apart.
fn text_config(config: &Value) -> &Value {
    config.get("text_config").filter(|text| text.is_object()).unwrap_or(config)
}

/// The numbers that a matrix, or a stack of them, has; 0 for anything else.
fn products(config: &Value, tensor: &Tensor) -> usize {
    let Some(path) = tensor.name.strip_suffix(".weight").filter(|_| tensor.shape.len() > 1) else { return 0 };
    let stored: usize = tensor.shape.iter().product();
    if tensor.dtype != Dtype::U32 {
        return stored;
    }
    // MLX's quantised weights lie in words of 32 bits.
    let quantization = &config["quantization"];
    let bits = quantization[path]["bits"].as_u64().or_else(|| quantization["bits"].as_u64()).unwrap_or(32);
    stored * 32 / bits.max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(config: &Value) -> Cost {
        Cost::of_attention(config, 2)
    }

    #[test]
    fn keys_and_values() {
        let config = serde_json::json!({"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64});
        assert_eq!(cost(&config).kv_bytes(100), (100 * 4 * 2 * 2 * 64 * 2) as f64);
        let with = |key: &str, value: Value| {
            let mut config = config.clone();
            config[key] = value;
            cost(&config).kv_bytes(100) as usize / (2 * 2 * 64 * 2)
        };
        assert_eq!(with("full_attention_interval", 4.into()), 100);
        assert_eq!(with("sliding_window", 10.into()), 40);
        assert_eq!(with("layer_types", serde_json::json!(["full_attention", "linear_attention"])), 100);
        assert_eq!(with("num_key_value_heads", Value::Null), 1600);
    }

    #[test]
    fn experts_are_read_once_however_many_tokens_choose_them() {
        let config = serde_json::json!({"num_experts": 8, "num_experts_per_tok": 2});
        let cost = Cost { shared_bytes: 100.0, expert_bytes: 800.0, ..cost(&config) };
        assert_eq!(cost.bytes_to_write(1, 0), 300.0);
        assert_eq!(cost.bytes_to_write(2, 0), (100.0 + 800.0 * (1.0 - 0.75 * 0.75)) / 2.0);
    }
}
