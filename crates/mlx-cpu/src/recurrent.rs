//! The recurrences of hybrid models, each as one node over a whole sequence.

use mlx_rs::Array;

use crate::{
    Error,
    glue::{f32_output, fits, heads, with_rows},
    kernels::{
        delta::{self, GatedDelta, Recurrent, ShortConv},
        rows::{HeadsMut, RowsMut},
    },
    op::{Dtype, Output, View, ViewMut, apply},
};

/// A state that moves on: an output that starts as input `donor`.
fn moved(shape: &[i32], donor: usize) -> Output<'_> {
    Output { shape, dtype: Dtype::F32, donor: Some(donor) }
}

fn pair(made: Vec<Array>) -> (Array, Array) {
    let mut made = made.into_iter();
    (made.next().expect("two outputs were asked for"), made.next().expect("two outputs were asked for"))
}

/// A causal depthwise convolution followed by silu: `x` `[t, channels]`, `state` `[width - 1, channels]`, `weight`
/// `[channels, width]` → `[t, channels]` and the state after it.
///
/// # Errors
/// Shapes that do not fit.
pub fn short_conv(x: &Array, state: &Array, weight: &Array) -> Result<(Array, Array), Error> {
    let (channels, width) = (weight.dim(0), weight.dim(1));
    fits(x.ndim() == 2 && x.dim(1) == channels && state.shape() == [width - 1, channels], || {
        format!("a convolution of {:?} by {:?} from {:?}", x.shape(), weight.shape(), state.shape())
    })?;
    let outputs = [f32_output(x.shape()), moved(state.shape(), 1)];
    let made = apply(c"mettle::short_conv", &[x, state, weight], &outputs, |inputs, outputs| {
        let weight = inputs[2].gather::<f32>();
        let [output, state] = outputs else { unreachable!("two outputs were asked for") };
        with_rows(&inputs[0], 1, |x| {
            let (tokens, channels, width) = (x.count, x.width, inputs[2].shape()[1] as usize);
            let op = ShortConv { x, weight: &weight, width, bias: None, silu: true };
            let mut sequence = [Recurrent { tokens, state: state.slice() }];
            delta::short_conv(&op, &mut sequence, RowsMut::packed(output.slice(), channels));
        });
    })?;
    Ok(pair(made))
}

/// The gated delta rule over one sequence: `q`, `k` `[t, key_heads, key_dim]`, `v` `[t, value_heads, value_dim]`, `g`
/// and `beta` `[t, value_heads]`, `state` `[value_heads, value_dim, key_dim]` → `[t, value_heads, value_dim]` and the
/// state after it.
///
/// # Errors
/// Shapes that do not fit.
pub fn gated_delta(
    q: &Array,
    k: &Array,
    v: &Array,
    g: &Array,
    beta: &Array,
    state: &Array,
) -> Result<(Array, Array), Error> {
    let (t, value_heads, value_dim) = (v.dim(0), v.dim(1), v.dim(2));
    let (key_heads, key_dim) = (q.dim(1), q.dim(2));
    let whole = q.shape() == [t, key_heads, key_dim]
        && k.shape() == q.shape()
        && v.ndim() == 3
        && g.shape() == [t, value_heads]
        && beta.shape() == g.shape()
        && state.shape() == [value_heads, value_dim, key_dim]
        && value_heads % key_heads == 0;
    fits(whole, || format!("a gated delta of {:?}, {:?} from {:?}", q.shape(), v.shape(), state.shape()))?;
    let outputs = [f32_output(v.shape()), moved(state.shape(), 5)];
    let made = apply(c"mettle::gated_delta", &[q, k, v, g, beta, state], &outputs, delta_rule)?;
    Ok(pair(made))
}

fn delta_rule(inputs: &[View], outputs: &mut [ViewMut]) {
    let [output, state] = outputs else { unreachable!("two outputs were asked for") };
    let dim = |input: &View| input.shape()[2] as usize;
    with_rows(&inputs[0], 2, |q| {
        with_rows(&inputs[1], 2, |k| {
            with_rows(&inputs[2], 2, |v| {
                with_rows(&inputs[3], 1, |g| {
                    with_rows(&inputs[4], 1, |beta| {
                        let v = heads(v, dim(&inputs[2]));
                        let (q, k) = (heads(q, dim(&inputs[0])), heads(k, dim(&inputs[1])));
                        let op = GatedDelta { q, k, v, g, beta };
                        let mut sequence = [Recurrent { tokens: v.tokens, state: state.slice() }];
                        let out = HeadsMut::packed(output.slice(), v.heads, v.dim);
                        delta::gated_delta(&op, &mut sequence, out);
                    });
                });
            });
        });
    });
}
