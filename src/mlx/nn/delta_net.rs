//! The gated delta layer of hybrid models (Yang et al. 2024), as Qwen 3.5 has it.

use std::sync::Arc;

use mlx_rs::{Array, ops};

use super::{DeltaInputs, Joined, Layer, Linear, Recurrent, RmsNorm, ShortConv, State, conv, gated_delta, mlp::silu};
use crate::mlx::{
    Backend, Error,
    batch::{Batch, joined},
    config::Config,
    weights::Weights,
};

/// Projections, short convolution, recurrence, gated norm, with the norm in front and the residual around all.
pub struct DeltaNet {
    form: Form,
    /// Of the convolution: its width, its channels.
    conv: (usize, usize),
    key: (usize, usize),   // heads, features a head
    value: (usize, usize), // heads, features a head
    backend: Backend,
}

enum Form {
    Cpu(Arc<mlx_cpu::DeltaNet>),
    Mlx(Box<Parts>),
}

/// The layer for MLX's own ops.
struct Parts {
    input_norm: RmsNorm,
    /// Queries, keys and values as one, then z, b and a.
    projections: Joined,
    conv: ShortConv,
    dt_bias: Array, // [value_heads], f32
    decay: Array,   // [value_heads], -exp(A_log), f32
    unit: RmsNorm,
    norm: RmsNorm,
    output: Linear,
}

impl DeltaNet {
    /// `in_proj_*`, `conv1d`, `dt_bias`, `A_log`, `norm` and `out_proj` behind `input_norm`; sizes by the config's
    /// `linear_*` fields.
    pub async fn load(at: &Weights<'_>, input_norm: RmsNorm, config: Config<'_>) -> Result<DeltaNet, Error> {
        let dim = config.count("hidden_size")?;
        let key = (config.count("linear_num_key_heads")?, config.count("linear_key_head_dim")?);
        let value = (config.count("linear_num_value_heads")?, config.count("linear_value_head_dim")?);
        if !value.0.is_multiple_of(key.0) {
            return Err(Error(format!("config.json: {} value heads do not share {} key heads", value.0, key.0)));
        }
        let channels = 2 * key.0 * key.1 + value.0 * value.1;
        let parts = [
            (at.at("in_proj_qkv"), channels),
            (at.at("in_proj_z"), value.0 * value.1),
            (at.at("in_proj_b"), value.0),
            (at.at("in_proj_a"), value.0),
        ];
        let projections = Joined::load(&parts, dim).await?;
        let width = config.count("linear_conv_kernel_dim")?;
        let taps = conv::taps(&at.at("conv1d"), channels, width)?;
        let dt_bias = at.numbers("dt_bias", value.0)?;
        let decay: Vec<f32> = at.numbers("A_log", value.0)?.into_iter().map(|log| -log.exp()).collect();
        let norm = RmsNorm::load(&at.at("norm"), value.1, config.rms_norm_eps()?)?;
        let output = Linear::load(&at.at("out_proj"), value.0 * value.1, dim).await?;
        let form = match (input_norm, projections.kernel()?, norm, output.kernel()) {
            (RmsNorm::Cpu(input_norm), Some(projections), RmsNorm::Cpu(norm), Some(output)) => {
                let (taps, output) = (taps.into(), output.clone());
                let layer = mlx_cpu::DeltaNet {
                    input_norm,
                    projections,
                    taps,
                    width,
                    dt_bias,
                    decay,
                    key,
                    value,
                    norm,
                    output,
                };
                Form::Cpu(Arc::new(layer))
            }
            (input_norm, _, norm, _) => {
                let array = |values: Vec<f32>| Array::from_slice(&values, &[value.0 as i32]);
                Form::Mlx(Box::new(Parts {
                    input_norm,
                    projections,
                    conv: ShortConv::new(&taps, channels, at.backend())?,
                    dt_bias: array(dt_bias),
                    decay: array(decay),
                    // The l2 norm adds its epsilon to the sum of squares, an rms norm to their mean.
                    unit: RmsNorm::plain(at.backend(), key.1, 1e-6 / key.1 as f32)?,
                    norm,
                    output,
                }))
            }
        };
        Ok(DeltaNet { form, conv: (width, channels), key, value, backend: at.backend() })
    }

    /// `x + layer(norm(x))`, all `[tokens, dim]`. Moves layer `layer` of each sequence's state on.
    pub fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        let mut memories = Vec::with_capacity(states.len());
        for state in states {
            let Layer::Recurrent(state) = &mut state.layers[layer] else {
                return Err(Error(format!("layer {layer} has no recurrent state; this is a bug")));
            };
            memories.push(state);
        }
        match &self.form {
            Form::Cpu(kernel) => {
                let sequences = batch.segments.iter().zip(&memories).map(|(segment, memory)| mlx_cpu::DeltaSequence {
                    tokens: segment.length,
                    conv: memory.conv.clone(),
                    delta: memory.delta.clone(),
                });
                let (output, after) = mlx_cpu::delta_net(kernel, x, sequences.collect())?;
                // From here on only the graph holds the states before, so that they are written to in place.
                for (memory, (conv, delta)) in memories.into_iter().zip(after) {
                    *memory = Recurrent { conv, delta };
                }
                Ok(output)
            }
            Form::Mlx(parts) => parts.forward(x, batch, memories, [self.key, self.value]),
        }
    }

    /// The state of a sequence of no tokens.
    pub fn fresh(&self) -> Result<Recurrent, Error> {
        let delta = [self.value.0 as i32, self.value.1 as i32, self.key.1 as i32];
        let conv = [self.conv.0 as i32 - 1, self.conv.1 as i32];
        Ok(Recurrent {
            conv: ops::zeros_dtype(&conv, conv::dtype(self.backend))?,
            delta: ops::zeros_dtype(&delta, mlx_rs::Dtype::Float32)?,
        })
    }
}

impl Parts {
    /// `heads` is the number and width of the key heads, and of the value heads.
    fn forward(
        &self,
        x: &Array,
        batch: &Batch,
        memories: Vec<&mut Recurrent>,
        heads: [(usize, usize); 2],
    ) -> Result<Array, Error> {
        let parts = self.projections.forward(&self.input_norm.forward(x)?)?;
        let [qkv, z, b, a] = &parts[..] else {
            return Err(Error("a delta layer has four projections; this is a bug".into()));
        };
        let beta = ops::sigmoid(b.as_dtype(mlx_rs::Dtype::Float32)?)?;
        let dt = a.as_dtype(mlx_rs::Dtype::Float32)?.add(&self.dt_bias)?;
        let softplus = ops::logaddexp(&dt, Array::from_f32(0.0))?;
        let g = softplus.multiply(&self.decay)?.exp()?;
        let mut outputs = Vec::with_capacity(batch.segments.len());
        for (segment, memory) in batch.segments.iter().zip(memories) {
            let mixed = self.conv.forward(&segment.of(qkv)?, &mut memory.conv)?;
            let (g, beta) = (segment.of(&g)?, segment.of(&beta)?);
            outputs.push(self.recur(&mixed, [&g, &beta], &mut memory.delta, heads)?);
        }
        let gated = silu(z)?.multiply(self.norm.forward(&joined(outputs)?)?)?;
        self.output.forward_onto(&gated, x)
    }

    /// One sequence's mixed channels `[length, channels]` → `[length, value features]`.
    fn recur(
        &self,
        mixed: &Array,
        [g, beta]: [&Array; 2],
        state: &mut Array,
        [key, value]: [(usize, usize); 2],
    ) -> Result<Array, Error> {
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
        Ok(gated_delta(&inputs, state)?.reshape(&[-1, (value.0 * value.1) as i32])?)
    }
}
