//! Queries, keys and values of one input, normed a head at a time where the model does that.

use mlx_rs::Array;

use super::{Heads, Linear, RmsNorm};
use crate::mlx::{Error, quant::Matrix, weights::Weights};

/// `q_proj`, `k_proj` and `v_proj`.
pub struct Qkv {
    /// One linear, or three where their weights differ in form.
    linears: Vec<Linear>,
    /// Of queries and keys.
    norms: Option<[RmsNorm; 2]>,
    heads: Heads,
}

impl Qkv {
    pub fn load(at: &Weights, dim: usize, heads: Heads) -> Result<Qkv, Error> {
        Qkv::load_ordered(at, dim, heads, |matrix| matrix)
    }

    /// As [`Qkv::load`], with the rows of queries and of keys put in order first.
    pub fn load_ordered(
        at: &Weights,
        dim: usize,
        heads: Heads,
        order: impl Fn(Matrix) -> Matrix,
    ) -> Result<Qkv, Error> {
        let parts = [
            (at.at("q_proj"), heads.query * heads.dim),
            (at.at("k_proj"), heads.kv * heads.dim),
            (at.at("v_proj"), heads.kv * heads.dim),
        ];
        let read = |(at, outputs): &(Weights, usize)| at.matrix(*outputs, dim);
        let matrices = vec![order(read(&parts[0])?), order(read(&parts[1])?), read(&parts[2])?];
        Ok(Qkv { linears: Linear::from_matrices(&parts, matrices)?, norms: None, heads })
    }

    /// With `q_norm` and `k_norm`, as Qwen 3 has them.
    pub fn normed(self, at: &Weights, eps: f32) -> Result<Qkv, Error> {
        let norm = |name: &str| RmsNorm::load(&at.at(name), self.heads.dim, eps);
        Ok(Qkv { norms: Some([norm("q_norm")?, norm("k_norm")?]), ..self })
    }

    /// `[tokens, dim]` → queries `[tokens, query * dim]`, keys and values `[tokens, kv * dim]`.
    pub fn forward(&self, x: &Array) -> Result<[Array; 3], Error> {
        let Heads { query, kv, dim } = self.heads;
        let parts = match &self.linears[..] {
            [joined] => {
                let cuts = [(query * dim) as i32, ((query + kv) * dim) as i32];
                joined.forward(x)?.split_at_indices(&cuts, 1)?
            }
            each => each.iter().map(|linear| linear.forward(x)).collect::<Result<Vec<Array>, Error>>()?,
        };
        let [q, k, v] =
            parts.try_into().map_err(|_| Error("queries, keys and values are three; this is a bug".into()))?;
        match &self.norms {
            Some([q_norm, k_norm]) => Ok([q_norm.forward(&q)?, k_norm.forward(&k)?, v]),
            None => Ok([q, k, v]),
        }
    }
}
