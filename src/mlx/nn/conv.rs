//! The short causal convolution in front of recurrent layers: every channel mixes its last few inputs.

use mlx_rs::{Array, ops, ops::indexing::TryIndexOp};

use crate::mlx::{Backend, Error, weights::Weights};

/// A depthwise convolution over time followed by silu.
pub struct ShortConv {
    weight: Array, // [channels, width]
    width: usize,
    backend: Backend,
}

impl ShortConv {
    /// `weight` as `[channels, width, 1]` (MLX) or `[channels, 1, width]` (transformers).
    pub fn load(at: &Weights, channels: usize, width: usize) -> Result<ShortConv, Error> {
        let (values, shape) = at.floats("weight")?;
        if shape != [channels, width, 1] && shape != [channels, 1, width] {
            return Err(Error(format!("{}.weight: expected [{channels}, {width}, 1], found {shape:?}", at.path())));
        }
        let weight = Array::from_slice(&values, &[channels as i32, width as i32]);
        let backend = at.backend();
        let weight = match backend {
            Backend::Cpu { .. } => weight,
            Backend::Mlx { activations } => weight.as_dtype(activations.mlx())?,
        };
        Ok(ShortConv { weight, width, backend })
    }

    /// The state of a sequence of no tokens, `[width - 1, channels]`.
    pub fn empty(&self) -> Result<Array, Error> {
        Ok(ops::zeros_dtype(&[self.width as i32 - 1, self.weight.dim(0)], self.weight.dtype())?)
    }

    /// `[length, channels]` of one sequence → the same shape. The state moves on.
    pub fn forward(&self, x: &Array, state: &mut Array) -> Result<Array, Error> {
        if let Backend::Cpu { .. } = self.backend {
            let (output, next) = mlx_cpu::short_conv(x, state, &self.weight)?;
            *state = next;
            return Ok(output);
        }
        let length = x.dim(0);
        let inputs = ops::concatenate(&[&*state, x], 0)?; // [width - 1 + length, channels]
        let tap = |tap: i32| -> Result<Array, Error> {
            Ok(inputs.try_index((tap..tap + length, ..))?.multiply(self.weight.try_index((.., tap))?)?)
        };
        let mut sum = tap(0)?;
        for index in 1..self.width as i32 {
            sum = sum.add(tap(index)?)?;
        }
        *state = inputs.try_index((length.., ..))?;
        Ok(ops::sigmoid(&sum)?.multiply(&sum)?)
    }
}
