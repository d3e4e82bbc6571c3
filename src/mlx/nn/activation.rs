//! Activations between two linears.

use mlx_rs::{Array, ops};

use crate::mlx::{Backend, Error};

/// A function of each number.
pub struct Activation {
    kind: mlx_cpu::Activation,
    backend: Backend,
}

impl Activation {
    /// The one that a config calls `name`.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn load(name: &str, backend: Backend) -> Result<Activation, Error> {
        let kind = match name {
            "gelu" => mlx_cpu::Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" => mlx_cpu::Activation::GeluTanh,
            "silu" => mlx_cpu::Activation::Silu,
            other => {
                let known = "gelu, gelu_new, gelu_pytorch_tanh and silu";
                return Err(Error(format!("config.json: the activation {other} is not supported ({known} are)")));
            }
        };
        Ok(Activation { kind, backend })
    }

    /// `[tokens, features]` → the same.
    pub fn forward(&self, x: &Array) -> Result<Array, Error> {
        if let Backend::Cpu { .. } = self.backend {
            return Ok(mlx_cpu::activate(self.kind, x)?);
        }
        let number = |number: f32| Array::from_f32(number).as_dtype(x.dtype());
        let gate = match self.kind {
            mlx_cpu::Activation::Silu | mlx_cpu::Activation::Sigmoid => ops::sigmoid(x)?,
            mlx_cpu::Activation::Gelu => {
                let erf = ops::erf(x.multiply(number(std::f32::consts::FRAC_1_SQRT_2)?)?)?;
                erf.add(number(1.0)?)?.multiply(number(0.5)?)?
            }
            mlx_cpu::Activation::GeluTanh => {
                // (1 + tanh(u)) / 2 is sigmoid(2 u).
                let cube = x.multiply(x)?.multiply(x)?.multiply(number(0.044_715)?)?;
                ops::sigmoid(x.add(cube)?.multiply(number(1.595_769)?)?)?
            }
        };
        Ok(gate.multiply(x)?)
    }
}
