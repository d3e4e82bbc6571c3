//! What text models have in common: an embedding, blocks one after the other, a last norm and a head.

use std::rc::Rc;

use mlx_rs::Array;

use super::{Built, Model};
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    cost::{Cost, Parts, Sizes},
    nn::{Attention, Embedding, FeedForward, Heads, Layer, Linear, RmsNorm, State, load_one},
    steps::Steps,
    weights::{Source, Weights},
};

/// One layer of a model.
pub(super) trait Block {
    /// Hidden states `[tokens, dim]` behind the block. Appends to the layer's part of `states`.
    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error>;

    /// What the layer remembers of no tokens.
    fn fresh(&self) -> Result<Layer, Error>;

    /// Its attention, if it has keys and values.
    fn attention(&self) -> Option<&Attention>;
}

/// The usual layer: attention, then one network for all tokens or experts.
pub(super) struct AttentionBlock {
    pub attention: Attention,
    pub mlp: FeedForward,
}

impl Block for AttentionBlock {
    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        self.mlp.forward(&self.attention.forward(x, batch, states, layer)?)
    }

    fn fresh(&self) -> Result<Layer, Error> {
        Ok(self.attention.fresh())
    }

    fn attention(&self) -> Option<&Attention> {
        Some(&self.attention)
    }
}

/// Where a text model is in a checkpoint.
pub(super) struct Place<'a> {
    /// The part with `embed_tokens`, `layers` and `norm`.
    pub model: Weights<'a>,
    /// The output head, where it is not the embedding.
    pub head: Weights<'a>,
    /// The text model's settings.
    pub config: Config<'a>,
}

impl<'a> Place<'a> {
    /// The layer of an index.
    pub fn layer(&self, index: usize) -> Weights<'a> {
        self.model.at("layers").at(index)
    }
}

/// Loads the layer of an index.
type LoadBlock<B> = for<'a> fn(&'a Place<'a>, usize) -> Steps<'a, B>;

/// How the parts of an architecture are loaded.
pub(super) struct Plan<B> {
    /// Finds the text model in a checkpoint.
    pub place: for<'a> fn(&'a Source<'a>) -> Place<'a>,
    /// Loads the last norm.
    pub norm: fn(&Place) -> Result<RmsNorm, Error>,
    /// Loads the block of an index.
    pub block: LoadBlock<B>,
}

impl<B> Plan<B> {
    /// `model` and `lm_head` at the top, and a plain norm.
    pub const fn of(block: LoadBlock<B>) -> Plan<B> {
        Plan {
            place: |source| {
                let root = source.root();
                Place { model: root.at("model"), head: root.at("lm_head"), config: source.config() }
            },
            norm: |place| {
                let (dim, eps) = (place.config.count("hidden_size")?, place.config.rms_norm_eps()?);
                RmsNorm::load(&place.model.at("norm"), dim, eps)
            },
            block,
        }
    }
}

/// A model of such blocks.
struct Decoder<B> {
    embedding: Embedding,
    blocks: Vec<B>,
    norm: RmsNorm,
    head: Linear,
    cost: Cost,
}

/// Loads such a model: first the embedding, then the blocks, then the head.
pub(super) fn load<'a, B: Block + 'static>(source: &'a Source<'a>, plan: Plan<B>) -> Steps<'a, Built> {
    Box::pin(async move {
        let place = (plan.place)(source);
        let config = place.config;
        let (dim, vocabulary) = (config.count("hidden_size")?, config.count("vocab_size")?);
        let embedding = Embedding::of(load_one(&place.model.at("embed_tokens"), vocabulary, dim).await?);
        let embedding_end = source.tally();
        let mut blocks = Vec::new();
        for index in 0..config.count("num_hidden_layers")? {
            blocks.push((plan.block)(&place, index).await?);
        }
        let layers_end = source.tally();
        let tied = config.flag("tie_word_embeddings")?.unwrap_or(!place.head.has("weight"));
        let head = if tied {
            // A stored copy of a tied head stays unread.
            place.head.ignore();
            embedding.head()?
        } else {
            Linear::load(&place.head, dim, vocabulary).await?
        };
        let norm = (plan.norm)(&place)?;
        let end = source.tally();
        let parts = Parts {
            embedding: embedding_end,
            // The last norm goes with whatever is last.
            layers: (if tied { end } else { layers_end }).since(embedding_end),
            head: (!tied).then(|| end.since(layers_end)),
            attention: blocks.iter().filter_map(B::attention).map(Attention::cost).collect(),
        };
        let sizes = Sizes { context: config.count("max_position_embeddings")?, vocabulary, dim };
        let cost = Cost::new(parts, sizes);
        let model: Rc<dyn Model> = Rc::new(Decoder { embedding, blocks, norm, head, cost });
        Ok(Built::Text(model))
    })
}

impl<B: Block> Model for Decoder<B> {
    fn embed(&self, tokens: &Array) -> Result<Array, Error> {
        self.embedding.forward(tokens)
    }

    fn layers(&self) -> usize {
        self.blocks.len()
    }

    fn layer(&self, index: usize, x: &Array, batch: &Batch, states: &mut [&mut State]) -> Result<Array, Error> {
        self.blocks[index].forward(x, batch, states, index)
    }

    fn norm(&self, hidden: &Array) -> Result<Array, Error> {
        self.norm.forward(hidden)
    }

    fn head(&self, hidden: &Array) -> Result<Array, Error> {
        self.head.forward(&self.norm.forward(hidden)?)
    }

    fn fresh(&self) -> Result<State, Error> {
        Ok(State { length: 0, layers: self.blocks.iter().map(Block::fresh).collect::<Result<_, Error>>()? })
    }

    fn cost(&self) -> &Cost {
        &self.cost
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
