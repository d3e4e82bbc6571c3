//! Qwen 3 (Yang et al. 2025): a llama whose queries and keys are normed head by head. `qwen3_moe.rs`
//! puts experts in the place of its feed-forward blocks.

use mlx_rs::Array;

use super::{Architecture, Model};
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    nn::{Attention, AttentionParts, Embedding, FeedForward, GatedMlp, Heads, Linear, RmsNorm, Rope, State, qkv},
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
        Ok(Box::new(Qwen3::load(source, config, mlp)?))
    },
};

pub(super) struct Qwen3 {
    embedding: Embedding,
    blocks: Vec<Block>,
    norm: RmsNorm,
    head: Linear,
    context: usize,
    vocabulary: usize,
}

struct Block {
    attention: Attention,
    mlp: FeedForward,
}

impl Qwen3 {
    /// `mlp` loads the feed-forward part of the layer of an index, behind its norm.
    pub fn load(
        source: &Source,
        config: Config,
        mlp: impl Fn(&Weights, RmsNorm, usize) -> Result<FeedForward, Error>,
    ) -> Result<Qwen3, Error> {
        let (dim, vocabulary) = (config.count("hidden_size")?, config.count("vocab_size")?);
        let root = source.root();
        let model = root.at("model");
        let embedding = Embedding::load(&model.at("embed_tokens"), vocabulary, dim)?;
        let tied = config.flag("tie_word_embeddings")?;
        let head = embedding.head(&root.at("lm_head"), tied, dim, vocabulary)?;
        let heads = heads(config)?;
        let rope = Rope::load(config, heads.dim)?;
        let eps = config.rms_norm_eps()?;
        let block = |index| {
            let at = model.at("layers").at(index);
            let attention = attention(&at, config, heads, rope.clone(), index)?;
            let norm = RmsNorm::load(&at.at("post_attention_layernorm"), dim, eps)?;
            Ok(Block { attention, mlp: mlp(&at.at("mlp"), norm, index)? })
        };
        Ok(Qwen3 {
            blocks: (0..config.count("num_hidden_layers")?).map(block).collect::<Result<_, Error>>()?,
            norm: RmsNorm::load(&model.at("norm"), dim, config.rms_norm_eps()?)?,
            context: config.count("max_position_embeddings")?,
            embedding,
            head,
            vocabulary,
        })
    }
}

fn heads(config: Config) -> Result<Heads, Error> {
    let (dim, query) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    let kv = config.optional_count("num_key_value_heads")?.unwrap_or(query);
    if !query.is_multiple_of(kv) {
        return Err(Error(format!("config.json: {query} attention heads do not share {kv} key heads")));
    }
    Ok(Heads { query, kv, dim: config.optional_count("head_dim")?.unwrap_or(dim / query) })
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

impl Block {
    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        self.mlp.forward(&self.attention.forward(x, batch, states, layer)?)
    }
}

impl Model for Qwen3 {
    fn forward(&self, batch: &Batch, states: &mut [&mut State]) -> Result<Array, Error> {
        let mut x = self.embedding.forward(&batch.tokens)?;
        for (layer, block) in self.blocks.iter().enumerate() {
            x = block.forward(&x, batch, states, layer)?;
        }
        Ok(x)
    }

    fn head(&self, hidden: &Array) -> Result<Array, Error> {
        self.head.forward(&self.norm.forward(hidden)?)
    }

    fn fresh(&self) -> Result<State, Error> {
        let layers = self.blocks.iter().map(|block| block.attention.fresh());
        Ok(State { length: 0, layers: layers.collect() })
    }

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}
