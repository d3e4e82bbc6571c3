//! The gated delta rule (Yang et al. 2024, arXiv 2412.06464), one step a token, and the short convolution before it.

use std::marker::PhantomData;

use super::{
    level::{Kernel, level},
    norm::{read, write},
    pool,
    rows::{Heads, HeadsMut, Rows, RowsMut, SharedHeads, SharedRows, chunk},
    scratch::Scratch,
    simd::{LANES, Simd},
};

/// Rows of a state a task keeps in its cache over all tokens.
const STATE_ROWS: usize = 32;

/// One sequence's tokens of a call, and its state.
pub struct Recurrent<'a> {
    /// How many of the call's tokens are this sequence's; they follow those of the sequences before.
    pub tokens: usize,
    /// Read before and written after.
    pub state: &'a mut [f32],
}

/// For each token: S = g S; delta = beta (v - S k); S = S + delta kᵀ; out = S q.
#[derive(Clone, Copy)]
pub struct GatedDelta<'a> {
    /// [tokens, hk, dk]; value head h reads key head h / (hv / hk).
    pub q: Heads<'a>,
    /// As `q`.
    pub k: Heads<'a>,
    /// [tokens, hv, dv]
    pub v: Heads<'a>,
    /// [tokens, hv]: the decay itself, not its logarithm.
    pub g: Rows<'a>,
    /// [tokens, hv]
    pub beta: Rows<'a>,
}

/// A state that tasks write in disjoint parts.
#[derive(Clone, Copy)]
pub(super) struct State<'a> {
    data: *mut f32,
    len: usize,
    of: PhantomData<&'a mut [f32]>,
}

// SAFETY: tasks write disjoint parts of plain numbers, behind a borrow that outlives them.
unsafe impl Send for State<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for State<'_> {}

impl<'a> State<'a> {
    /// The state of this sequence, to be changed in place.
    pub fn of(sequence: &'a mut Recurrent) -> State<'a> {
        State { data: sequence.state.as_mut_ptr(), len: sequence.state.len(), of: PhantomData }
    }

    /// `len` numbers from `start` on.
    ///
    /// # Safety
    /// No other live part overlaps this one.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, start: usize, len: usize) -> &'a mut [f32] {
        assert!(start + len <= self.len, "a part outside of its state");
        // SAFETY: inside the state, as just checked; the caller promises that nobody else has this part.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), len) }
    }
}

/// Computes [`GatedDelta`] into `out`, shaped as `v`, and carries the states, [hv, dv, dk] each, forward.
///
/// # Panics
/// If the shapes do not fit.
pub fn gated_delta(op: &GatedDelta, sequences: &mut [Recurrent], out: HeadsMut) {
    let (v, k) = (op.v, op.k);
    let tokens: usize = sequences.iter().map(|sequence| sequence.tokens).sum();
    assert_eq!([op.q.tokens, op.q.heads, op.q.dim], [k.tokens, k.heads, k.dim], "gated delta: queries and keys");
    assert!([k.tokens, v.tokens, op.g.count, op.beta.count] == [tokens; 4], "gated delta: tokens");
    assert_eq!((op.g.width, op.beta.width), (v.heads, v.heads), "gated delta: a gate and a beta for each value head");
    assert!(k.heads > 0 && v.heads.is_multiple_of(k.heads), "{} value heads over {} key heads", v.heads, k.heads);
    for (heads, what) in [(op.q, "queries"), (k, "keys"), (v, "values")] {
        heads.check(what);
    }
    op.g.check("gates");
    op.beta.check("betas");
    let out = out.share([tokens, v.heads, v.dim], "gated delta");
    let parts = v.dim.div_ceil(STATE_ROWS);
    let mut spans = Vec::new();
    let mut first = 0;
    for sequence in sequences {
        assert_eq!(sequence.state.len(), v.heads * v.dim * k.dim, "numbers of a state");
        let tokens = first..first + sequence.tokens;
        first = tokens.end;
        spans.push((tokens, State::of(sequence)));
    }
    let level = level();
    pool::run_worth(4 * tokens * v.heads * v.dim * k.dim, spans.len() * v.heads * parts, |task| {
        let (tokens, state) = &spans[task / (v.heads * parts)];
        let head = task / parts % v.heads;
        let rows = chunk(task % parts, STATE_ROWS, v.dim);
        // SAFETY: these rows of this head are one task's.
        let state = unsafe { state.part((head * v.dim + rows.start) * k.dim, rows.len() * k.dim) };
        level.run(DeltaRows { op, tokens: tokens.clone(), head, rows, state, out: &out });
    });
}

struct DeltaRows<'a> {
    op: &'a GatedDelta<'a>,
    tokens: std::ops::Range<usize>,
    head: usize,
    rows: std::ops::Range<usize>,
    /// [rows, dk]
    state: &'a mut [f32],
    out: &'a SharedHeads<'a>,
}

impl Kernel for DeltaRows<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let op = self.op;
        let dk = op.k.dim;
        let key_head = self.head / (op.v.heads / op.k.heads);
        for token in self.tokens.clone() {
            let (k, q) = (op.k.vector(token, key_head), op.q.vector(token, key_head));
            let (g, beta) = (op.g.row(token)[self.head], op.beta.row(token)[self.head]);
            let v = &op.v.vector(token, self.head)[self.rows.clone()];
            // SAFETY: these values of this head are one task's, for all tokens.
            let out = unsafe { self.out.part(token, self.head, self.rows.clone()) };
            let mut states = self.state.chunks_exact_mut(4 * dk);
            let mut row = 0;
            for state in &mut states {
                step::<S, 4>(s, state, k, q, g, beta, &v[row..], &mut out[row..]);
                row += 4;
            }
            for state in states.into_remainder().chunks_exact_mut(dk) {
                step::<S, 1>(s, state, k, q, g, beta, &v[row..], &mut out[row..]);
                row += 1;
            }
        }
    }
}

/// One token for `R` rows of the state, [R, dk].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn step<S: Simd, const R: usize>(
    s: S,
    state: &mut [f32],
    k: &[f32],
    q: &[f32],
    g: f32,
    beta: f32,
    v: &[f32],
    out: &mut [f32],
) {
    let dk = k.len();
    let mut sums = [s.zero(); R];
    for start in (0..dk).step_by(LANES) {
        let range = start..dk.min(start + LANES);
        let k = read(s, &k[range.clone()]);
        for r in 0..R {
            let state = &mut state[r * dk..][range.clone()];
            let decayed = s.mul(read(s, state), s.splat(g));
            write(s, state, decayed);
            sums[r] = s.fma(decayed, k, sums[r]);
        }
    }
    let mut deltas = [s.zero(); R];
    for r in 0..R {
        deltas[r] = s.splat((v[r] - s.sum(sums[r])) * beta);
    }
    let mut sums = [s.zero(); R];
    for start in (0..dk).step_by(LANES) {
        let range = start..dk.min(start + LANES);
        let (k, q) = (read(s, &k[range.clone()]), read(s, &q[range.clone()]));
        for r in 0..R {
            let state = &mut state[r * dk..][range.clone()];
            let updated = s.fma(deltas[r], k, read(s, state));
            write(s, state, updated);
            sums[r] = s.fma(updated, q, sums[r]);
        }
    }
    for r in 0..R {
        out[r] = s.sum(sums[r]);
    }
}

/// Channels a task convolves.
const CHANNELS: usize = 128;

/// A causal convolution of each channel by itself: out[t] = Σ w[i] x[t - width + 1 + i] (+ bias), then silu if asked.
#[derive(Clone, Copy)]
pub struct ShortConv<'a> {
    /// [tokens, channels]
    pub x: Rows<'a>,
    /// [channels, width], the last tap for the newest input.
    pub weight: &'a [f32],
    pub width: usize,
    /// [channels]
    pub bias: Option<&'a [f32]>,
    pub silu: bool,
}

/// Computes [`ShortConv`] into `out`, shaped as `x`, and carries the states, the last width - 1 inputs
/// [width - 1, channels] of each sequence, forward.
///
/// # Panics
/// If the shapes do not fit.
pub fn short_conv(op: &ShortConv, sequences: &mut [Recurrent], out: RowsMut) {
    let channels = op.x.width;
    op.x.check("short convolution");
    assert!(op.width > 0 && op.weight.len() == channels * op.width, "short convolution: the weight's length");
    assert!(op.bias.is_none_or(|bias| bias.len() == channels), "short convolution: the bias's length");
    let tokens: usize = sequences.iter().map(|sequence| sequence.tokens).sum();
    assert_eq!(tokens, op.x.count, "short convolution: tokens");
    let out = out.share(tokens, channels, "short convolution");
    let mut spans = Vec::new();
    let mut first = 0;
    for sequence in sequences {
        assert_eq!(sequence.state.len(), (op.width - 1) * channels, "numbers of a state");
        let state = RowsMut::packed(&mut *sequence.state, channels).share(op.width - 1, channels, "state");
        spans.push((first..first + sequence.tokens, state));
        first += sequence.tokens;
    }
    let parts = channels.div_ceil(CHANNELS);
    let level = level();
    pool::run_worth(2 * tokens * channels * op.width, spans.len() * parts, |task| {
        let (tokens, state) = &spans[task / parts];
        let channels = chunk(task % parts, CHANNELS, channels);
        level.run(ConvChannels { op, tokens: tokens.clone(), channels, state, out: &out });
    });
}

struct ConvChannels<'a> {
    op: &'a ShortConv<'a>,
    tokens: std::ops::Range<usize>,
    channels: std::ops::Range<usize>,
    state: &'a SharedRows<'a>,
    out: &'a SharedRows<'a>,
}

impl Kernel for ConvChannels<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (taps, past) = (self.op.width, self.op.width - 1);
        // [past + tokens, 16] inputs and [taps, 16] weights of 16 channels.
        let mut inputs = Scratch::<f32>::new((past + self.tokens.len()) * LANES);
        let mut weights = Scratch::<f32>::new(taps * LANES);
        for start in self.channels.clone().step_by(LANES) {
            let count = LANES.min(self.channels.end - start);
            for (tap, weights) in weights.chunks_exact_mut(LANES).enumerate() {
                for lane in 0..count {
                    weights[lane] = self.op.weight[(start + lane) * taps + tap];
                }
            }
            for (index, inputs) in inputs.chunks_exact_mut(LANES).enumerate() {
                inputs[..count].copy_from_slice(match index.checked_sub(past) {
                    // SAFETY: these channels of the state are one task's.
                    None => unsafe { self.state.part(index, start, count) },
                    Some(token) => &self.op.x.row(self.tokens.start + token)[start..start + count],
                });
            }
            for (index, token) in self.tokens.clone().enumerate() {
                let mut y = s.zero();
                for tap in 0..taps {
                    y = s.fma(s.read(&inputs[(index + tap) * LANES..]), s.read(&weights[tap * LANES..]), y);
                }
                if let Some(bias) = self.op.bias {
                    y = s.add(y, read(s, &bias[start..start + count]));
                }
                if self.op.silu {
                    y = s.mul(y, super::math::sigmoid(s, y));
                }
                // SAFETY: these channels of the output are one task's.
                write(s, unsafe { self.out.part(token, start, count) }, y);
            }
            for (index, inputs) in inputs.chunks_exact(LANES).skip(self.tokens.len()).enumerate() {
                // SAFETY: these channels of the state are one task's.
                unsafe { self.state.part(index, start, count) }.copy_from_slice(&inputs[..count]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
