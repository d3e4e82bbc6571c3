//! A whole gated feed-forward block as one node: on small models a node's own cost (microseconds, and a core that
//! builds the graph while the others compute) is a good part of a decode step.

use std::sync::Arc;

use mlx_rs::Array;

use crate::{
    Error, Joined, Linear, Norm,
    glue::{f32_output, fits, with_rows},
    kernels::{
        gate::{Activation, gated},
        rows::{Rows, RowsMut},
        scratch::Scratch,
    },
    op::apply_one,
};

/// Rows that go through the block together: what lies between its products stays in the second-level cache.
pub(crate) const ROWS: usize = 256;

/// x + down(activation(gate(norm(x))) * up(norm(x))).
pub struct FeedForward {
    pub norm: Norm,
    pub gate_up: Joined,
    pub activation: Activation,
    pub down: Linear,
}

impl FeedForward {
    fn check(&self, width: usize) -> bool {
        let hidden = self.down.inputs();
        let outer = [self.gate_up.inputs(), self.down.outputs(), self.norm.dim];
        self.gate_up.widths() == [hidden, hidden] && outer == [width; 3]
    }

    fn run(&self, x: Rows, out: &mut [f32]) {
        for (x, out) in x.chunks(ROWS).zip(out.chunks_mut(ROWS * x.width)) {
            let hidden = self.down.inputs();
            let mut normed = Scratch::<f32>::new(x.count * x.width);
            self.norm.run(x, &mut normed);
            let mut both = Scratch::<f32>::new(self.gate_up.numbers(x.count));
            let parts = self.gate_up.run(Rows::packed(&normed, x.width), &mut both);
            let mut inner = Scratch::<f32>::new(x.count * hidden);
            gated(self.activation, parts[0], parts[1], RowsMut::packed(&mut inner, hidden));
            self.down.run(Rows::packed(&inner, hidden), Some(x), out);
        }
    }
}

/// `[tokens, dim]` → the same, by [`FeedForward`]'s formula.
///
/// # Errors
/// Shapes that do not fit.
pub fn feed_forward(block: &Arc<FeedForward>, x: &Array) -> Result<Array, Error> {
    fits(x.ndim() == 2 && block.check(x.dim(1) as usize), || {
        format!("a feed-forward block of {} inputs over {:?}", block.down.outputs(), x.shape())
    })?;
    let block = block.clone();
    apply_one(c"mettle::feed_forward", &[x], f32_output(x.shape()), move |inputs, output| {
        with_rows(&inputs[0], 1, |x| block.run(x, output.slice()));
    })
}
