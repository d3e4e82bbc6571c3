//! Llama (Touvron et al. 2023) and the models of its shape: Mistral, SmolLM2 and many others.

use mlx_rs::Array;

use super::{
    Architecture,
    decoder::{self, Decoder, heads},
};
use crate::{
    checkpoint::Format,
    mlx::{
        Error,
        batch::Batch,
        config::Config,
        nn::{Attention, AttentionParts, GatedMlp, Heads, Layer, Linear, RmsNorm, Rope, State, qkv},
        quant::Matrix,
        weights::{Source, Weights},
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    names: &["llama", "mistral"],
    // Old checkpoints store the frequencies that the config says anyway.
    unused: &["rotary_emb.inv_freq"],
    load: |source, config| Ok(Box::new(load(source, config)?)),
};

struct Block {
    attention: Attention,
    mlp: GatedMlp,
}

fn load(source: &Source, config: Config) -> Result<Decoder<Block>, Error> {
    let root = source.root();
    let shared = Shared::load(source, config)?;
    let norm = |at: &Weights| RmsNorm::load(at, config.count("hidden_size")?, config.rms_norm_eps()?);
    Decoder::load(&root.at("model"), &root.at("lm_head"), config, norm, |at, index| Block::load(at, &shared, index))
}

/// What all blocks are loaded with.
struct Shared<'a> {
    config: Config<'a>,
    heads: Heads,
    rope: Rope,
    gguf: bool,
}

impl<'a> Shared<'a> {
    fn load(source: &Source, config: Config<'a>) -> Result<Shared<'a>, Error> {
        let heads = heads(config)?;
        let rotated = config.number("partial_rotary_factor")?.unwrap_or(1.0);
        let mut rope = Rope::load(config, (heads.dim as f64 * rotated) as usize)?;
        let factors = source.root().at("rope_freqs");
        if factors.has("weight") {
            rope = rope.slowed(&factors.floats("weight")?.0)?;
        }
        Ok(Shared { config, heads, rope, gguf: source.checkpoint.format() == Format::Gguf })
    }
}

impl Block {
    fn load(at: &Weights, shared: &Shared, index: usize) -> Result<Block, Error> {
        let Shared { config, heads, gguf, .. } = *shared;
        let (dim, query) = (config.count("hidden_size")?, heads.query);
        let attention = at.at("self_attn");
        let eps = config.rms_norm_eps()?;
        // GGUF stores the rows of a head pair by pair; here they are two halves.
        let order = |matrix: Matrix| match gguf {
            true => matrix.rows_from(|row| paired(row, heads.dim)),
            false => matrix,
        };
        let attention = Attention::new(AttentionParts {
            heads,
            norm: RmsNorm::load(&at.at("input_layernorm"), dim, eps)?,
            projections: qkv(&attention, dim, heads, order)?,
            head_norms: None,
            rope: shared.rope.clone(),
            window: window(config, index)?,
            gated: false,
            output: Linear::load(&attention.at("o_proj"), query * heads.dim, dim)?,
            backend: at.backend(),
        })?;
        let norm = RmsNorm::load(&at.at("post_attention_layernorm"), dim, eps)?;
        let mlp = GatedMlp::load(&at.at("mlp"), norm, dim, config.count("intermediate_size")?)?;
        Ok(Block { attention, mlp })
    }
}

impl decoder::Block for Block {
    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        self.mlp.forward(&self.attention.forward(x, batch, states, layer)?)
    }

    fn fresh(&self) -> Result<Layer, Error> {
        Ok(self.attention.fresh())
    }
}

/// Where GGUF keeps the row that belongs at `row`, for heads of `dim` features.
fn paired(row: usize, dim: usize) -> usize {
    let (head, within) = (row / dim, row % dim);
    head * dim + 2 * (within % (dim / 2)) + within / (dim / 2)
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
