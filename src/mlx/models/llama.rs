//! Llama (Touvron et al. 2023) and the models of its shape: Mistral, SmolLM2 and many others.

use super::{
    Architecture, Kind,
    decoder::{self, AttentionBlock, Place, Plan, heads},
};
use crate::mlx::{
    Error,
    config::Config,
    nn::{Attention, AttentionParts, FeedForward, GatedMlp, Linear, RmsNorm, Rope, qkv},
};

/// The row of the table.
pub const ARCHITECTURE: Architecture = Architecture {
    names: &["llama", "mistral"],
    kind: Kind::Text,
    // Old checkpoints store the frequencies that the config says anyway.
    unused: &["rotary_emb.inv_freq"],
    load: |source| decoder::load(source, Plan::of(|place, index| Box::pin(load(place, index)))),
};

async fn load(place: &Place<'_>, index: usize) -> Result<AttentionBlock, Error> {
    let (at, config, heads) = (place.layer(index), place.config, heads(place.config)?);
    let (dim, eps) = (config.count("hidden_size")?, config.rms_norm_eps()?);
    let projections = at.at("self_attn");
    let attention = Attention::new(AttentionParts {
        heads,
        norm: RmsNorm::load(&at.at("input_layernorm"), dim, eps)?,
        projections: qkv(&projections, dim, heads).await?,
        head_norms: None,
        rope: rope(place, heads.dim)?,
        window: window(config, index)?,
        gated: false,
        output: Linear::load(&projections.at("o_proj"), heads.query * heads.dim, dim).await?,
        backend: at.backend(),
    })?;
    let norm = RmsNorm::load(&at.at("post_attention_layernorm"), dim, eps)?;
    let mlp = GatedMlp::load(&at.at("mlp"), norm, dim, config.count("intermediate_size")?).await?;
    Ok(AttentionBlock { attention, mlp: FeedForward::Dense(mlp) })
}

/// The config's, slowed by what Llama 3's GGUFs store of it.
fn rope(place: &Place, dim: usize) -> Result<Rope, Error> {
    let rotated = place.config.number("partial_rotary_factor")?.unwrap_or(1.0);
    let rope = Rope::load(place.config, (dim as f64 * rotated) as usize)?;
    let factors = place.model.root().at("rope_freqs");
    if factors.has("weight") { rope.slowed(&factors.floats("weight")?.0) } else { Ok(rope) }
}

/// Mistral's window is for all layers, newer configs name the layers that have one.
fn window(config: Config, index: usize) -> Result<Option<usize>, Error> {
    let window = config.optional_count("sliding_window")?;
    Ok(match config.words("layer_types") {
        Some(types) if types.get(index) == Some(&"sliding_attention") => window,
        Some(_) => None,
        None if config.text("model_type") == Some("mistral") => window,
        None => None,
    })
}
