//! Qwen 3.5, text part: three gated delta layers to every layer of gated full attention.
//!
//! The delta layers remember a fixed-size state instead of keys and values, so a sequence of this model can be
//! continued where it ended but not cut shorter.

use mlx_rs::Array;

use super::{
    Architecture, Kind,
    decoder::{self, Place, Plan, heads},
};
use crate::mlx::{
    Error,
    batch::Batch,
    config::Config,
    nn::{Attention, AttentionParts, DeltaNet, GatedMlp, Heads, Joined, Layer, Linear, RmsNorm, Rope, State},
    weights::{Source, Weights},
};

/// The row of the table.
pub const ARCHITECTURE: Architecture = Architecture {
    names: &["qwen3_5", "qwen3_5_text"],
    kind: Kind::Text,
    // The vision tower and the draft head of multi-token prediction are not part of the text model.
    unused: &["vision_tower.", "visual.", "mtp."],
    load: |source| {
        let plan = Plan { place, norm: last_norm, block: |place, index| Box::pin(Block::load(place, index)) };
        decoder::load(source, plan)
    },
};

struct Block {
    mixer: Mixer,
    mlp: GatedMlp,
}

enum Mixer {
    Attention(Attention),
    Delta(DeltaNet),
}

/// The text part alone, inside MLX's checkpoint of the whole model, or inside transformers' one.
fn place<'a>(source: &'a Source<'a>) -> Place<'a> {
    let root = source.root();
    let places =
        [("model", "lm_head"), ("language_model.model", "language_model.lm_head"), ("model.language_model", "lm_head")];
    let place = places.iter().find(|(model, _)| root.at(model).at("embed_tokens").has("weight"));
    let (model, head) = place.unwrap_or(&places[0]);
    let config = source.config();
    Place { model: root.at(model), head: root.at(head), config: config.object("text_config").unwrap_or(config) }
}

fn last_norm(place: &Place) -> Result<RmsNorm, Error> {
    let (dim, eps) = (place.config.count("hidden_size")?, place.config.rms_norm_eps()?);
    RmsNorm::load_shifted(&place.model.at("norm"), dim, eps, shift(&place.model))
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
    async fn load(place: &Place<'_>, index: usize) -> Result<Block, Error> {
        let (at, config, shift) = (place.layer(index), place.config, shift(&place.model));
        let dim = config.count("hidden_size")?;
        let norm = |name: &str| RmsNorm::load_shifted(&at.at(name), dim, config.rms_norm_eps()?, shift);
        let every = config.optional_count("full_attention_interval")?.unwrap_or(4);
        let mixer = if (index + 1).is_multiple_of(every) {
            Mixer::Attention(gated_attention(&at.at("self_attn"), norm("input_layernorm")?, config, shift).await?)
        } else {
            Mixer::Delta(DeltaNet::load(&at.at("linear_attn"), norm("input_layernorm")?, config).await?)
        };
        let mlp_norm = norm("post_attention_layernorm")?;
        let mlp = GatedMlp::load(&at.at("mlp"), mlp_norm, dim, config.count("intermediate_size")?).await?;
        Ok(Block { mixer, mlp })
    }
}

impl decoder::Block for Block {
    fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        let x = match &self.mixer {
            Mixer::Attention(attention) => attention.forward(x, batch, states, layer)?,
            Mixer::Delta(delta) => delta.forward(x, batch, states, layer)?,
        };
        self.mlp.forward(&x)
    }

    fn fresh(&self) -> Result<Layer, Error> {
        match &self.mixer {
            Mixer::Attention(attention) => Ok(attention.fresh()),
            Mixer::Delta(delta) => Ok(Layer::Recurrent(delta.fresh()?)),
        }
    }

    fn attention(&self) -> Option<&Attention> {
        match &self.mixer {
            Mixer::Attention(attention) => Some(attention),
            Mixer::Delta(_) => None,
        }
    }
}

/// Full attention whose output is gated by a second half of the query projection.
async fn gated_attention(at: &Weights<'_>, norm: RmsNorm, config: Config<'_>, shift: f32) -> Result<Attention, Error> {
    let heads = heads(config)?;
    let (dim, Heads { query, kv, dim: head }) = (config.count("hidden_size")?, heads);
    let rotated = match config.object("rope_parameters").map(|rope| rope.number("partial_rotary_factor")) {
        Some(factor) => factor?,
        None => config.number("partial_rotary_factor")?,
    };
    let rotated = (head as f64 * rotated.unwrap_or(0.25)) as usize;
    let head_norm = |name: &str| RmsNorm::load_shifted(&at.at(name), head, config.rms_norm_eps()?, shift);
    let parts = [(at.at("q_proj"), 2 * query * head), (at.at("k_proj"), kv * head), (at.at("v_proj"), kv * head)];
    Attention::new(AttentionParts {
        heads,
        norm,
        projections: Joined::load(&parts, dim).await?,
        head_norms: Some([head_norm("q_norm")?, head_norm("k_norm")?]),
        rope: Rope::load(config, rotated)?,
        window: None,
        gated: true,
        output: Linear::load(&at.at("o_proj"), query * head, dim).await?,
        backend: at.backend(),
    })
}
