//! Qwen 3 with a mixture of experts in most or all layers.

use serde_json::Value;

use super::{
    Architecture, Kind,
    decoder::{self, Plan},
    qwen3,
};
use crate::mlx::{
    config::Config,
    nn::{FeedForward, Mixture, Moe, RmsNorm},
    steps::Steps,
    weights::Weights,
};

/// The row of the table.
pub const ARCHITECTURE: Architecture = Architecture {
    names: &["qwen3_moe"],
    kind: Kind::Text,
    unused: &[],
    load: |source| decoder::load(source, Plan::of(|place, index| Box::pin(qwen3::load(place, index, feed_forward)))),
};

/// The layers in `mlp_only_layers`, and those that `decoder_sparse_step` passes over, have no experts.
fn feed_forward<'a>(at: &'a Weights<'a>, norm: RmsNorm, config: Config<'a>, index: usize) -> Steps<'a, FeedForward> {
    Box::pin(async move {
        let step = config.optional_count("decoder_sparse_step")?.unwrap_or(1);
        let dense = config.0.get("mlp_only_layers").and_then(Value::as_array);
        let dense = dense.is_some_and(|layers| layers.contains(&Value::from(index)));
        if dense || !(index + 1).is_multiple_of(step) {
            return qwen3::dense(at, norm, config, index).await;
        }
        let mixture = Mixture {
            experts: config.count("num_experts")?,
            top: config.count("num_experts_per_tok")?,
            hidden: config.count("moe_intermediate_size")?,
            normed: config.flag("norm_topk_prob")?.unwrap_or(false),
        };
        Moe::load(at, norm, config.count("hidden_size")?, mixture).await.map(FeedForward::Experts)
    })
}
