//! Attention as one node for a whole batch: norm and rotate, write keys and values into the sequences' pages, attend.

use std::{ops::Range, sync::Arc};

use mlx_rs::Array;

use crate::{
    Error, Pages,
    glue::{f32_output, fits, with_rows},
    kernels::{
        attention::{Grown, Norm, Sees, Step, step},
        kv::{Format, Layout},
        rope::{Pairing, Rotation},
        rows::{Heads, HeadsMut, Rows},
    },
    op::{Dtype, Output, View, ViewMut, apply},
    pages::{Full, PAGE, Start},
};

/// Rotary embedding of the first `2 * inverse.len()` features of every head.
#[derive(Clone)]
pub struct Rope {
    /// Pairs are (2i, 2i+1) if true, (i, i + dims/2) if false.
    pub interleaved: bool,
    /// Radians a position for each pair, `[dims / 2]`.
    pub inverse: Arc<[f32]>,
    /// On the rotated features.
    pub factor: f32,
    /// Whether a pair turns by a token's place in time (0), height (1) or width (2), `[dims / 2]`; `None`: all by time.
    pub axes: Option<Arc<[u8]>>,
}

/// RMS norms of each head's queries and keys, before the rotation.
#[derive(Clone)]
pub struct QkNorm {
    /// `[dim]`
    pub q: Arc<[f32]>,
    /// `[dim]`
    pub k: Arc<[f32]>,
    pub eps: f32,
}

/// What [`attend`] needs to know besides its arrays: the same for every pass of a layer.
#[derive(Clone)]
pub struct Attend {
    pub heads: usize,
    pub kv_heads: usize,
    /// Features a head.
    pub dim: usize,
    pub scale: f32,
    pub norm: Option<QkNorm>,
    pub rope: Rope,
    /// Which positions a query sees.
    pub sees: Sees,
    /// A logit of each head that takes part in the softmax and carries no value, `[heads]`.
    pub sinks: Option<Arc<[f32]>>,
    /// Scores x become cap * tanh(x / cap).
    pub soft_cap: Option<f32>,
    /// How keys and values are kept.
    pub format: Format,
}

/// Heads within `[tokens, features]`: head h is the columns from `start + h * stride` on.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    pub array: &'a Array,
    pub start: usize,
    pub stride: usize,
}

/// A sequence's next tokens.
pub struct Growth<'a> {
    /// How many of the batch's tokens are its own; sequences lie one after the other.
    pub tokens: usize,
    /// What it remembers of the tokens before.
    pub pages: &'a mut Pages,
}

impl Attend {
    pub(crate) fn layout(&self) -> Layout {
        Layout { format: self.format, positions: PAGE, kv_heads: self.kv_heads, dim: self.dim }
    }

    /// What the kernel computes of queries, keys and values.
    pub(crate) fn step<'a>(&'a self, [q, k, v]: [Heads<'a>; 3], positions: Option<&'a [i32]>) -> Step<'a> {
        let Attend { scale, ref norm, ref rope, sees, ref sinks, soft_cap, .. } = *self;
        Step {
            q,
            k,
            v,
            norm: norm.as_ref().map(|norm| Norm { q: &norm.q, k: &norm.k, eps: norm.eps }),
            rotation: Rotation {
                inv_freq: &rope.inverse,
                axes: rope.axes.as_deref(),
                pairing: if rope.interleaved { Pairing::Neighbours } else { Pairing::Halves },
                scale: rope.factor,
            },
            positions: positions.map(|positions| positions.as_chunks::<3>().0),
            layout: self.layout(),
            scale,
            sees,
            sinks: sinks.as_deref(),
            soft_cap,
        }
    }
}

/// Attention of several sequences' next tokens, not normed nor rotated yet → `[tokens, heads * dim]`. Their keys
/// and values are appended to the sequences' pages. A page that nobody else holds is written in place, another one is
/// copied first. `positions`, `[tokens, 3]` i32, are the tokens' places in time, height and width; without them a token
/// is where its sequence has it.
///
/// # Errors
/// Shapes that do not fit; a failed evaluation of the pages before.
pub fn attend(
    settings: &Attend,
    [q, k, v]: [Part; 3],
    positions: Option<&Array>,
    mut sequences: Vec<Growth>,
) -> Result<Array, Error> {
    let tokens: usize = sequences.iter().map(|sequence| sequence.tokens).sum();
    check(settings, [q, k, v], positions, &sequences, tokens)?;
    let out_shape = [tokens as i32, (settings.heads * settings.dim) as i32];
    let mut inputs: Vec<Array> = [q, k, v].map(|part| part.array.clone()).into();
    inputs.extend(positions.cloned());
    let settings = settings.clone();
    let columns = [q, k, v].map(|part| (part.start, part.stride));
    let with_positions = positions.is_some();
    grow(settings.layout(), inputs, &out_shape, &mut sequences, move |grown, inputs, output| {
        let Attend { heads, kv_heads, dim, .. } = settings;
        let positions: Option<Vec<i32>> = with_positions.then(|| inputs[3].gather());
        with_rows(&inputs[0], 1, |rows| {
            let q = part(rows, columns[0], heads, dim);
            with_rows(&inputs[1], 1, |rows| {
                let k = part(rows, columns[1], kv_heads, dim);
                with_rows(&inputs[2], 1, |rows| {
                    let v = part(rows, columns[2], kv_heads, dim);
                    let op = settings.step([q, k, v], positions.as_deref());
                    step(&op, grown, HeadsMut::packed(output, heads, dim));
                });
            });
        });
    })
}

/// Makes a node of these inputs and of one output besides the pages of `sequences`, which grow by their tokens. `run` is
/// given the pages to read and to write, the inputs and the output.
pub(crate) fn grow(
    layout: Layout,
    mut inputs: Vec<Array>,
    out_shape: &[i32],
    sequences: &mut [Growth],
    run: impl Fn(Vec<Grown>, &[View], &mut [f32]) + Send + Sync + 'static,
) -> Result<Array, Error> {
    let page_shape = [layout.bytes() as i32];
    let mut outputs = vec![f32_output(out_shape)];
    let mut plans = Vec::with_capacity(sequences.len());
    for sequence in &mut *sequences {
        let Start { offset, full, open } = sequence.pages.grow()?;
        let fresh = open.is_none();
        let donor = open.map(|page| {
            inputs.push(page);
            inputs.len() - 1
        });
        let pages = offset / PAGE..(offset + sequence.tokens).div_ceil(PAGE);
        for index in pages.clone() {
            let donor = donor.filter(|_| index == pages.start);
            outputs.push(Output { shape: &page_shape, dtype: Dtype::U8, donor });
        }
        plans.push(Plan { tokens: sequence.tokens, offset, full, fresh, pages });
    }
    let held: Vec<&Array> = inputs.iter().collect();
    let pages: Vec<usize> = plans.iter().map(|of| of.pages.len()).collect();
    let made = apply(c"mettle::attention", &held, &outputs, move |inputs: &[View], outputs: &mut [ViewMut]| {
        let (output, mut pages) = outputs.split_first_mut().expect("the first output is there");
        let mut grown = Vec::with_capacity(plans.len());
        for of in &plans {
            let (own, rest) = pages.split_at_mut(of.pages.len());
            pages = rest;
            let mut open: Vec<&mut [u8]> = own.iter_mut().map(ViewMut::slice).collect();
            open.iter_mut().skip(usize::from(!of.fresh)).for_each(|page| page.fill(0));
            let full = of.full.iter().map(Full::bytes).collect();
            grown.push(Grown { tokens: of.tokens, offset: of.offset, full, open });
        }
        run(grown, inputs, output.slice());
    })?;
    let mut made = made.into_iter();
    let output = made.next().expect("the first output is there");
    for (sequence, pages) in sequences.iter_mut().zip(pages) {
        sequence.pages.grown(sequence.tokens, made.by_ref().take(pages).collect());
    }
    Ok(output)
}

fn check(
    settings: &Attend,
    parts: [Part; 3],
    positions: Option<&Array>,
    sequences: &[Growth],
    tokens: usize,
) -> Result<(), Error> {
    let Attend { heads, kv_heads, dim, .. } = *settings;
    for (part, heads) in parts.into_iter().zip([heads, kv_heads, kv_heads]) {
        let shape = part.array.shape();
        let needed = part.start + (heads - 1) * part.stride + dim;
        fits(shape.len() == 2 && shape[0] as usize == tokens && needed <= shape[1] as usize, || {
            format!("attention of {tokens} tokens, {heads} heads of {dim}, in {shape:?} from column {}", part.start)
        })?;
    }
    fits(sequences.iter().all(|of| of.tokens > 0) && tokens > 0, || "attention of no tokens".into())?;
    fits(positions.is_none_or(|at| at.shape() == [tokens as i32, 3] && at.dtype() == mlx_rs::Dtype::Int32), || {
        format!("positions of {tokens} tokens as {:?}", positions.map(Array::shape))
    })?;
    let bytes = settings.layout().bytes();
    fits(sequences.iter().all(|of| of.pages.fit(bytes)), || format!("pages that are not of {bytes} bytes"))
}

/// One sequence of a node.
struct Plan {
    tokens: usize,
    offset: usize,
    /// The pages before those written to.
    full: Arc<Vec<Full>>,
    /// Whether the first page written to holds nothing yet.
    fresh: bool,
    /// The pages written to, by their place among the sequence's.
    pages: Range<usize>,
}

/// Heads within rows.
pub(crate) fn part(rows: Rows, (start, stride): (usize, usize), heads: usize, dim: usize) -> Heads {
    let data = rows.data.get(start..).unwrap_or_default();
    Heads { data, tokens: rows.count, heads, dim, token_stride: rows.stride, head_stride: stride }
}
