//! The gated delta layer of hybrid models (Yang et al. 2024), as Qwen 3.5 has it.

use mlx_rs::{Array, ops};

use super::{DeltaInputs, Layer, Linear, Recurrent, RmsNorm, ShortConv, State, gated_delta, silu_mul};
use crate::mlx::{
    Backend, Error,
    batch::{Batch, joined},
    config::Config,
    weights::Weights,
};

/// Projections, short convolution, recurrence, gated norm.
pub struct DeltaNet {
    qkv: Linear,
    z: Linear,
    b: Linear,
    a: Linear,
    conv: ShortConv,
    dt_bias: Array, // [value_heads], f32
    decay: Array,   // [value_heads], -exp(A_log), f32
    unit: RmsNorm,
    norm: RmsNorm,
    output: Linear,
    key: (usize, usize),   // heads, features a head
    value: (usize, usize), // heads, features a head
    backend: Backend,
}

impl DeltaNet {
    /// `in_proj_*`, `conv1d`, `dt_bias`, `A_log`, `norm` and `out_proj`; sizes by the config's `linear_*` fields.
    pub fn load(at: &Weights, config: Config) -> Result<DeltaNet, Error> {
        let dim = config.count("hidden_size")?;
        let key = (config.count("linear_num_key_heads")?, config.count("linear_key_head_dim")?);
        let value = (config.count("linear_num_value_heads")?, config.count("linear_value_head_dim")?);
        if !value.0.is_multiple_of(key.0) {
            return Err(Error(format!("config.json: {} value heads do not share {} key heads", value.0, key.0)));
        }
        let channels = 2 * key.0 * key.1 + value.0 * value.1;
        let heads = |name: &str| -> Result<Vec<f32>, Error> {
            let (values, shape) = at.floats(name)?;
            match shape == [value.0] {
                true => Ok(values),
                false => Err(Error(format!("{}.{name}: expected {} numbers, found {shape:?}", at.path(), value.0))),
            }
        };
        let array = |values: Vec<f32>| Array::from_slice(&values, &[value.0 as i32]);
        Ok(DeltaNet {
            qkv: Linear::load(&at.at("in_proj_qkv"), dim, channels)?,
            z: Linear::load(&at.at("in_proj_z"), dim, value.0 * value.1)?,
            b: Linear::load(&at.at("in_proj_b"), dim, value.0)?,
            a: Linear::load(&at.at("in_proj_a"), dim, value.0)?,
            conv: ShortConv::load(&at.at("conv1d"), channels, config.count("linear_conv_kernel_dim")?)?,
            dt_bias: array(heads("dt_bias")?),
            decay: array(heads("A_log")?.into_iter().map(|log| -log.exp()).collect()),
            // The l2 norm adds its epsilon to the sum of squares, an rms norm to their mean.
            unit: RmsNorm::plain(at.backend(), key.1, 1e-6 / key.1 as f32),
            norm: RmsNorm::load(&at.at("norm"), value.1, config.rms_norm_eps()?)?,
            output: Linear::load(&at.at("out_proj"), value.0 * value.1, dim)?,
            key,
            value,
            backend: at.backend(),
        })
    }

    /// `residual + layer(x)`, all `[tokens, dim]`. Moves layer `layer` of each sequence's state on.
    pub fn forward_onto(
        &self,
        x: &Array,
        residual: &Array,
        batch: &Batch,
        states: &mut [&mut State],
        layer: usize,
    ) -> Result<Array, Error> {
        let (qkv, z) = (self.qkv.forward(x)?, self.z.forward(x)?);
        let beta = ops::sigmoid(self.b.forward(x)?.as_dtype(mlx_rs::Dtype::Float32)?)?;
        let dt = self.a.forward(x)?.as_dtype(mlx_rs::Dtype::Float32)?.add(&self.dt_bias)?;
        let softplus = ops::logaddexp(&dt, Array::from_f32(0.0))?;
        let g = softplus.multiply(&self.decay)?.exp()?;
        let mut outputs = Vec::with_capacity(batch.segments.len());
        for (segment, state) in batch.segments.iter().zip(states) {
            let Layer::Recurrent(state) = &mut state.layers[layer] else {
                return Err(Error(format!("layer {layer} has no recurrent state; this is a bug")));
            };
            let mixed = self.conv.forward(&segment.of(&qkv)?, &mut state.conv)?;
            outputs.push(self.recur(&mixed, &segment.of(&g)?, &segment.of(&beta)?, &mut state.delta)?);
        }
        let gated = silu_mul(self.backend, &z, &self.norm.forward(&joined(outputs)?)?)?;
        self.output.forward_onto(&gated, residual)
    }

    /// One sequence's mixed channels `[length, channels]` → `[length, value features]`.
    fn recur(&self, mixed: &Array, g: &Array, beta: &Array, state: &mut Array) -> Result<Array, Error> {
        let (key, value) = (self.key, self.value);
        let width = (key.0 * key.1) as i32;
        let parts = mixed.split_at_indices(&[width, 2 * width], 1)?;
        let unit = (key.1 as f32).powf(-0.5);
        let scaled = |x: &Array, factor: f32| -> Result<Array, Error> {
            let factor = Array::from_f32(factor).as_dtype(x.dtype())?;
            let x = self.unit.forward(x)?.multiply(factor)?;
            Ok(x.reshape(&[-1, key.0 as i32, key.1 as i32])?)
        };
        let (q, k) = (scaled(&parts[0], unit * unit)?, scaled(&parts[1], unit)?);
        let v = parts[2].reshape(&[-1, value.0 as i32, value.1 as i32])?;
        let inputs = DeltaInputs { q: &q, k: &k, v: &v, g, beta };
        Ok(gated_delta(self.backend, &inputs, state)?.reshape(&[-1, (value.0 * value.1) as i32])?)
    }

    /// The state of a sequence of no tokens.
    pub fn fresh(&self) -> Result<Recurrent, Error> {
        let shape = [self.value.0 as i32, self.value.1 as i32, self.key.1 as i32];
        Ok(Recurrent { conv: self.conv.empty()?, delta: ops::zeros_dtype(&shape, mlx_rs::Dtype::Float32)? })
    }
}
