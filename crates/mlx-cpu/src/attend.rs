//! Attention as one node: rotate, write keys and values into the sequence's pages, attend.

use std::{ops::Range, sync::Arc};

use mlx_rs::Array;

use crate::{
    Error,
    glue::{f32_output, fits, heads, with_rows},
    kernels::{
        attention::{Attention, Sequence, attention},
        kv::{Page, PageMut, kv_append, page_len},
        rope,
        rows::{Heads, HeadsMut, Rows},
    },
    op::{Dtype, Output, View, ViewMut, apply},
};

/// Rotary embedding of the first `dims` features of every head.
pub struct Rope {
    pub dims: usize,
    /// Pairs are (2i, 2i+1) if true, (i, i + dims/2) if false.
    pub interleaved: bool,
    /// Radians a position for each pair, `[dims / 2]`.
    pub inverse: Arc<[f32]>,
    /// On the rotated features.
    pub factor: f32,
}

/// What [`attend`] needs to know besides its arrays.
pub struct Attend {
    pub heads: usize,
    pub kv_heads: usize,
    /// Features a head.
    pub dim: usize,
    /// Positions a page, a multiple of 16.
    pub page: usize,
    /// Positions the pages hold already.
    pub offset: usize,
    pub scale: f32,
    /// A query sees this many positions, its own included.
    pub window: Option<usize>,
    pub rope: Rope,
    /// Keys and values are kept in f16, not in f32.
    pub half: bool,
}

/// Causal attention of one sequence's next tokens: `q` `[t, heads * dim]`, `k` and `v` `[t, kv_heads * dim]`, not
/// rotated yet → `[t, heads * dim]` and the sequence's pages with the new positions in them. A page that nobody else
/// holds is written in place, another one is copied first.
///
/// # Errors
/// Shapes that do not fit.
pub fn attend(
    settings: Attend,
    q: &Array,
    k: &Array,
    v: &Array,
    mut pages: Vec<Array>,
) -> Result<(Array, Vec<Array>), Error> {
    let Attend { heads, kv_heads, dim, page, offset, half, .. } = settings;
    let t = q.dim(0);
    let width = (kv_heads * dim) as i32;
    let whole = q.shape() == [t, (heads * dim) as i32] && k.shape() == [t, width] && v.shape() == k.shape() && t > 0;
    fits(whole, || format!("attention of {:?} over {:?} and {:?}", q.shape(), k.shape(), v.shape()))?;
    fits(pages.len() == offset.div_ceil(page), || format!("{} pages for {offset} positions", pages.len()))?;
    // The pages that the new positions lie in; the first of them may be there already.
    let touched = offset / page..(offset + t as usize).div_ceil(page);
    let page_shape = [page_len(page, kv_heads, dim) as i32];
    let dtype = if half { Dtype::F16 } else { Dtype::F32 };
    let out_shape = [t, (heads * dim) as i32];
    let mut outputs = vec![f32_output(&out_shape)];
    outputs.extend(touched.clone().map(|index| {
        let donor = (index < pages.len()).then_some(3 + index);
        Output { shape: &page_shape, dtype, donor }
    }));
    let made = {
        let inputs: Vec<&Array> = [q, k, v].into_iter().chain(&pages).collect();
        let first = touched.start;
        apply(c"mettle::attend", &inputs, &outputs, move |inputs, outputs| run(&settings, first, inputs, outputs))?
    };
    // From here on only the graph holds a page that is written to.
    pages.truncate(touched.start);
    let mut made = made.into_iter();
    let output = made.next().expect("the first output is there");
    pages.extend(made);
    Ok((output, pages))
}

fn run(settings: &Attend, first: usize, inputs: &[View], outputs: &mut [ViewMut]) {
    let (output, grown) = outputs.split_first_mut().expect("the first output is there");
    let tokens = inputs[0].shape()[0] as usize;
    with_rows(&inputs[0], 1, |q| {
        with_rows(&inputs[1], 1, |k| {
            with_rows(&inputs[2], 1, |v| {
                let (q, k) = (rotated(settings, q), rotated(settings, k));
                let v = heads(v, settings.dim);
                for (index, page) in grown.iter_mut().enumerate() {
                    append(settings, first + index, page, &k, v, index + first >= inputs.len() - 3);
                }
                let old = &inputs[3..3 + first];
                let pages: Vec<Page> = if settings.half {
                    let old = old.iter().map(|page| Page::F16(page.slice().expect("pages are contiguous")));
                    old.chain(grown.iter_mut().map(|page| Page::F16(page.slice()))).collect()
                } else {
                    let old = old.iter().map(|page| Page::F32(page.slice().expect("pages are contiguous")));
                    old.chain(grown.iter_mut().map(|page| Page::F32(page.slice()))).collect()
                };
                let length = settings.offset + tokens;
                let op = Attention {
                    q: Heads::packed(&q, settings.heads, settings.dim),
                    sequences: &[Sequence { pages: &pages, length, queries: tokens }],
                    kv_heads: settings.kv_heads,
                    scale: settings.scale,
                    window: settings.window,
                    sinks: None,
                    soft_cap: None,
                };
                attention(&op, HeadsMut::packed(output.slice(), settings.heads, settings.dim));
            });
        });
    });
}

/// Queries or keys, turned by their positions.
fn rotated(settings: &Attend, x: Rows) -> Vec<f32> {
    let mut out = vec![0.0; x.count * x.width];
    let positions: Vec<i32> = (settings.offset..settings.offset + x.count).map(|at| at as i32).collect();
    let pairing = if settings.rope.interleaved { rope::Pairing::Neighbours } else { rope::Pairing::Halves };
    let op = rope::Rope {
        x: heads(x, settings.dim),
        positions: &positions,
        inv_freq: &settings.rope.inverse,
        pairing,
        scale: settings.rope.factor,
    };
    rope::rope(&op, HeadsMut::packed(&mut out, x.width / settings.dim, settings.dim));
    out
}

/// Writes the tokens that belong into page `index`. A page without a donor is cleared first.
fn append(settings: &Attend, index: usize, page: &mut ViewMut, k: &[f32], v: Heads, fresh: bool) {
    let Attend { kv_heads, dim, page: size, offset, half, .. } = *settings;
    let tokens: Range<usize> = (index * size).saturating_sub(offset)..v.tokens.min((index + 1) * size - offset);
    let at = offset + tokens.start - index * size;
    let keys = Heads::packed(&k[tokens.start * kv_heads * dim..tokens.end * kv_heads * dim], kv_heads, dim);
    let from = tokens.start * v.token_stride;
    let values = Heads { data: &v.data[from..], tokens: tokens.len(), ..v };
    if half {
        let page = page.slice();
        if fresh {
            page.fill(half::f16::ZERO);
        }
        kv_append(PageMut::F16(page), keys, values, at);
    } else {
        let page = page.slice::<f32>();
        if fresh {
            page.fill(0.0);
        }
        kv_append(PageMut::F32(page), keys, values, at);
    }
}
