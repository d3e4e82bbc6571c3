//! A whole gated delta layer as one node: projections, short convolution, recurrence, gated norm, output.

use std::{ops::Range, sync::Arc};

use mlx_rs::Array;

use crate::{
    Error, Joined, Linear, Norm,
    feed_forward::ROWS,
    glue::{f32_output, fits, heads, with_rows},
    kernels::{
        delta::{self, GatedDelta, Recurrent, ShortConv},
        norm,
        rows::{Heads, HeadsMut, Rows, RowsMut},
        scratch::Scratch,
    },
    op::{Dtype, Output, View, ViewMut, apply},
};

/// x + output(norm(delta rule) * silu(z)), with everything the delta rule reads computed from norm(x).
pub struct DeltaNet {
    pub input_norm: Norm,
    /// Queries, keys and values as one, then z, b and a.
    pub projections: Joined,
    /// `[channels, width]`
    pub taps: Arc<[f32]>,
    pub width: usize,
    /// `[value heads]`
    pub dt_bias: Vec<f32>,
    /// `[value heads]`: -e^(A_log)
    pub decay: Vec<f32>,
    /// Heads and features of one.
    pub key: (usize, usize),
    /// Heads and features of one.
    pub value: (usize, usize),
    /// Over a value head's features.
    pub norm: Norm,
    pub output: Linear,
}

/// One sequence's tokens of a call, and what it remembers.
pub struct DeltaSequence {
    pub tokens: usize,
    /// The last inputs of the convolution, `[width - 1, channels]`.
    pub conv: Array,
    /// `[value heads, value features, key features]`
    pub delta: Array,
}

impl DeltaNet {
    fn channels(&self) -> usize {
        2 * self.key.0 * self.key.1 + self.value.0 * self.value.1
    }

    fn check(&self, x: &Array, sequences: &[DeltaSequence]) -> bool {
        let (channels, heads, width) = (self.channels(), self.value.0, x.dim(1) as usize);
        let tokens: usize = sequences.iter().map(|sequence| sequence.tokens).sum();
        let conv = [self.width as i32 - 1, channels as i32];
        let delta = [heads as i32, self.value.1 as i32, self.key.1 as i32];
        let outer = [self.projections.inputs(), self.output.outputs(), self.input_norm.dim];
        x.ndim() == 2
            && tokens == x.dim(0) as usize
            && outer == [width; 3]
            && self.projections.widths() == [channels, heads * self.value.1, heads, heads]
            && self.taps.len() == channels * self.width
            && [self.dt_bias.len(), self.decay.len()] == [heads; 2]
            && heads.is_multiple_of(self.key.0)
            && self.norm.dim == self.value.1
            && self.output.inputs() == heads * self.value.1
            && sequences.iter().all(|sequence| sequence.conv.shape() == conv && sequence.delta.shape() == delta)
    }

    /// `states` holds each sequence's tokens, convolution state and delta state.
    fn run(&self, x: Rows, mut states: Vec<(usize, &mut [f32], &mut [f32])>, out: &mut [f32]) {
        let ends: Vec<usize> = states
            .iter()
            .scan(0, |end, state| {
                *end += state.0;
                Some(*end)
            })
            .collect();
        let mut first = 0;
        for (x, out) in x.chunks(ROWS).zip(out.chunks_mut(ROWS * x.width)) {
            let rows = first..first + x.count;
            // How many of these rows are each sequence's.
            let share = |index: usize| {
                let begin = if index == 0 { 0 } else { ends[index - 1] };
                let (begin, end) = (begin.max(rows.start), ends[index].min(rows.end));
                end.saturating_sub(begin)
            };
            let (mut conv, mut delta) = (Vec::new(), Vec::new());
            for (index, (_, taps, memory)) in states.iter_mut().enumerate() {
                conv.push(Recurrent { tokens: share(index), state: taps });
                delta.push(Recurrent { tokens: share(index), state: memory });
            }
            self.some(x, &mut conv, &mut delta, out);
            first += x.count;
        }
    }

    fn some(&self, x: Rows, conv: &mut [Recurrent], delta: &mut [Recurrent], out: &mut [f32]) {
        let (m, channels) = (x.count, self.channels());
        let mut normed = Scratch::<f32>::new(m * x.width);
        self.input_norm.run(x, &mut normed);
        let mut projected = Scratch::<f32>::new(self.projections.numbers(m));
        let parts = self.projections.run(Rows::packed(&normed, x.width), &mut projected);
        let mut mixed = Scratch::<f32>::new(m * channels);
        let op = ShortConv { x: parts[0], weight: &self.taps, width: self.width, bias: None, silu: true };
        delta::short_conv(&op, conv, RowsMut::packed(&mut mixed, channels));
        let mut turned = Scratch::<f32>::new(m * 2 * self.key.0 * self.key.1);
        let (q, k) = self.units(&mixed, &mut turned);
        let mut gates = Scratch::<f32>::new(2 * m * self.value.0);
        let (g, beta) = self.gates(parts[2], parts[3], &mut gates);
        let v = part(&mixed, channels, 2 * self.key.0 * self.key.1..channels);
        let op = GatedDelta { q, k, v: heads(v, self.value.1), g, beta };
        let mut told = Scratch::<f32>::new(m * self.value.0 * self.value.1);
        delta::gated_delta(&op, delta, HeadsMut::packed(&mut told, self.value.0, self.value.1));
        let mut gated = Scratch::<f32>::new(told.len());
        let op = norm::RmsNorm {
            x: Heads::packed(&told, self.value.0, self.value.1),
            weight: self.norm.weight.as_deref(),
            eps: self.norm.eps,
            gate: Some(heads(parts[1], self.value.1)),
            add: None,
        };
        norm::rms_norm(&op, HeadsMut::packed(&mut gated, self.value.0, self.value.1));
        self.output.run(Rows::packed(&gated, self.output.inputs()), Some(x), out);
    }

    /// Queries and keys of length one each, the queries divided by the root of a head's features besides.
    fn units<'a>(&self, mixed: &[f32], out: &'a mut [f32]) -> (Heads<'a>, Heads<'a>) {
        let (heads_, dim) = self.key;
        let width = heads_ * dim;
        let root = (dim as f32).powf(-0.5);
        let (q, k) = out.split_at_mut(out.len() / 2);
        for (index, (out, factor)) in [(&mut *q, root * root), (&mut *k, root)].into_iter().enumerate() {
            let x = part(mixed, self.channels(), index * width..(index + 1) * width);
            // Their length adds its epsilon to the sum of squares, a norm to their mean.
            let (weight, eps) = (vec![factor; dim], 1e-6 / dim as f32);
            let op = norm::RmsNorm { x: heads(x, dim), weight: Some(&weight), eps, gate: None, add: None };
            norm::rms_norm(&op, HeadsMut::packed(out, heads_, dim));
        }
        (Heads::packed(q, heads_, dim), Heads::packed(k, heads_, dim))
    }

    /// How much of the memory stays, e^(decay * softplus(a + dt_bias)), and how strongly new values are written,
    /// sigmoid(b).
    fn gates<'a>(&self, b: Rows, a: Rows, out: &'a mut [f32]) -> (Rows<'a>, Rows<'a>) {
        let count = self.value.0;
        let (g, beta) = out.split_at_mut(out.len() / 2);
        for row in 0..a.count {
            let (a, b) = (a.row(row), b.row(row));
            for head in 0..count {
                let dt = a[head] + self.dt_bias[head];
                let softplus = dt.max(0.0) + (-dt.abs()).exp().ln_1p();
                g[row * count + head] = (softplus * self.decay[head]).exp();
                beta[row * count + head] = 1.0 / (1.0 + (-b[head]).exp());
            }
        }
        (Rows::packed(g, count), Rows::packed(beta, count))
    }
}

/// Some columns of rows without gaps.
fn part(rows: &[f32], width: usize, columns: Range<usize>) -> Rows<'_> {
    Rows { data: &rows[columns.start..], count: rows.len() / width, stride: width, width: columns.len() }
}

/// `[tokens, dim]`, sequence after sequence → the same by [`DeltaNet`]'s formula, and each sequence's two states after.
///
/// # Errors
/// Shapes that do not fit.
pub fn delta_net(
    layer: &Arc<DeltaNet>,
    x: &Array,
    sequences: Vec<DeltaSequence>,
) -> Result<(Array, Vec<(Array, Array)>), Error> {
    fits(layer.check(x, &sequences), || format!("a delta layer over {:?} or its states", x.shape()))?;
    let (conv, delta) = ([layer.width as i32 - 1, layer.channels() as i32], {
        [layer.value.0 as i32, layer.value.1 as i32, layer.key.1 as i32]
    });
    let mut outputs = vec![f32_output(x.shape())];
    for index in 0..sequences.len() {
        outputs.push(Output { shape: &conv, dtype: Dtype::F32, donor: Some(1 + 2 * index) });
        outputs.push(Output { shape: &delta, dtype: Dtype::F32, donor: Some(2 + 2 * index) });
    }
    let tokens: Vec<usize> = sequences.iter().map(|sequence| sequence.tokens).collect();
    let layer = layer.clone();
    let made = {
        let states = sequences.iter().flat_map(|sequence| [&sequence.conv, &sequence.delta]);
        let inputs: Vec<&Array> = [x].into_iter().chain(states).collect();
        apply(c"mettle::delta_net", &inputs, &outputs, move |inputs: &[View], outputs: &mut [ViewMut]| {
            let (out, states) = outputs.split_first_mut().expect("the first output is there");
            let states = states.chunks_exact_mut(2).zip(&tokens);
            let states = states.map(|(pair, tokens)| (*tokens, pair[0].slice(), pair[1].slice())).collect();
            with_rows(&inputs[0], 1, |x| layer.run(x, states, out.slice()));
        })?
    };
    // From here on only the graph holds the states before.
    drop(sequences);
    let mut made = made.into_iter();
    let output = made.next().expect("the first output is there");
    let mut states = Vec::new();
    while let (Some(conv), Some(delta)) = (made.next(), made.next()) {
        states.push((conv, delta));
    }
    Ok((output, states))
}
