//! What this machine can do at most, for giving speeds as shares of it.

use super::Error;

/// Measured limits of the processor that computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofline {
    /// Bytes a second that all threads read from memory.
    pub reads: f64,
    /// Products of two bytes a second that all threads multiply and add in registers.
    pub products: f64,
}

/// The threads that kernels use and the instruction set they are compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Threads of the kernels.
    pub threads: usize,
    /// The instruction set.
    pub level: String,
}

/// What computes; `None` where that is not the CPU.
///
/// # Errors
/// MLX has no device.
pub fn processor() -> Result<Option<Processor>, Error> {
    let on_cpu = super::on_cpu()?;
    let level = format!("{:?}", mlx_cpu::kernels::level::level());
    Ok(on_cpu.then(|| Processor { threads: mlx_cpu::threads(), level }))
}

/// Measures for some seconds with the threads that kernels use, over a buffer of `bytes`, which should be several
/// times what the caches hold. Measured beside a running model, both are slower.
pub fn roofline(bytes: usize) -> Roofline {
    use mlx_cpu::kernels::roofline::{dot_rate, read_rate};
    Roofline { reads: read_rate(bytes), products: dot_rate() }
}
