//! Qwen 3.5, text part: three gated delta layers to every layer of gated full attention.
//!
//! The delta layers remember a fixed-size state instead of keys and values, so a sequence of this model can be
//! continued where it ended but not cut shorter.

use mlx_rs::{Array, ops};

use super::{Architecture, Model};
use crate::mlx::{
    Backend, Error,
    batch::Batch,
    config::Config,
    nn::{
        Attention, DeltaInputs, Embedding, GatedMlp, Heads, Kv, Layer, Linear, Recurrent, RmsNorm, Rope, ShortConv,
        State, gated_delta, silu_mul,
    },
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
    Delta(Delta),
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
        let head = match config.flag("tie_word_embeddings")? {
            true => embedding.tied_head(),
            false => Linear::load(&head, dim, vocabulary)?,
        };
        let shift = shift(&model);
        let block = |index| Block::load(&model.at("layers").at(index), config, index, shift);
        Ok(Qwen {
            blocks: (0..config.count("num_hidden_layers")?).map(block).collect::<Result<_, Error>>()?,
            norm: RmsNorm::load_shifted(&model.at("norm"), dim, eps(config)?, shift)?,
            context: config.count("max_position_embeddings")?,
            embedding,
            head,
            vocabulary,
        })
    }
}

fn eps(config: Config) -> Result<f32, Error> {
    Ok(config.number("rms_norm_eps")?.unwrap_or(1e-6) as f32)
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
            false => Mixer::Delta(Delta::load(&at.at("linear_attn"), config)?),
        };
        Ok(Block {
            mixer_norm: RmsNorm::load_shifted(&at.at("input_layernorm"), dim, eps(config)?, shift)?,
            mixer,
            mlp_norm: RmsNorm::load_shifted(&at.at("post_attention_layernorm"), dim, eps(config)?, shift)?,
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
    q_norm: RmsNorm,
    k_norm: RmsNorm,
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
        Ok(GatedAttention {
            q: Linear::load(&at.at("q_proj"), dim, 2 * query * head)?,
            k: Linear::load(&at.at("k_proj"), dim, heads.kv * head)?,
            v: Linear::load(&at.at("v_proj"), dim, heads.kv * head)?,
            q_norm: RmsNorm::load_shifted(&at.at("q_norm"), head, eps(config)?, shift)?,
            k_norm: RmsNorm::load_shifted(&at.at("k_norm"), head, eps(config)?, shift)?,
            attention: Attention { heads, rope: Rope::load(config, rotated)?, window: None, backend: at.backend() },
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
        let (query, dim) = (query as i32, dim as i32);
        // Every head's queries are followed by its gates.
        let mut halves = self.q.forward(x)?.reshape(&[-1, query, 2 * dim])?.split_at_indices(&[dim], 2)?.into_iter();
        let mut half = || halves.next().expect("two halves").reshape(&[-1, query * dim]);
        let (q, gate) = (half()?, half()?);
        let (q, k) = (self.q_norm.forward(&q)?, self.k_norm.forward(&self.k.forward(x)?)?);
        let attended = self.attention.forward([&q, &k, &self.v.forward(x)?], batch, states, layer)?;
        self.output.forward_onto(&attended.multiply(ops::sigmoid(gate)?)?, residual)
    }
}

/// A gated delta layer.
struct Delta {
    qkv: Linear,
    z: Linear,
    b: Linear,
    a: Linear,
    conv: ShortConv,
    dt_bias: Array, // [value_heads], f32
    decay: Array,   // [value_heads], -exp(A_log), f32
    unit: RmsNorm,
    norm: RmsNorm,
    output: Linear,
    key: (usize, usize),   // heads, features a head
    value: (usize, usize), // heads, features a head
    backend: Backend,
}

impl Delta {
    fn load(at: &Weights, config: Config) -> Result<Delta, Error> {
        let dim = config.count("hidden_size")?;
        let key = (config.count("linear_num_key_heads")?, config.count("linear_key_head_dim")?);
        let value = (config.count("linear_num_value_heads")?, config.count("linear_value_head_dim")?);
        if !value.0.is_multiple_of(key.0) {
            return Err(Error(format!("config.json: {} value heads do not share {} key heads", value.0, key.0)));
        }
        let channels = 2 * key.0 * key.1 + value.0 * value.1;
        let heads = |name: &str| -> Result<Vec<f32>, Error> {
            let (values, shape) = at.floats(name)?;
            match shape == [value.0] {
                true => Ok(values),
                false => Err(Error(format!("{}.{name}: expected {} numbers, found {shape:?}", at.path(), value.0))),
            }
        };
        let array = |values: Vec<f32>| Array::from_slice(&values, &[value.0 as i32]);
        Ok(Delta {
            qkv: Linear::load(&at.at("in_proj_qkv"), dim, channels)?,
            z: Linear::load(&at.at("in_proj_z"), dim, value.0 * value.1)?,
            b: Linear::load(&at.at("in_proj_b"), dim, value.0)?,
            a: Linear::load(&at.at("in_proj_a"), dim, value.0)?,
            conv: ShortConv::load(&at.at("conv1d"), channels, config.count("linear_conv_kernel_dim")?)?,
            dt_bias: array(heads("dt_bias")?),
            decay: array(heads("A_log")?.into_iter().map(|log| -log.exp()).collect()),
            // The l2 norm adds its epsilon to the sum of squares, an rms norm to their mean.
            unit: RmsNorm::plain(at.backend(), key.1, 1e-6 / key.1 as f32),
            norm: RmsNorm::load(&at.at("norm"), value.1, eps(config)?)?,
            output: Linear::load(&at.at("out_proj"), value.0 * value.1, dim)?,
            key,
            value,
            backend: at.backend(),
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
        let (qkv, z) = (self.qkv.forward(x)?, self.z.forward(x)?);
        let beta = ops::sigmoid(self.b.forward(x)?.as_dtype(mlx_rs::Dtype::Float32)?)?;
        let dt = self.a.forward(x)?.as_dtype(mlx_rs::Dtype::Float32)?.add(&self.dt_bias)?;
        let softplus = ops::logaddexp(&dt, Array::from_f32(0.0))?;
        let g = softplus.multiply(&self.decay)?.exp()?;
        let mut outputs = Vec::with_capacity(batch.segments.len());
        for (segment, state) in batch.segments.iter().zip(states) {
            let Layer::Recurrent(state) = &mut state.layers[layer] else {
                return Err(Error(format!("layer {layer} has no recurrent state; this is a bug")));
            };
            let mixed = self.conv.forward(&segment.of(&qkv)?, &mut state.conv)?;
            outputs.push(self.recur(&mixed, &segment.of(&g)?, &segment.of(&beta)?, &mut state.delta)?);
        }
        let outputs = match outputs.len() {
            1 => outputs.remove(0),
            _ => ops::concatenate(&outputs, 0)?,
        };
        let gated = silu_mul(self.backend, &z, &self.norm.forward(&outputs)?)?;
        self.output.forward_onto(&gated, residual)
    }

    /// One sequence's mixed channels `[length, channels]` → `[length, value features]`.
    fn recur(&self, mixed: &Array, g: &Array, beta: &Array, state: &mut Array) -> Result<Array, Error> {
        let (key, value) = (self.key, self.value);
        let width = (key.0 * key.1) as i32;
        let parts = mixed.split_at_indices(&[width, 2 * width], 1)?;
        let unit = (key.1 as f32).powf(-0.5);
        let scaled = |x: &Array, factor: f32| -> Result<Array, Error> {
            let factor = Array::from_f32(factor).as_dtype(x.dtype())?;
            let x = self.unit.forward(x)?.multiply(factor)?;
            Ok(x.reshape(&[-1, key.0 as i32, key.1 as i32])?)
        };
        let (q, k) = (scaled(&parts[0], unit * unit)?, scaled(&parts[1], unit)?);
        let v = parts[2].reshape(&[-1, value.0 as i32, value.1 as i32])?;
        let inputs = DeltaInputs { q: &q, k: &k, v: &v, g, beta };
        Ok(gated_delta(self.backend, &inputs, state)?.reshape(&[-1, (value.0 * value.1) as i32])?)
    }

    fn fresh(&self) -> Result<Recurrent, Error> {
        let shape = [self.value.0 as i32, self.value.1 as i32, self.key.1 as i32];
        Ok(Recurrent { conv: self.conv.empty()?, delta: ops::zeros_dtype(&shape, mlx_rs::Dtype::Float32)? })
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
