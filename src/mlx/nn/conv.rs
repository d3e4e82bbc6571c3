//! The short causal convolution in front of recurrent layers: every channel mixes its last few inputs. In MLX's own
//! ops; on a CPU the whole layer is one of ours.

use mlx_rs::{Array, Dtype, ops, ops::indexing::TryIndexOp};

use crate::mlx::{Backend, Error, quant, weights::Weights};

/// A depthwise convolution over time followed by silu.
pub struct ShortConv {
    weight: Array, // [channels, width]
}

/// The `weight` at a place, `[channels, width, 1]` (MLX) or `[channels, 1, width]` (transformers), as
/// `[channels, width]`.
pub fn taps(at: &Weights, channels: usize, width: usize) -> Result<Vec<f32>, Error> {
    let (values, shape) = at.floats("weight")?;
    if shape == [channels, width, 1] || shape == [channels, 1, width] {
        Ok(values)
    } else {
        Err(Error(format!("{}.weight: expected [{channels}, {width}, 1], found {shape:?}", at.path())))
    }
}

/// What the last inputs are kept in.
pub fn dtype(backend: Backend) -> Dtype {
    match backend {
        Backend::Cpu { .. } => Dtype::Float32,
        Backend::Mlx { activations } => quant::dtype(activations),
    }
}

impl ShortConv {
    /// Of taps `[channels, width]`.
    pub fn new(taps: &[f32], channels: usize, backend: Backend) -> Result<ShortConv, Error> {
        let shape = [channels as i32, (taps.len() / channels) as i32];
        Ok(ShortConv { weight: Array::from_slice(taps, &shape).as_dtype(dtype(backend))? })
    }

    /// `[length, channels]` of one sequence → the same shape. The state, `[width - 1, channels]`, moves on.
    pub fn forward(&self, x: &Array, state: &mut Array) -> Result<Array, Error> {
        let length = x.dim(0);
        let inputs = ops::concatenate(&[&*state, x], 0)?; // [width - 1 + length, channels]
        let tap = |tap: i32| -> Result<Array, Error> {
            Ok(inputs.try_index((tap..tap + length, ..))?.multiply(self.weight.try_index((.., tap))?)?)
        };
        let mut sum = tap(0)?;
        for index in 1..self.weight.dim(1) {
            sum = sum.add(tap(index)?)?;
        }
        *state = inputs.try_index((length.., ..))?;
        Ok(ops::sigmoid(&sum)?.multiply(&sum)?)
    }
}
