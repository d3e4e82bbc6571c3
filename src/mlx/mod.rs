//! Everything that touches an array. [`load`] brings a checkpoint into memory block by block; what comes of it the
//! engine runs on the device thread. The only folder that names MLX.

mod array;
mod batch;
mod config;
mod cost;
mod embedder;
mod error;
mod gguf;
mod load;
pub mod models;
mod nn;
mod quant;
mod roofline;
mod runner;
mod sampler;
mod steps;
mod weights;

pub use cost::Cost;
pub use embedder::Embedder;
pub use error::Error;
pub use load::{EmbedderLoader, Loaded, Loading, TextLoader, load};
pub use mlx_cpu::{release_freed, set_threads, tune_allocator};
pub use models::Kind;
pub use quant::Float;
pub use roofline::{Processor, Roofline, processor, roofline};
pub use runner::Runner;

use crate::checkpoint::Checkpoint;

/// What computes, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Our primitives on a CPU. Activations are f32 between them.
    Cpu {
        /// What happens inside.
        mode: mlx_cpu::Mode,
        /// How keys and values are kept.
        kv: mlx_cpu::KvFormat,
    },
    /// MLX's own ops: Metal, CUDA, or a plain CPU (as a reference; it is slow).
    Mlx {
        /// What activations, keys and values are.
        activations: Float,
    },
}

/// How precisely to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As fast as the answer allows: on a CPU, activations are quantised to int8 inside quantised matmuls and keys
    /// and values are kept in f16; elsewhere everything is in the checkpoint's own format.
    #[default]
    Fast,
    /// f32 throughout.
    Exact,
}

/// How many bits our CPU primitives keep a key or a value in. Fewer make room for more and longer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvBits {
    /// f16.
    #[default]
    Sixteen,
    /// 9 bits with what 32 of them share.
    Eight,
    /// 5 bits with what 32 of them share.
    Four,
}

/// How to load.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// How precisely to compute.
    pub precision: Precision,
    /// For [`Precision::Fast`]; exact keys and values are f32.
    pub kv_bits: KvBits,
    /// Compute with MLX's own ops even where ours are faster.
    pub mlx_ops: bool,
}

impl KvBits {
    fn format(self) -> mlx_cpu::KvFormat {
        match self {
            KvBits::Sixteen => mlx_cpu::KvFormat::F16,
            KvBits::Eight => mlx_cpu::KvFormat::Int8,
            KvBits::Four => mlx_cpu::KvFormat::Int4,
        }
    }
}

impl Backend {
    /// Bits of a key or a value in memory.
    fn kv_bits(self) -> f64 {
        match self {
            Backend::Cpu { kv: mlx_cpu::KvFormat::F32, .. } => 32.0,
            Backend::Cpu { kv: mlx_cpu::KvFormat::F16 | mlx_cpu::KvFormat::BF16, .. } => 16.0,
            Backend::Cpu { kv: mlx_cpu::KvFormat::Int8, .. } => 9.0,
            Backend::Cpu { kv: mlx_cpu::KvFormat::Int4, .. } => 5.0,
            Backend::Mlx { activations } => 8.0 * activations.bytes() as f64,
        }
    }
}

/// The CPU's own primitives where MLX's default device is a CPU; MLX's ops otherwise.
fn backend(checkpoint: &Checkpoint, options: Options) -> Result<Backend, Error> {
    if on_cpu()? && !options.mlx_ops {
        return match (options.precision, options.kv_bits) {
            (Precision::Fast, bits) => Ok(Backend::Cpu { mode: mlx_cpu::Mode::Fast, kv: bits.format() }),
            (Precision::Exact, KvBits::Sixteen) => {
                Ok(Backend::Cpu { mode: mlx_cpu::Mode::Exact, kv: mlx_cpu::KvFormat::F32 })
            }
            (Precision::Exact, _) => {
                Err(Error("exact keys and values are f32: ask for fewer bits or for exact".into()))
            }
        };
    }
    if options.kv_bits != KvBits::Sixteen {
        return Err(Error("8 and 4 bits a key or value are for the CPU's own primitives".into()));
    }
    let activations = match options.precision {
        Precision::Exact => Float::F32,
        Precision::Fast => stored_as(checkpoint),
    };
    Ok(Backend::Mlx { activations })
}

/// Whether MLX's default device is a CPU.
fn on_cpu() -> Result<bool, Error> {
    Ok(matches!(mlx_rs::Device::try_default()?.get_type()?, mlx_rs::DeviceType::Cpu))
}

/// The 16-bit format of the checkpoint's floats: what its model was trained or converted to run in.
fn stored_as(checkpoint: &Checkpoint) -> Float {
    let has = |dtype| checkpoint.tensors().any(|tensor| tensor.dtype == dtype);
    if has(crate::checkpoint::Dtype::BF16) { Float::BF16 } else { Float::F16 }
}
