//! CPU primitives for MLX's lazy graph.
//!
//! `kernels` computes on slices and knows no MLX; `op` puts a closure into MLX's graph; the files beside this one
//! join the two, a function an op. Activations are f32. A row's result has the same bits alone and in any batch,
//! with any number of threads: that is what lets a server promise that batching and caching change nothing.

mod activate;
mod attend;
mod attention_layer;
mod delta_net;
mod experts;
mod feed_forward;
mod glue;
pub mod kernels;
mod linear;
mod memory;
mod norm;
mod op;
mod pages;
mod sample;
mod ssm;
mod weights;

pub use activate::activate;
pub use attend::{Attend, Growth, Part, QkNorm, Rope, attend};
pub use attention_layer::{AttentionLayer, attention_layer};
pub use delta_net::{DeltaNet, DeltaSequence, delta_net};
pub use experts::{combine, gather_matmul, route};
pub use feed_forward::{FeedForward, feed_forward};
pub use glue::{embedding, silu_mul};
pub use kernels::{
    attention::Sees,
    gate::Activation,
    kv::Format as KvFormat,
    matmul::Mode,
    pack::{Float, Micro},
    pool::{set_threads, threads},
};
pub use linear::{Joined, Linear, linear};
pub use memory::{release_freed, tune_allocator};
pub use norm::{LayerNorm, Norm, layer_norm, rms_norm};
pub use op::Error;
pub use pages::Pages;
pub use sample::{Adjustment, Asked as AskedLogprobs, Choice, Sample, logprobs, sample};
pub use ssm::{Decay, ssm};
pub use weights::{Affine, Dense, Growing, SmallFloats, Unpacked, Weights};
