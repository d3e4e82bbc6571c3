//! Root mean square norm (Zhang and Sennrich 2019).

use mlx_rs::{Array, fast};

use crate::mlx::{Backend, Error, quant::dtype, weights::Weights};

/// Normalises every `dim` neighbouring features and scales them by a learned weight.
pub enum RmsNorm {
    Cpu(mlx_cpu::Norm),
    Mlx {
        weight: Option<Array>, // [dim]
        dim: i32,
        eps: f32,
    },
}

impl RmsNorm {
    /// The `weight` of `dim` numbers at a place.
    pub fn load(at: &Weights, dim: usize, eps: f32) -> Result<RmsNorm, Error> {
        RmsNorm::load_shifted(at, dim, eps, 0.0)
    }

    /// A norm whose weights are stored less `shift`.
    pub fn load_shifted(at: &Weights, dim: usize, eps: f32, shift: f32) -> Result<RmsNorm, Error> {
        let weight = at.numbers("weight", dim)?.into_iter().map(|weight| weight + shift).collect();
        RmsNorm::new(at.backend(), Some(weight), dim, eps)
    }

    /// A norm without a weight.
    pub fn plain(backend: Backend, dim: usize, eps: f32) -> Result<RmsNorm, Error> {
        RmsNorm::new(backend, None, dim, eps)
    }

    fn new(backend: Backend, weight: Option<Vec<f32>>, dim: usize, eps: f32) -> Result<RmsNorm, Error> {
        Ok(match backend {
            Backend::Cpu { .. } => RmsNorm::Cpu(mlx_cpu::Norm { weight: weight.map(Into::into), dim, eps }),
            Backend::Mlx { activations } => {
                let array = |weight: Vec<f32>| Array::from_slice(&weight, &[dim as i32]).as_dtype(dtype(activations));
                RmsNorm::Mlx { weight: weight.map(array).transpose()?, dim: dim as i32, eps }
            }
        })
    }

    /// The weights of this norm of queries and of one of keys, for our CPU kernel.
    pub(super) fn kernel(&self, keys: &RmsNorm) -> Result<mlx_cpu::QkNorm, Error> {
        let (RmsNorm::Cpu(q), RmsNorm::Cpu(k)) = (self, keys) else {
            return Err(Error("a CPU's norms are its kernels'; this is a bug".into()));
        };
        let weight = |norm: &mlx_cpu::Norm| norm.weight.clone().unwrap_or_else(|| vec![1.0; norm.dim].into());
        Ok(mlx_cpu::QkNorm { q: weight(q), k: weight(k), eps: q.eps })
    }

    /// `[tokens, features]`, where features is a multiple of `dim`: each `dim` of them are normed on their own.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        let (weight, dim, eps) = match self {
            RmsNorm::Cpu(norm) => return Ok(mlx_cpu::rms_norm(norm, x)?),
            RmsNorm::Mlx { weight, dim, eps } => (weight.as_ref(), *dim, *eps),
        };
        let (tokens, features) = (x.dim(0), x.dim(1));
        if features == dim {
            return Ok(fast::rms_norm(x, weight, eps)?);
        }
        let heads = x.reshape(&[tokens, features / dim, dim])?;
        Ok(fast::rms_norm(&heads, weight, eps)?.reshape(&[tokens, features])?)
    }
}
