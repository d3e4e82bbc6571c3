//! CPU kernels over slices and strided views; nothing here knows MLX.
pub mod attention;
pub mod delta;
pub mod gate;
pub mod kv;
pub mod level;
pub mod matmul;
pub mod norm;
pub mod pack;
pub mod pool;
pub mod rope;
pub mod rows;
mod float;
mod math;
mod scratch;
mod simd;
#[cfg(test)]
mod testing;
