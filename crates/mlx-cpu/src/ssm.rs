//! The state space recurrence as one node over a whole sequence.

use std::sync::Arc;

use mlx_rs::Array;

use crate::{
    Error,
    glue::{f32_output, fits, heads, with_rows},
    kernels::{delta::Recurrent, rows::HeadsMut, ssm as space},
    op::{Dtype, Output, View, apply},
};

/// What a state space layer knows of its heads.
#[derive(Clone)]
pub struct Decay {
    /// `[heads]`, negative: -e^(A_log).
    pub a: Arc<[f32]>,
    /// `[heads]`: how much of the input goes past the state.
    pub skip: Option<Arc<[f32]>>,
}

/// Mamba-2's selective state space over one sequence: `x` `[t, heads, dim]`, `b` and `c` `[t, groups, size]`, `dt`
/// `[t, heads]` (the step itself, after bias and softplus), `state` `[heads, dim, size]` → `[t, heads, dim]` and the
/// state after it.
///
/// # Errors
/// Shapes that do not fit.
pub fn ssm(decay: &Decay, x: &Array, b: &Array, c: &Array, dt: &Array, state: &Array) -> Result<(Array, Array), Error> {
    let whole = x.ndim() == 3
        && b.ndim() == 3
        && b.dim(0) == x.dim(0)
        && c.shape() == b.shape()
        && dt.shape() == [x.dim(0), x.dim(1)]
        && state.shape() == [x.dim(1), x.dim(2), b.dim(2)]
        && x.dim(1) % b.dim(1) == 0
        && decay.a.len() == x.dim(1) as usize
        && decay.skip.as_ref().is_none_or(|skip| skip.len() == decay.a.len());
    fits(whole, || format!("a state space of {:?} and {:?} from {:?}", x.shape(), b.shape(), state.shape()))?;
    let decay = decay.clone();
    let outputs = [f32_output(x.shape()), Output { shape: state.shape(), dtype: Dtype::F32, donor: Some(4) }];
    let made = apply(c"mettle::ssm", &[x, b, c, dt, state], &outputs, move |inputs, outputs| {
        let [output, state] = outputs else { unreachable!("two outputs were asked for") };
        let dim = |input: &View| input.shape()[2] as usize;
        with_rows(&inputs[0], 2, |x| {
            with_rows(&inputs[1], 2, |b| {
                with_rows(&inputs[2], 2, |c| {
                    with_rows(&inputs[3], 1, |dt| {
                        let x = heads(x, dim(&inputs[0]));
                        let (b, c) = (heads(b, dim(&inputs[1])), heads(c, dim(&inputs[2])));
                        let op = space::Ssm { x, b, c, dt, a: &decay.a, d: decay.skip.as_deref() };
                        let mut sequence = [Recurrent { tokens: x.tokens, state: state.slice() }];
                        space::ssm(&op, &mut sequence, HeadsMut::packed(output.slice(), x.heads, x.dim));
                    });
                });
            });
        });
    })?;
    let mut made = made.into_iter();
    let mut next = || made.next().expect("two outputs were asked for");
    Ok((next(), next()))
}
