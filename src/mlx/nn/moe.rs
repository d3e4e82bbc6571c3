//! A mixture of experts in the place of a feed-forward block (Shazeer et al. 2017): a router picks a few for each token,
//! and their answers are summed by its scores.

use mlx_rs::{
    Array, ops,
    ops::indexing::{TryIndexOp, take_along_axis},
};

use super::{Linear, RmsNorm, experts::Experts, mlp::silu_mul};
use crate::mlx::{Backend, Error, weights::Weights};

/// The sizes of a mixture.
#[derive(Debug, Clone, Copy)]
pub struct Mixture {
    /// Experts in all.
    pub experts: usize,
    /// Experts a token goes to.
    pub top: usize,
    /// Features inside an expert.
    pub hidden: usize,
    /// Whether the scores of a token's experts sum to one.
    pub normed: bool,
}

/// The block with the norm in front of it and the residual around both.
pub struct Moe {
    norm: RmsNorm,
    router: Linear,
    /// Gate and up as one stack, or as two where their weights differ in form.
    gate_up: Vec<Experts>,
    down: Experts,
    mixture: Mixture,
    backend: Backend,
}

impl Moe {
    /// `gate`, which is the router, and the experts below `switch_mlp` or, as transformers has them, `experts`.
    pub async fn load(at: &Weights<'_>, norm: RmsNorm, dim: usize, mixture: Mixture) -> Result<Moe, Error> {
        let Mixture { experts, top, hidden, .. } = mixture;
        if top > experts {
            return Err(Error(format!("config.json: a token cannot go to {top} of {experts} experts")));
        }
        let each = at.shared_by(top, experts);
        Ok(Moe {
            norm,
            router: Linear::load(&at.at("gate"), dim, experts).await?,
            gate_up: Experts::load_pair(&each, ["gate_proj", "up_proj"], experts, [hidden, dim]).await?,
            down: Experts::load(&each, "down_proj", experts, [dim, hidden]).await?,
            mixture,
            backend: at.backend(),
        })
    }

    /// `residual + moe(norm(residual))`, all `[tokens, dim]`.
    pub fn forward(&self, residual: &Array) -> Result<Array, Error> {
        let x = &self.norm.forward(residual)?;
        let [experts, scores] = self.route(x)?;
        let (gate, up) = match &self.gate_up[..] {
            [both] => {
                let cut = [self.mixture.hidden as i32];
                let mut halves = both.forward(x, &experts)?.split_at_indices(&cut, 1)?.into_iter();
                (halves.next().expect("two halves"), halves.next().expect("two halves"))
            }
            parts => (parts[0].forward(x, &experts)?, parts[1].forward(x, &experts)?),
        };
        let answers = self.down.forward(&silu_mul(self.backend, &gate, &up)?, &experts)?;
        if let Backend::Cpu { .. } = self.backend {
            return Ok(mlx_cpu::combine(&answers, &scores, residual)?);
        }
        let answers = answers.reshape(&[x.dim(0), self.mixture.top as i32, -1])?;
        Ok(residual.add(answers.multiply(scores.expand_dims(-1)?)?.sum_axis(1, false)?)?)
    }

    /// The experts `[tokens, top]` of each token and their scores.
    fn route(&self, x: &Array) -> Result<[Array; 2], Error> {
        let (top, normed) = (self.mixture.top, self.mixture.normed);
        let logits = self.router.forward(x)?;
        if let Backend::Cpu { .. } = self.backend {
            return Ok(mlx_cpu::route(&logits, top, normed)?);
        }
        let weights = ops::softmax_axis(&logits, -1, true)?;
        let experts = ops::argpartition_axis(weights.negative()?, top as i32 - 1, -1)?.try_index((.., ..top as i32))?;
        let scores = take_along_axis(&weights, &experts, -1)?;
        Ok(if normed { [experts, scores.divide(scores.sum_axis(-1, true)?)?] } else { [experts, scores] })
    }
}
