//! What text models have in common: an embedding, blocks one after the other, a last norm and a head.

use std::rc::Rc;

use mlx_rs::Array;

use super::{Build, Built, Model};
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    cost::{Cost, Parts, Sizes, Tally},
    nn::{Attention, Embedding, Heads, Layer, Linear, RmsNorm, State, Table},
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

/// How the parts of an architecture are loaded.
pub(super) struct Plan<B> {
    /// Finds the text model in a checkpoint.
    pub place: for<'a> fn(&'a Source<'a>) -> Place<'a>,
    /// Loads the last norm.
    pub norm: fn(&Place) -> Result<RmsNorm, Error>,
    /// Loads the block of an index.
    pub block: fn(&Place, usize) -> Result<B, Error>,
}

impl<B> Plan<B> {
    /// `model` and `lm_head` at the top, and a plain norm.
    pub const fn of(block: fn(&Place, usize) -> Result<B, Error>) -> Plan<B> {
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

/// Such a model on its way into memory: first the embedding, then the blocks, then the head.
struct Loading<B> {
    plan: Plan<B>,
    table: Table,
    embedding: Option<Embedding>,
    blocks: Vec<B>,
    head: Table,
    /// What was read when the embedding was loaded, and when the blocks were.
    marks: [Tally; 2],
}

/// A model of which nothing is loaded.
pub(super) fn begin<B: Block + 'static>(plan: Plan<B>) -> Box<dyn Build> {
    let (table, head) = (Table::default(), Table::default());
    Box::new(Loading { plan, table, embedding: None, blocks: Vec::new(), head, marks: Default::default() })
}

impl<B: Block + 'static> Build for Loading<B> {
    fn step(&mut self, source: &Source) -> Result<Option<Built>, Error> {
        let place = (self.plan.place)(source);
        let config = place.config;
        let (dim, vocabulary) = (config.count("hidden_size")?, config.count("vocab_size")?);
        let Some(embedding) = &self.embedding else {
            let table = self.table.step(&place.model.at("embed_tokens"), vocabulary, dim)?;
            self.embedding = table.map(Embedding::of);
            self.marks = [source.tally(); 2];
            return Ok(None);
        };
        if self.blocks.len() < config.count("num_hidden_layers")? {
            self.blocks.push((self.plan.block)(&place, self.blocks.len())?);
            self.marks[1] = source.tally();
            return Ok(None);
        }
        let tied = config.flag("tie_word_embeddings")?.unwrap_or(!place.head.has("weight"));
        let head = if tied {
            // A stored copy of a tied head stays unread.
            place.head.ignore();
            embedding.head()?
        } else {
            let Some(head) = self.head.step(&place.head, vocabulary, dim)? else { return Ok(None) };
            Linear::of(head, place.head.bias(vocabulary)?)?
        };
        let norm = (self.plan.norm)(&place)?;
        let [embedding_end, layers_end] = self.marks;
        let end = source.tally();
        let parts = Parts {
            embedding: embedding_end,
            // The last norm goes with whatever is last.
            layers: (if tied { end } else { layers_end }).since(embedding_end),
            head: (!tied).then(|| end.since(layers_end)),
            attention: self.blocks.iter().filter_map(B::attention).map(Attention::cost).collect(),
        };
        let sizes = Sizes { context: config.count("max_position_embeddings")?, vocabulary, dim };
        let cost = Cost::new(parts, sizes);
        let blocks = std::mem::take(&mut self.blocks);
        let embedding = self.embedding.take().expect("it was looked at above, so that its absence is a bug");
        Ok(Some(Built::Text(Rc::new(Decoder { embedding, blocks, norm, head, cost }))))
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
