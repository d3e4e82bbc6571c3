//! The blocks models are built of. Each loads itself from a name cursor and runs on the flat token axis of a
//! [`Batch`](super::batch::Batch).
//!
//! A block knows two ways to compute: our fused primitives on a CPU, MLX's own ops everywhere else. That choice is
//! made here, block by block, and no model sees it.

mod activation;
mod attention;
mod cache;
mod conv;
mod delta;
mod delta_net;
mod embedding;
mod encoder_attention;
mod experts;
mod layer_norm;
mod linear;
mod mlp;
mod moe;
mod norm;
mod pieces;
mod rope;
mod stored;

pub use activation::Activation;
pub use attention::{Attention, AttentionParts, Heads, qkv};
pub use cache::{Kv, Layer, Recurrent, State};
pub use delta_net::DeltaNet;
pub use embedding::Embedding;
pub use encoder_attention::EncoderAttention;
pub use layer_norm::LayerNorm;
pub use linear::{Joined, Linear};
pub use mlp::{FeedForward, GatedMlp};
pub use moe::{Mixture, Moe};
pub use norm::RmsNorm;
pub use pieces::load_one;
pub use rope::Rope;

use conv::ShortConv;
use delta::{DeltaInputs, gated_delta};
