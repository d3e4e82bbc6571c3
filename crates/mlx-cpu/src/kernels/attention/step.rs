//! What an attention layer does with a batch's new tokens, start to end: norm and rotate queries and keys, write keys
//! and values into the sequences' pages, attend.

use std::ops::Range;

use super::{Attention, Sees, Sequence, attention};
use crate::kernels::{
    kv::{self, Layout},
    level::{Kernel, level},
    norm, pool,
    rope::{Angles, Rotation},
    rows::{Heads, HeadsMut, SharedHeads},
    scratch::Scratch,
    simd::Simd,
};

/// RMS norms of each head's queries and keys, before the rotation.
#[derive(Clone, Copy)]
pub struct Norm<'a> {
    /// [dim]
    pub q: &'a [f32],
    /// [dim]
    pub k: &'a [f32],
    /// Added to the mean of the squares.
    pub eps: f32,
}

/// The new tokens of all sequences, one sequence after the other, and how they attend.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// [tokens, heads, dim]
    pub q: Heads<'a>,
    /// [tokens, kv_heads, dim], and so the values.
    pub k: Heads<'a>,
    pub v: Heads<'a>,
    pub norm: Option<Norm<'a>>,
    pub rotation: Rotation<'a>,
    /// [tokens] of time, height and width, for models that tell them apart; else a token's place in its sequence.
    pub positions: Option<&'a [[i32; 3]]>,
    pub layout: Layout,
    pub scale: f32,
    /// Which positions a query sees.
    pub sees: Sees,
    /// [heads]: a logit of each head that takes part in the softmax and carries no value.
    pub sinks: Option<&'a [f32]>,
    /// Scores x become cap * tanh(x / cap).
    pub soft_cap: Option<f32>,
}

/// A sequence that grows by the next `tokens` of the step.
pub struct Grown<'a> {
    pub tokens: usize,
    /// Positions the pages hold already.
    pub offset: usize,
    /// The pages that the new tokens leave as they are: all before position `offset` rounded down to a page.
    pub full: Vec<&'a [u8]>,
    /// The pages from there on: the first keeps what it holds before position `offset`.
    pub open: Vec<&'a mut [u8]>,
}

/// Computes [`Step`] into `out`, shaped as `q`, and fills the open pages.
///
/// # Panics
/// If the shapes do not fit.
pub fn step(op: &Step, mut sequences: Vec<Grown>, out: HeadsMut) {
    let tokens = check(op, &sequences);
    let mut turned = Scratch::<f32>::new(tokens * op.q.heads * op.q.dim);
    let q = HeadsMut::packed(&mut turned, op.q.heads, op.q.dim).share([tokens, op.q.heads, op.q.dim], "queries");
    write(op, &mut sequences, &q);
    let pages: Vec<Vec<&[u8]>> = sequences
        .iter()
        .map(|sequence| sequence.full.iter().copied().chain(sequence.open.iter().map(|page| &**page)).collect())
        .collect();
    let sequences: Vec<Sequence> = sequences
        .iter()
        .zip(&pages)
        .map(|(of, pages)| Sequence { pages, length: of.offset + of.tokens, queries: of.tokens })
        .collect();
    let attention = Attention {
        q: Heads::packed(&turned, op.q.heads, op.q.dim),
        sequences: &sequences,
        layout: op.layout,
        scale: op.scale,
        sees: op.sees,
        sinks: op.sinks,
        soft_cap: op.soft_cap,
    };
    self::attention(&attention, out);
}

/// Checks what [`attention`] will not; gives the number of tokens.
fn check(op: &Step, sequences: &[Grown]) -> usize {
    let Layout { positions, kv_heads, dim, .. } = op.layout;
    let tokens = sequences.iter().map(|sequence| sequence.tokens).sum();
    op.q.check("queries");
    op.k.check("keys");
    op.v.check("values");
    assert_eq!([op.q.tokens, op.q.dim], [tokens, dim], "tokens and features of queries");
    assert_eq!([op.k.tokens, op.k.heads, op.k.dim], [tokens, kv_heads, dim], "the shape of keys");
    assert_eq!([op.v.tokens, op.v.heads, op.v.dim], [tokens, kv_heads, dim], "the shape of values");
    assert!(op.norm.is_none_or(|norm| norm.q.len() == dim && norm.k.len() == dim), "weights of the norms");
    assert!(op.positions.is_none_or(|positions| positions.len() == tokens), "positions of tokens");
    op.rotation.check(dim);
    for of in sequences {
        assert_eq!(of.full.len(), of.offset / positions, "full pages before position {}", of.offset);
        assert_eq!(of.full.len() + of.open.len(), (of.offset + of.tokens).div_ceil(positions), "open pages");
        assert!(of.open.iter().all(|page| page.len() == op.layout.bytes()), "bytes of a page");
    }
    tokens
}

/// The new positions of one page.
struct Page<'a> {
    bytes: *mut u8,
    /// Which of the step's tokens, and the first one's place in its sequence.
    tokens: Range<usize>,
    place: usize,
    of: std::marker::PhantomData<&'a mut [u8]>,
}

// SAFETY: it stands for an exclusive borrow of a page, which one task has.
unsafe impl Sync for Page<'_> {}

/// Writes keys and values into the open pages and turned queries into `q`, a task a page.
fn write(op: &Step, sequences: &mut [Grown], q: &SharedHeads) {
    let (mut pages, mut first) = (Vec::new(), 0);
    for of in sequences {
        let mut at = of.offset;
        let end = of.offset + of.tokens;
        for page in &mut of.open {
            let stop = (at / op.layout.positions + 1).wrapping_mul(op.layout.positions).min(end);
            let tokens = first + at - of.offset..first + stop - of.offset;
            pages.push(Page { bytes: page.as_mut_ptr(), tokens, place: at, of: std::marker::PhantomData });
            at = stop;
        }
        first += of.tokens;
    }
    let level = level();
    let work = 4 * op.q.tokens * (op.q.heads + 2 * op.k.heads) * op.q.dim;
    pool::run_worth(work, pages.len(), |task| {
        let page = &pages[task];
        // SAFETY: `check` saw that each open page has so many bytes; it is this task's alone.
        let bytes = unsafe { std::slice::from_raw_parts_mut(page.bytes, op.layout.bytes()) };
        level.run(WritePage { op, bytes, tokens: page.tokens.clone(), place: page.place, q });
    });
}

struct WritePage<'a> {
    op: &'a Step<'a>,
    bytes: &'a mut [u8],
    tokens: Range<usize>,
    place: usize,
    q: &'a SharedHeads<'a>,
}

impl Kernel for WritePage<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let WritePage { op, bytes, tokens, place, q } = self;
        let dim = op.layout.dim;
        let mut angles = op.rotation.angles();
        let mut scratch = Scratch::<f32>::new(2 * dim);
        let (normed, key) = scratch.split_at_mut(dim);
        for (token, place) in tokens.zip(place..) {
            let position = op.positions.map_or([place as i32; 3], |positions| positions[token]);
            op.rotation.fill(s, position, &mut angles);
            for head in 0..op.q.heads {
                // SAFETY: each token is one task's.
                let out = unsafe { q.vector(token, head) };
                let norm = op.norm.map(|norm| (norm.q, norm.eps));
                turn(s, &op.rotation, op.q.vector(token, head), norm, &angles, normed, out);
            }
            for head in 0..op.k.heads {
                let norm = op.norm.map(|norm| (norm.k, norm.eps));
                turn(s, &op.rotation, op.k.vector(token, head), norm, &angles, normed, key);
                kv::write(s, &op.layout, bytes, head, place % op.layout.positions, key, op.v.vector(token, head));
            }
        }
    }
}

/// A head's queries or keys, normed where `norm` has weights and an epsilon, and turned.
#[inline(always)]
fn turn<S: Simd>(
    s: S,
    rotation: &Rotation,
    x: &[f32],
    norm: Option<(&[f32], f32)>,
    angles: &Angles,
    normed: &mut [f32],
    out: &mut [f32],
) {
    match norm {
        Some((weight, eps)) => {
            norm::rms_norm_one(s, x, weight, eps, normed);
            rotation.turn(s, normed, angles, out);
        }
        None => rotation.turn(s, x, angles, out),
    }
}
