//! The CPU kernels: functions over slices and strided views. Nothing here knows MLX; `op.rs` is where they meet.
//!
//! # Reading order
//! - [`level`]: which instruction set is used; [`level::Level::run`] is the one door to code compiled for it.
//! - `simd`: vectors of 16 lanes, a token type per instruction set; `math`: exp and its kin over them.
//! - [`pool`]: the threads. [`rows`]: the views. `scratch`: buffers a thread keeps.
//! - [`pack`]: weights as [`matmul`] reads them. [`kv`]: pages of keys and values as [`attention`] reads them.
//! - [`roofline`]: what the machine can do at most.
//! - [`norm`], [`rope`], [`gate`], [`moe`], [`delta`], [`ssm`], [`sample`]: what lies between the products.
//!
//! # What holds throughout
//! - A public function checks shapes and lengths first and panics, naming what does not fit; then it shares out tasks.
//! - Activations are f32. Outputs may hold anything before; every value is written.
//! - The result for a row, a query or a sequence has the same bits whatever it is computed together with and on however
//!   many threads: each result is summed in one order that depends on its own shape only.
//! - Kernels are written once over `Simd`. Only `simd/` and `level` name an instruction set.

// Register tiles are walked by row and block, which index several arrays alike.
#![allow(clippy::needless_range_loop)]

pub mod adjust;
pub mod attention;
pub mod delta;
mod float;
pub mod gate;
pub mod kv;
pub mod level;
pub mod logprobs;
mod math;
pub mod matmul;
pub mod moe;
pub mod norm;
pub mod pack;
pub mod pool;
pub mod roofline;
pub mod rope;
pub mod rows;
pub mod sample;
pub(crate) mod scratch;
mod simd;
pub mod ssm;
#[cfg(test)]
mod testing;
