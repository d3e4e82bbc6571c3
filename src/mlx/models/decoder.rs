//! What text models have in common: an embedding, blocks one after the other, a last norm and a head.

use mlx_rs::Array;

use super::Model;
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    nn::{Embedding, Heads, Layer, Linear, RmsNorm, State},
    weights::Weights,
};

/// One layer of a model.
pub(super) trait Block {
    /// Hidden states `[tokens, dim]` behind the block. Appends to the layer's part of `states`.
    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error>;

    /// What the layer remembers of no tokens.
    fn fresh(&self) -> Result<Layer, Error>;
}

/// A model of such blocks.
pub(super) struct Decoder<B> {
    embedding: Embedding,
    blocks: Vec<B>,
    norm: RmsNorm,
    head: Linear,
    context: usize,
    vocabulary: usize,
}

impl<B: Block> Decoder<B> {
    /// The model at `model` with the head at `head`, or the embedding's where they are tied. `norm` loads the last
    /// norm, `block` the layer of an index.
    pub fn load(
        model: &Weights,
        head: &Weights,
        config: Config,
        norm: impl Fn(&Weights) -> Result<RmsNorm, Error>,
        block: impl Fn(&Weights, usize) -> Result<B, Error>,
    ) -> Result<Decoder<B>, Error> {
        let (dim, vocabulary) = (config.count("hidden_size")?, config.count("vocab_size")?);
        let embedding = Embedding::load(&model.at("embed_tokens"), vocabulary, dim)?;
        let head = embedding.head(head, config.flag("tie_word_embeddings")?, dim, vocabulary)?;
        let layers = model.at("layers");
        let block = |index| block(&layers.at(index), index);
        Ok(Decoder {
            blocks: (0..config.count("num_hidden_layers")?).map(block).collect::<Result<_, Error>>()?,
            norm: norm(&model.at("norm"))?,
            context: config.count("max_position_embeddings")?,
            embedding,
            head,
            vocabulary,
        })
    }
}

impl<B: Block> Model for Decoder<B> {
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
        Ok(State { length: 0, layers: self.blocks.iter().map(Block::fresh).collect::<Result<_, Error>>()? })
    }

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}

/// The attention heads of a config.
///
/// # Errors
/// Query heads that cannot share the key heads evenly.
pub(super) fn heads(config: Config) -> Result<Heads, Error> {
    let (dim, query) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    let kv = config.optional_count("num_key_value_heads")?.unwrap_or(query);
    if kv == 0 || !query.is_multiple_of(kv) {
        return Err(Error(format!("config.json: {query} attention heads do not share {kv} key heads")));
    }
    Ok(Heads { query, kv, dim: config.optional_count("head_dim")?.unwrap_or(dim / query) })
}
