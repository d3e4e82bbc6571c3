//! Qwen 3 (Yang et al. 2025): a llama whose queries and keys are normed head by head. `qwen3_moe.rs`
//! puts experts in the place of its feed-forward blocks.

use mlx_rs::Array;

use super::{
    Architecture,
    decoder::{self, Decoder, heads},
};
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    nn::{Attention, AttentionParts, FeedForward, GatedMlp, Heads, Layer, Linear, RmsNorm, Rope, State, qkv},
    weights::{Source, Weights},
};

pub const ARCHITECTURE: Architecture = Architecture {
    names: &["qwen3"],
    unused: &[],
    load: |source, config| {
        let mlp = |at: &Weights, norm, _| {
            let (dim, hidden) = (config.count("hidden_size")?, config.count("intermediate_size")?);
            GatedMlp::load(at, norm, dim, hidden).map(FeedForward::Dense)
        };
        Ok(Box::new(load(source, config, mlp)?))
    },
};

pub(super) struct Block {
    attention: Attention,
    mlp: FeedForward,
}

/// `mlp` loads the feed-forward part of the layer of an index, behind its norm.
pub(super) fn load(
    source: &Source,
    config: Config,
    mlp: impl Fn(&Weights, RmsNorm, usize) -> Result<FeedForward, Error>,
) -> Result<Decoder<Block>, Error> {
    let (root, dim, eps) = (source.root(), config.count("hidden_size")?, config.rms_norm_eps()?);
    let heads = heads(config)?;
    let rope = Rope::load(config, heads.dim)?;
    let norm = |at: &Weights| RmsNorm::load(at, dim, eps);
    let block = |at: &Weights, index| {
        let attention = attention(at, config, heads, rope.clone(), index)?;
        Ok(Block { attention, mlp: mlp(&at.at("mlp"), norm(&at.at("post_attention_layernorm"))?, index)? })
    };
    Decoder::load(&root.at("model"), &root.at("lm_head"), config, norm, block)
}

/// The layers from `max_window_layers` on have a window where the config wants one at all.
fn window(config: Config, index: usize) -> Result<Option<usize>, Error> {
    let first = config.optional_count("max_window_layers")?.unwrap_or(0);
    match config.flag("use_sliding_window")? {
        Some(true) if index >= first => config.optional_count("sliding_window"),
        _ => Ok(None),
    }
}

fn attention(at: &Weights, config: Config, heads: Heads, rope: Rope, index: usize) -> Result<Attention, Error> {
    let (dim, eps, backend) = (config.count("hidden_size")?, config.rms_norm_eps()?, at.backend());
    let norm = RmsNorm::load(&at.at("input_layernorm"), dim, eps)?;
    let at = at.at("self_attn");
    let head_norm = |name: &str| RmsNorm::load(&at.at(name), heads.dim, eps);
    Attention::new(AttentionParts {
        heads,
        norm,
        projections: qkv(&at, dim, heads, |matrix| matrix)?,
        head_norms: Some([head_norm("q_norm")?, head_norm("k_norm")?]),
        rope,
        window: window(config, index)?,
        gated: false,
        output: Linear::load(&at.at("o_proj"), heads.query * heads.dim, dim)?,
        backend,
    })
}

impl decoder::Block for Block {
    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        self.mlp.forward(&self.attention.forward(x, batch, states, layer)?)
    }

    fn fresh(&self) -> Result<Layer, Error> {
        Ok(self.attention.fresh())
    }
}
