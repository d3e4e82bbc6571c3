//! The gated feed-forward block: down(silu(gate(x)) * up(x)) (Shazeer 2020).

use mlx_rs::{Array, ops};

use super::{Linear, Moe};
use crate::mlx::{Backend, Error, weights::Weights};

pub struct GatedMlp {
    /// Gate and up as one linear, or as two where their weights differ in form.
    gate_up: Vec<Linear>,
    down: Linear,
    backend: Backend,
    hidden: usize,
}

impl GatedMlp {
    /// `gate_proj`, `up_proj` and `down_proj`.
    pub fn load(at: &Weights, dim: usize, hidden: usize) -> Result<GatedMlp, Error> {
        let parts = [(at.at("gate_proj"), hidden), (at.at("up_proj"), hidden)];
        Ok(GatedMlp {
            gate_up: Linear::joined(&parts, dim)?,
            down: Linear::load(&at.at("down_proj"), hidden, dim)?,
            backend: at.backend(),
            hidden,
        })
    }

    /// `residual + mlp(x)`, all `[tokens, dim]`.
    pub fn forward_onto(&self, x: &Array, residual: &Array) -> Result<Array, Error> {
        let (gate, up) = match &self.gate_up[..] {
            [both] => {
                let mut halves = both.forward(x)?.split_at_indices(&[self.hidden as i32], 1)?.into_iter();
                (halves.next().expect("two halves"), halves.next().expect("two halves"))
            }
            parts => (parts[0].forward(x)?, parts[1].forward(x)?),
        };
        self.down.forward_onto(&silu_mul(self.backend, &gate, &up)?, residual)
    }
}

/// What follows attention in a block: one network for all tokens, or experts.
pub enum FeedForward {
    Dense(GatedMlp),
    Experts(Moe),
}

impl FeedForward {
    /// `residual + network(x)`, all `[tokens, dim]`.
    pub fn forward_onto(&self, x: &Array, residual: &Array) -> Result<Array, Error> {
        match self {
            FeedForward::Dense(mlp) => mlp.forward_onto(x, residual),
            FeedForward::Experts(moe) => moe.forward_onto(x, residual),
        }
    }
}

/// silu(gate) * up, element by element; silu(x) = x * sigmoid(x).
pub fn silu_mul(backend: Backend, gate: &Array, up: &Array) -> Result<Array, Error> {
    if let Backend::Cpu { .. } = backend {
        return Ok(mlx_cpu::silu_mul(gate, up)?);
    }
    Ok(ops::sigmoid(gate)?.multiply(gate)?.multiply(up)?)
}
