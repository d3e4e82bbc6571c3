//! A whole attention layer as one node: norm, projections, attention over the sequences' pages, output.

use std::sync::Arc;

use mlx_rs::Array;

use crate::{
    Attend, Error, Growth, Joined, Linear, Norm,
    attend::{grow, part},
    glue::{fits, with_rows},
    kernels::{
        attention::{Grown, step},
        gate::{Activation, gated},
        rows::{HeadsMut, Rows, RowsMut},
        scratch::Scratch,
    },
};

/// x + output(attention of norm(x)).
pub struct AttentionLayer {
    pub norm: Norm,
    /// Queries, keys and values.
    pub projections: Joined,
    pub attend: Attend,
    /// Every head's queries are followed by as many gates: what it finds is multiplied with their sigmoid.
    pub gated: bool,
    pub output: Linear,
}

impl AttentionLayer {
    fn check(&self, x: &Array, tokens: usize) -> bool {
        let Attend { heads, kv_heads, dim, .. } = self.attend;
        let queries = heads * dim * if self.gated { 2 } else { 1 };
        let outer = [self.norm.dim, self.projections.inputs(), self.output.outputs()];
        x.shape() == [tokens as i32, self.norm.dim as i32]
            && tokens > 0
            && outer == [self.norm.dim; 3]
            && self.projections.widths() == [queries, kv_heads * dim, kv_heads * dim]
            && self.output.inputs() == heads * dim
    }

    fn run(&self, grown: Vec<Grown>, x: Rows, positions: Option<&[i32]>, out: &mut [f32]) {
        let Attend { heads, kv_heads, dim, .. } = self.attend;
        let mut normed = Scratch::<f32>::new(x.count * x.width);
        self.norm.run(x, &mut normed);
        let mut projected = Scratch::<f32>::new(self.projections.numbers(x.count));
        let parts = self.projections.run(Rows::packed(&normed, x.width), &mut projected);
        let stride = if self.gated { 2 * dim } else { dim };
        let q = part(parts[0], (0, stride), heads, dim);
        let [k, v] = [parts[1], parts[2]].map(|rows| part(rows, (0, dim), kv_heads, dim));
        let mut found = Scratch::<f32>::new(x.count * heads * dim);
        step(&self.attend.step([q, k, v], positions), grown, HeadsMut::packed(&mut found, heads, dim));
        if !self.gated {
            return self.output.run(Rows::packed(&found, heads * dim), Some(x), out);
        }
        let mut kept = Scratch::<f32>::new(found.len());
        for head in 0..heads {
            let gates = Rows { data: &parts[0].data[head * stride + dim..], width: dim, ..parts[0] };
            let (count, stride, width) = (x.count, heads * dim, dim);
            let found = Rows { data: &found[head * dim..], count, stride, width };
            gated(Activation::Sigmoid, gates, found, RowsMut { data: &mut kept[head * dim..], count, stride, width });
        }
        self.output.run(Rows::packed(&kept, heads * dim), Some(x), out);
    }
}

/// `[tokens, dim]`, sequence after sequence → the same, by [`AttentionLayer`]'s formula. Keys and values are appended to
/// the sequences' pages, as [`attend`](crate::attend) does it.
///
/// # Errors
/// Shapes that do not fit; a failed evaluation of the pages before.
pub fn attention_layer(
    layer: &Arc<AttentionLayer>,
    x: &Array,
    positions: Option<&Array>,
    mut sequences: Vec<Growth>,
) -> Result<Array, Error> {
    let tokens: usize = sequences.iter().map(|sequence| sequence.tokens).sum();
    let bytes = layer.attend.layout().bytes();
    let whole = layer.check(x, tokens)
        && sequences.iter().all(|of| of.tokens > 0 && of.pages.fit(bytes))
        && positions.is_none_or(|at| at.shape() == [tokens as i32, 3] && at.dtype() == mlx_rs::Dtype::Int32);
    fits(whole, || format!("an attention layer of {} features over {:?}", layer.norm.dim, x.shape()))?;
    let inputs: Vec<Array> = [x].into_iter().chain(positions).cloned().collect();
    let with_positions = positions.is_some();
    let (of, shape) = (layer.clone(), x.shape().to_vec());
    grow(layer.attend.layout(), inputs, &shape, &mut sequences, move |grown, inputs, output| {
        let positions: Option<Vec<i32>> = with_positions.then(|| inputs[1].gather());
        with_rows(&inputs[0], 1, |x| of.run(grown, x, positions.as_deref(), output));
    })
}
