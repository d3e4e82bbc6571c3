//! The gated feed-forward block: down(silu(gate(x)) * up(x)) (Shazeer 2020).

use std::sync::Arc;

use mlx_rs::{Array, ops};

use super::{Joined, Linear, Moe, RmsNorm};
use crate::mlx::{Backend, Error, weights::Weights};

/// The block with the norm in front of it and the residual around both.
pub enum GatedMlp {
    Cpu(Arc<mlx_cpu::FeedForward>),
    Mlx { norm: RmsNorm, gate_up: Joined, down: Linear },
}

impl GatedMlp {
    /// `gate_proj`, `up_proj` and `down_proj`, behind `norm`.
    pub async fn load(at: &Weights<'_>, norm: RmsNorm, dim: usize, hidden: usize) -> Result<GatedMlp, Error> {
        let gate_up = Joined::load(&[(at.at("gate_proj"), hidden), (at.at("up_proj"), hidden)], dim).await?;
        let down = Linear::load(&at.at("down_proj"), hidden, dim).await?;
        let (RmsNorm::Cpu(norm), Some(gate_up), Some(down)) = (&norm, gate_up.kernel()?, down.kernel()) else {
            return Ok(GatedMlp::Mlx { norm, gate_up, down });
        };
        let (norm, down, activation) = (norm.clone(), down.clone(), mlx_cpu::Activation::Silu);
        Ok(GatedMlp::Cpu(Arc::new(mlx_cpu::FeedForward { norm, gate_up, activation, down })))
    }

    /// `x + mlp(norm(x))`, all `[tokens, dim]`.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        match self {
            GatedMlp::Cpu(block) => Ok(mlx_cpu::feed_forward(block, x)?),
            GatedMlp::Mlx { norm, gate_up, down } => {
                let parts = gate_up.forward(&norm.forward(x)?)?;
                down.forward_onto(&silu(&parts[0])?.multiply(&parts[1])?, x)
            }
        }
    }
}

/// What follows attention in a block, with the norm in front of it and the residual around both: one network for all
/// tokens, or experts.
pub enum FeedForward {
    Dense(GatedMlp),
    Experts(Moe),
}

impl FeedForward {
    /// `x + network(norm(x))`, all `[tokens, dim]`.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        match self {
            FeedForward::Dense(mlp) => mlp.forward(x),
            FeedForward::Experts(moe) => moe.forward(x),
        }
    }
}

/// silu(gate) * up, element by element.
pub fn silu_mul(backend: Backend, gate: &Array, up: &Array) -> Result<Array, Error> {
    match backend {
        Backend::Cpu { .. } => Ok(mlx_cpu::silu_mul(gate, up)?),
        Backend::Mlx { .. } => Ok(silu(gate)?.multiply(up)?),
    }
}

/// x * sigmoid(x) by MLX's own ops.
pub fn silu(x: &Array) -> Result<Array, Error> {
    Ok(ops::sigmoid(x)?.multiply(x)?)
}
