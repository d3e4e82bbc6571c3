//! Root mean square norm (Zhang and Sennrich 2019).

use std::sync::Arc;

use mlx_rs::{Array, fast};

use crate::mlx::{Backend, Error, weights::Weights};

/// Normalises every `dim` neighbouring features and scales them by a learned weight.
pub struct RmsNorm {
    weight: Option<Array>, // [dim]
    dim: usize,
    eps: f32,
    backend: Backend,
}

impl RmsNorm {
    pub fn load(at: &Weights, dim: usize, eps: f32) -> Result<RmsNorm, Error> {
        RmsNorm::load_shifted(at, dim, eps, 0.0)
    }

    /// A norm whose weights are stored less `shift`.
    pub fn load_shifted(at: &Weights, dim: usize, eps: f32, shift: f32) -> Result<RmsNorm, Error> {
        Ok(RmsNorm { weight: Some(at.shifted_vector("weight", dim, shift)?), dim, eps, backend: at.backend() })
    }

    /// A norm without a weight.
    pub fn plain(backend: Backend, dim: usize, eps: f32) -> RmsNorm {
        RmsNorm { weight: None, dim, eps, backend }
    }

    /// The weights of this norm of queries and of one of keys, for our CPU kernel.
    pub(super) fn kernel(&self, keys: &RmsNorm) -> Result<mlx_cpu::QkNorm, Error> {
        let values = |norm: &RmsNorm| -> Result<Arc<[f32]>, Error> {
            let Some(weight) = &norm.weight else { return Ok(vec![1.0; norm.dim].into()) };
            Ok(weight.to_vec_exact::<f32>().map_err(|error| Error(error.to_string()))?.into())
        };
        Ok(mlx_cpu::QkNorm { q: values(self)?, k: values(keys)?, eps: self.eps })
    }

    /// `[tokens, features]`, where features is a multiple of `dim`: each `dim` of them are normed on their own.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        if let Backend::Cpu { .. } = self.backend {
            return Ok(mlx_cpu::rms_norm(x, self.weight.as_ref(), self.dim, self.eps)?);
        }
        let (tokens, features, dim) = (x.dim(0), x.dim(1), self.dim as i32);
        if features == dim {
            return Ok(fast::rms_norm(x, self.weight.as_ref(), self.eps)?);
        }
        let heads = x.reshape(&[tokens, features / dim, dim])?;
        Ok(fast::rms_norm(&heads, self.weight.as_ref(), self.eps)?.reshape(&[tokens, features])?)
    }
}
