//! Every op of this crate beside MLX's own on random shapes, odd sizes and strides. MLX is the reference here; the
//! kernels' own tests compare with plain loops, at every dispatch level and number of threads.

#[path = "against_mlx/attention.rs"]
mod attention;
#[path = "against_mlx/inlined.rs"]
mod inlined;
#[path = "against_mlx/layers.rs"]
mod layers;
#[path = "against_mlx/products.rs"]
mod products;
#[path = "against_mlx/sampling.rs"]
mod sampling;
#[path = "against_mlx/support.rs"]
mod support;
