//! BERT (Devlin et al. 2018) as an encoder: every token sees all of its text, and the hidden states behind the last layer
//! are what it is for. MiniLM, E5, BGE and many other models of embeddings have this shape.

use std::rc::Rc;

use mlx_rs::Array;

use super::{Architecture, Built, Kind, Reader};
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    cost::{Cost, Parts, Sizes, Tally},
    nn::{Activation, Embedding, EncoderAttention, Heads, Joined, LayerNorm, Linear, load_one},
    steps::{Steps, pause},
    weights::{Source, Weights},
};

/// The row of the table.
pub const ARCHITECTURE: Architecture = Architecture {
    names: &["bert"],
    kind: Kind::Embedding,
    // A head for classification, heads of pretraining, and the numbers from 0 on.
    unused: &["pooler.", "cls.", "position_ids"],
    load: |source| Box::pin(load(source)),
};

struct Bert {
    words: Embedding,
    /// With the embedding of the first token type in each: single texts have no other.
    positions: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
    cost: Cost,
}

struct Layer {
    qkv: Joined,
    attention: EncoderAttention,
    attention_output: Linear,
    attention_norm: LayerNorm,
    up: Linear,
    activation: Activation,
    down: Linear,
    norm: LayerNorm,
}

/// Alone, or inside a model of pretraining.
fn place<'a>(source: &'a Source<'a>) -> Weights<'a> {
    let inside = source.root().at("bert");
    if inside.at("embeddings.word_embeddings").has("weight") { inside } else { source.root() }
}

fn layer_norm(at: &Weights, config: Config) -> Result<LayerNorm, Error> {
    let eps = config.number("layer_norm_eps")?.unwrap_or(1e-12);
    LayerNorm::load(&at.at("LayerNorm"), config.count("hidden_size")?, eps as f32)
}

async fn load(source: &Source<'_>) -> Result<Built, Error> {
    let (at, config) = (place(source), source.config());
    let (dim, vocabulary) = (config.count("hidden_size")?, config.count("vocab_size")?);
    let embeddings = at.at("embeddings");
    let words = Embedding::of(load_one(&embeddings.at("word_embeddings"), vocabulary, dim).await?);
    let words_end = source.tally();
    let mut layers = Vec::new();
    for index in 0..config.count("num_hidden_layers")? {
        layers.push(Layer::load(&at.at("encoder.layer").at(index), config).await?);
    }
    let positions = positions(&embeddings, config)?;
    let norm = layer_norm(&embeddings, config)?;
    let parts = Parts {
        embedding: words_end,
        layers: source.tally().since(words_end),
        head: Some(Tally::default()),
        attention: Vec::new(),
    };
    let sizes = Sizes { context: config.count("max_position_embeddings")?, vocabulary, dim };
    let cost = Cost::new(parts, sizes);
    Ok(Built::Reader(Rc::new(Bert { words, positions, norm, layers, cost })))
}

/// The position table, with the first token type added to each row.
fn positions(at: &Weights, config: Config) -> Result<Embedding, Error> {
    if let Some(kind) = config.text("position_embedding_type").filter(|kind| *kind != "absolute") {
        return Err(Error(format!("config.json: position_embedding_type {kind} is not supported (absolute is)")));
    }
    let (dim, positions) = (config.count("hidden_size")?, config.count("max_position_embeddings")?);
    let table = |name: &str, rows: usize| -> Result<Vec<f32>, Error> {
        let (values, shape) = at.at(name).floats("weight")?;
        if shape == [rows, dim] {
            return Ok(values);
        }
        Err(Error(format!("{}.{name}.weight: expected [{rows}, {dim}], found {shape:?}", at.path())))
    };
    let mut values = table("position_embeddings", positions)?;
    let types = table("token_type_embeddings", config.count("type_vocab_size")?)?;
    for row in values.chunks_exact_mut(dim) {
        row.iter_mut().zip(&types).for_each(|(value, kind)| *value += kind);
    }
    Embedding::of_floats(&values, [positions, dim], at.backend())
}

impl Layer {
    async fn load(at: &Weights<'_>, config: Config<'_>) -> Result<Layer, Error> {
        let (dim, hidden) = (config.count("hidden_size")?, config.count("intermediate_size")?);
        let count = config.count("num_attention_heads")?;
        if !dim.is_multiple_of(count) {
            return Err(Error(format!("config.json: {count} attention heads do not share {dim} features")));
        }
        let heads = Heads { query: count, kv: count, dim: dim / count };
        let (own, output) = (at.at("attention.self"), at.at("attention.output"));
        let qkv = [(own.at("query"), dim), (own.at("key"), dim), (own.at("value"), dim)];
        Ok(Layer {
            qkv: Joined::load(&qkv, dim).await?,
            attention: EncoderAttention { heads, backend: at.backend() },
            attention_output: Linear::load(&output.at("dense"), dim, dim).await?,
            attention_norm: layer_norm(&output, config)?,
            up: Linear::load(&at.at("intermediate.dense"), dim, hidden).await?,
            activation: Activation::load(config.text("hidden_act").unwrap_or("gelu"), at.backend())?,
            down: Linear::load(&at.at("output.dense"), hidden, dim).await?,
            norm: layer_norm(&at.at("output"), config)?,
        })
    }

    /// `[tokens, dim]` → the same; the norms come after the residuals.
    fn forward(&self, x: &Array, batch: &Batch) -> Result<Array, Error> {
        let parts = self.qkv.forward(x)?;
        let [q, k, v] = &parts[..] else {
            return Err(Error("queries, keys and values are three; this is a bug".into()));
        };
        let found = self.attention.forward([q, k, v], batch)?;
        let x = self.attention_norm.forward(&self.attention_output.forward_onto(&found, x)?)?;
        let inner = self.activation.forward(&self.up.forward(&x)?)?;
        self.norm.forward(&self.down.forward_onto(&inner, &x)?)
    }
}

impl Reader for Bert {
    fn read<'a>(&'a self, batch: &'a Batch) -> Steps<'a, Array> {
        Box::pin(async move {
            let places: Vec<u32> = batch.segments.iter().flat_map(|segment| 0..segment.length as u32).collect();
            let places = Array::from_slice(&places, &[places.len() as i32]);
            let x = self.words.forward(&batch.tokens)?.add(self.positions.forward(&places)?)?;
            let mut x = self.norm.forward(&x)?;
            for layer in &self.layers {
                x = layer.forward(&x, batch)?;
                x.eval()?;
                pause().await;
            }
            Ok(x)
        })
    }

    fn cost(&self) -> &Cost {
        &self.cost
    }
}
