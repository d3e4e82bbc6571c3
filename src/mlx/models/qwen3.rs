//! Qwen 3 (Yang et al. 2025): a llama whose queries and keys are normed head by head. `qwen3_moe.rs`
//! puts experts in the place of its feed-forward blocks.

use super::{
    Architecture, Kind,
    decoder::{self, AttentionBlock, Place, Plan, heads},
};
use crate::mlx::{
    Error,
    config::Config,
    nn::{Attention, AttentionParts, FeedForward, GatedMlp, Linear, RmsNorm, Rope, qkv},
    steps::Steps,
    weights::Weights,
};

/// The row of the table.
pub const ARCHITECTURE: Architecture = Architecture {
    names: &["qwen3"],
    kind: Kind::Text,
    unused: &[],
    load: |source| decoder::load(source, Plan::of(|place, index| Box::pin(load(place, index, dense)))),
};

/// Loads the feed-forward part at a place of the layer of an index, behind its norm.
type LoadMlp = for<'a> fn(&'a Weights<'a>, RmsNorm, Config<'a>, usize) -> Steps<'a, FeedForward>;

/// One network for all tokens.
pub(super) fn dense<'a>(at: &'a Weights<'a>, norm: RmsNorm, config: Config<'a>, _: usize) -> Steps<'a, FeedForward> {
    Box::pin(async move {
        let (dim, hidden) = (config.count("hidden_size")?, config.count("intermediate_size")?);
        GatedMlp::load(at, norm, dim, hidden).await.map(FeedForward::Dense)
    })
}

/// The layer of an index, whose feed-forward part `mlp` loads.
pub(super) async fn load(place: &Place<'_>, index: usize, mlp: LoadMlp) -> Result<AttentionBlock, Error> {
    let (at, config) = (place.layer(index), place.config);
    let (dim, eps) = (config.count("hidden_size")?, config.rms_norm_eps()?);
    let attention = attention(&at, config, index).await?;
    let norm = RmsNorm::load(&at.at("post_attention_layernorm"), dim, eps)?;
    Ok(AttentionBlock { attention, mlp: mlp(&at.at("mlp"), norm, config, index).await? })
}

/// The layers from `max_window_layers` on have a window where the config wants one at all.
fn window(config: Config, index: usize) -> Result<Option<usize>, Error> {
    let first = config.optional_count("max_window_layers")?.unwrap_or(0);
    match config.flag("use_sliding_window")? {
        Some(true) if index >= first => config.optional_count("sliding_window"),
        _ => Ok(None),
    }
}

async fn attention(at: &Weights<'_>, config: Config<'_>, index: usize) -> Result<Attention, Error> {
    let (dim, eps, heads) = (config.count("hidden_size")?, config.rms_norm_eps()?, heads(config)?);
    let norm = RmsNorm::load(&at.at("input_layernorm"), dim, eps)?;
    let at = at.at("self_attn");
    let head_norm = |name: &str| RmsNorm::load(&at.at(name), heads.dim, eps);
    Attention::new(AttentionParts {
        heads,
        norm,
        projections: qkv(&at, dim, heads).await?,
        head_norms: Some([head_norm("q_norm")?, head_norm("k_norm")?]),
        rope: Rope::load(config, heads.dim)?,
        window: window(config, index)?,
        gated: false,
        output: Linear::load(&at.at("o_proj"), heads.query * heads.dim, dim).await?,
        backend: at.backend(),
    })
}
