//! CPU primitives for MLX's lazy graph.
//!
//! `kernels` computes on slices and knows no MLX; `op` puts a closure into MLX's graph; the files beside this one
//! join the two, a function an op. Activations are f32. A row's result has the same bits alone and in any batch,
//! with any number of threads: that is what lets a server promise that batching and caching change nothing.

mod attend;
mod glue;
pub mod kernels;
mod op;
mod pages;
mod recurrent;
mod sample;
mod weights;

pub use attend::{Attend, Growth, Part, QkNorm, Rope, attend};
pub use glue::{embedding, matmul, rms_norm, silu_mul};
pub use kernels::{
    kv::Format as KvFormat,
    matmul::Mode,
    pack::Float,
    pool::{set_threads, threads},
};
pub use op::Error;
pub use pages::Pages;
pub use recurrent::{gated_delta, short_conv};
pub use sample::{Adjustment, Sample, sample};
pub use weights::{Affine, Weights};
