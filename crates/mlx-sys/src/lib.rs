//! Raw bindings to mlx-c 0.7.0, generated at build time. See `build.rs` for where MLX comes from.
#![allow(non_upper_case_globals, non_camel_case_types, non_snake_case)]
#![allow(clippy::all, unsafe_op_in_unsafe_fn)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
