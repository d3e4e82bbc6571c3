//! An activation by itself, as one node.

use mlx_rs::Array;

use crate::{
    Error,
    glue::{f32_output, fits, with_rows},
    kernels::{
        gate::{self, Activation},
        rows::RowsMut,
    },
    op::apply_one,
};

/// activation(x): `[tokens, features]` → the same.
///
/// # Errors
/// No axis to go along.
pub fn activate(activation: Activation, x: &Array) -> Result<Array, Error> {
    let shape = x.shape().to_vec();
    fits(!shape.is_empty(), || format!("an activation of {shape:?}"))?;
    apply_one(c"mettle::activate", &[x], f32_output(&shape), move |inputs, output| {
        with_rows(&inputs[0], 1, |x| gate::activated(activation, x, RowsMut::packed(output.slice(), x.width)));
    })
}
