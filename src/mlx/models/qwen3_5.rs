//! Qwen 3.5, text part: three gated delta layers to every layer of gated full attention.
//!
//! The delta layers remember a fixed-size state instead of keys and values, so a sequence of this model can be
//! continued where it ended but not cut shorter.

use mlx_cpu::Part;
use mlx_rs::{Array, ops, ops::indexing::TryIndexOp};

use super::{Architecture, Model};
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    nn::{Attention, DeltaNet, Embedding, GatedMlp, Heads, Kv, Layer, Linear, RmsNorm, Rope, State},
    weights::{Source, Weights},
};

pub const ARCHITECTURE: Architecture = Architecture {
    names: &["qwen3_5", "qwen3_5_text"],
    // The vision tower and the draft head of multi-token prediction are not part of the text model.
    unused: &["vision_tower.", "visual.", "mtp."],
    load: |source, config| Ok(Box::new(Qwen::load(source, config.object("text_config").unwrap_or(config))?)),
};

struct Qwen {
    embedding: Embedding,
    blocks: Vec<Block>,
    norm: RmsNorm,
    head: Linear,
    context: usize,
    vocabulary: usize,
}

struct Block {
    mixer_norm: RmsNorm,
    mixer: Mixer,
    mlp_norm: RmsNorm,
    mlp: GatedMlp,
}

enum Mixer {
    Attention(GatedAttention),
    Delta(DeltaNet),
}

impl Qwen {
    fn load(source: &Source, config: Config) -> Result<Qwen, Error> {
        let (dim, vocabulary) = (config.count("hidden_size")?, config.count("vocab_size")?);
        // The text part alone, inside MLX's checkpoint of the whole model, inside transformers' one.
        let root = source.root();
        let places = [
            ("model", "lm_head"),
            ("language_model.model", "language_model.lm_head"),
            ("model.language_model", "lm_head"),
        ];
        let place = places.iter().find(|(model, _)| root.at(model).at("embed_tokens").has("weight"));
        let (model, head) = place.unwrap_or(&places[0]);
        let (model, head) = (root.at(model), root.at(head));
        let embedding = Embedding::load(&model.at("embed_tokens"), vocabulary, dim)?;
        let head = embedding.head(&head, config.flag("tie_word_embeddings")?, dim, vocabulary)?;
        let shift = shift(&model);
        let block = |index| Block::load(&model.at("layers").at(index), config, index, shift);
        Ok(Qwen {
            blocks: (0..config.count("num_hidden_layers")?).map(block).collect::<Result<_, Error>>()?,
            norm: RmsNorm::load_shifted(&model.at("norm"), dim, config.rms_norm_eps()?, shift)?,
            context: config.count("max_position_embeddings")?,
            embedding,
            head,
            vocabulary,
        })
    }
}

/// What to add to the weights of the norms around and inside the layers, but not of the one behind the delta rule:
/// transformers stores them less one. Its convolutions are stored transposed, which tells the two apart.
fn shift(model: &Weights) -> f32 {
    match model.at("layers.0.linear_attn.conv1d").shape("weight") {
        Some([_, _, 1]) | None => 0.0,
        Some(_) => 1.0,
    }
}

impl Block {
    fn load(at: &Weights, config: Config, index: usize, shift: f32) -> Result<Block, Error> {
        let dim = config.count("hidden_size")?;
        let every = config.optional_count("full_attention_interval")?.unwrap_or(4);
        let mixer = match (index + 1).is_multiple_of(every) {
            true => Mixer::Attention(GatedAttention::load(&at.at("self_attn"), config, shift)?),
            false => Mixer::Delta(DeltaNet::load(&at.at("linear_attn"), config)?),
        };
        Ok(Block {
            mixer_norm: RmsNorm::load_shifted(&at.at("input_layernorm"), dim, config.rms_norm_eps()?, shift)?,
            mixer,
            mlp_norm: RmsNorm::load_shifted(&at.at("post_attention_layernorm"), dim, config.rms_norm_eps()?, shift)?,
            mlp: GatedMlp::load(&at.at("mlp"), dim, config.count("intermediate_size")?)?,
        })
    }

    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        let normed = self.mixer_norm.forward(x)?;
        let x = match &self.mixer {
            Mixer::Attention(attention) => attention.forward_onto(&normed, x, batch, states, layer)?,
            Mixer::Delta(delta) => delta.forward_onto(&normed, x, batch, states, layer)?,
        };
        self.mlp.forward_onto(&self.mlp_norm.forward(&x)?, &x)
    }
}

/// Full attention whose output is gated by a second half of the query projection.
struct GatedAttention {
    q: Linear,
    k: Linear,
    v: Linear,
    attention: Attention,
    output: Linear,
}

impl GatedAttention {
    fn load(at: &Weights, config: Config, shift: f32) -> Result<GatedAttention, Error> {
        let (dim, query) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
        let head = config.optional_count("head_dim")?.unwrap_or(dim / query);
        let heads = Heads { query, kv: config.count("num_key_value_heads")?, dim: head };
        let rotated = match config.object("rope_parameters").map(|rope| rope.number("partial_rotary_factor")) {
            Some(factor) => factor?,
            None => config.number("partial_rotary_factor")?,
        };
        let rotated = (head as f64 * rotated.unwrap_or(0.25)) as usize;
        let norm = |name| RmsNorm::load_shifted(&at.at(name), head, config.rms_norm_eps()?, shift);
        let norms = Some([norm("q_norm")?, norm("k_norm")?]);
        Ok(GatedAttention {
            q: Linear::load(&at.at("q_proj"), dim, 2 * query * head)?,
            k: Linear::load(&at.at("k_proj"), dim, heads.kv * head)?,
            v: Linear::load(&at.at("v_proj"), dim, heads.kv * head)?,
            attention: Attention::new(heads, norms, Rope::load(config, rotated)?, None, at.backend())?,
            output: Linear::load(&at.at("o_proj"), query * head, dim)?,
        })
    }

    fn forward_onto(
        &self,
        x: &Array,
        residual: &Array,
        batch: &Batch,
        states: &mut [&mut State],
        layer: usize,
    ) -> Result<Array, Error> {
        let Heads { query, dim, .. } = self.attention.heads;
        // Every head's queries are followed by its gates.
        let (q, k, v) = (self.q.forward(x)?, self.k.forward(x)?, self.v.forward(x)?);
        let part = |array, stride| Part { array, start: 0, stride };
        let attended =
            self.attention.forward([part(&q, 2 * dim), part(&k, dim), part(&v, dim)], batch, states, layer)?;
        let (query, dim) = (query as i32, dim as i32);
        let gate = q.reshape(&[-1, query, 2 * dim])?.try_index((.., .., dim..))?.reshape(&[-1, query * dim])?;
        self.output.forward_onto(&attended.multiply(ops::sigmoid(gate)?)?, residual)
    }
}

impl Model for Qwen {
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
        let layer = |block: &Block| match &block.mixer {
            Mixer::Attention(attention) => Ok(Layer::Attention(Kv::empty(attention.attention.backend))),
            Mixer::Delta(delta) => Ok(Layer::Recurrent(delta.fresh()?)),
        };
        Ok(State { length: 0, layers: self.blocks.iter().map(layer).collect::<Result<_, Error>>()? })
    }

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}
