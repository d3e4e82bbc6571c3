//! A linear layer as kernels run it, and as one node.

use std::sync::Arc;

use mlx_rs::Array;

use crate::{
    Error, Weights,
    glue::{f32_output, fits, with_rows},
    kernels::{
        matmul::{self as product, Mode},
        rows::{Rows, RowsMut},
    },
    op::apply_one,
};

/// y = x Wᵀ (+ bias). Clones share the weights.
#[derive(Clone)]
pub struct Linear {
    pub weights: Weights,
    /// `[outputs]`
    pub bias: Option<Arc<[f32]>>,
    pub mode: Mode,
}

impl Linear {
    /// Features of the input.
    pub fn inputs(&self) -> usize {
        self.weights.layout.k
    }

    /// Features of the output.
    pub fn outputs(&self) -> usize {
        self.weights.layout.n
    }

    /// Writes y (+ `add`) to `out`, rows without gaps.
    pub(crate) fn run(&self, x: Rows, add: Option<Rows>, out: &mut [f32]) {
        let Linear { weights, bias, mode } = self;
        let op = product::Matmul { packed: &weights.layout, data: weights.bytes(), x, add, mode: *mode };
        product::matmul(&op, RowsMut::packed(&mut *out, self.outputs()));
        if let Some(bias) = bias {
            for row in out.chunks_exact_mut(self.outputs()) {
                row.iter_mut().zip(&bias[..]).for_each(|(y, bias)| *y += bias);
            }
        }
    }
}

/// Linears over one input, stacked into one where their weights have one form: the input is quantised once then.
#[derive(Clone)]
pub struct Joined {
    linears: Vec<Linear>,
    /// Outputs of each part, in order.
    widths: Vec<usize>,
}

impl Joined {
    /// `linears` is one for all of `widths`, or one for each.
    ///
    /// # Errors
    /// Linears whose outputs are not these, or that read different inputs.
    pub fn new(linears: Vec<Linear>, widths: &[usize]) -> Result<Joined, Error> {
        let outputs: Vec<usize> = linears.iter().map(Linear::outputs).collect();
        let whole = outputs == widths || outputs == [widths.iter().sum::<usize>()];
        let alike = linears.windows(2).all(|pair| pair[0].inputs() == pair[1].inputs());
        fits(whole && alike, || format!("linears of {outputs:?} outputs for parts of {widths:?}"))?;
        Ok(Joined { linears, widths: widths.to_vec() })
    }

    /// Features of the input.
    pub fn inputs(&self) -> usize {
        self.linears[0].inputs()
    }

    /// Features of each output.
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// Numbers that [`Joined::run`] needs for `rows` rows.
    pub(crate) fn numbers(&self, rows: usize) -> usize {
        rows * self.widths.iter().sum::<usize>()
    }

    /// Computes all parts into `out` and gives each part's rows.
    pub(crate) fn run<'a>(&self, x: Rows, out: &'a mut [f32]) -> Vec<Rows<'a>> {
        let mut at = 0;
        for linear in &self.linears {
            let end = at + x.count * linear.outputs();
            linear.run(x, None, &mut out[at..end]);
            at = end;
        }
        let (out, stacked) = (&*out, self.linears.len() < self.widths.len());
        let starts = self.widths.iter().scan(0, |at, width| Some(std::mem::replace(at, *at + width)));
        let total = self.widths.iter().sum();
        starts
            .zip(&self.widths)
            .map(|(start, &width)| {
                if stacked {
                    Rows { data: &out[start..], count: x.count, stride: total, width }
                } else {
                    Rows::packed(&out[start * x.count..][..width * x.count], width)
                }
            })
            .collect()
    }
}

/// `x Wᵀ (+ bias) (+ residual)`: `[m, inputs]` → `[m, outputs]`, f32.
///
/// # Errors
/// Shapes that do not fit, activations that are not f32.
pub fn linear(linear: &Linear, x: &Array, residual: Option<&Array>) -> Result<Array, Error> {
    let (inputs, outputs) = (linear.inputs(), linear.outputs());
    fits(x.ndim() == 2 && x.dim(1) as usize == inputs, || {
        format!("a matmul of {:?} by [{outputs}, {inputs}]", x.shape())
    })?;
    let shape = [x.dim(0), outputs as i32];
    if let Some(residual) = residual {
        fits(residual.shape() == shape, || format!("a residual of {:?} for {shape:?}", residual.shape()))?;
    }
    let linear = linear.clone();
    let arrays: Vec<&Array> = [x].into_iter().chain(residual).collect();
    apply_one(c"mettle::linear", &arrays, f32_output(&shape), move |inputs, output| {
        with_rows(&inputs[0], 1, |x| match inputs.get(1) {
            Some(residual) => with_rows(residual, 1, |add| linear.run(x, Some(add), output.slice())),
            None => linear.run(x, None, output.slice()),
        });
    })
}
