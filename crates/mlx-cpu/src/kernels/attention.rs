//! Attention over paged keys and values, grouped heads, many sequences at once.
//!
//! Keys are taken in splits of [`SPLIT`] positions counted from position 0. The softmax of a query over a split is
//! computed from scratch and then merged with those of the splits before it (flash attention's rule). That order is the
//! same however queries are grouped, shared out or split among calls, so a query's result always has the same bits.

mod step;
mod tile;

pub use step::{Grown, Norm, Step, step};

use super::{
    kv::{Layout, Run},
    level::{Kernel, Level, level},
    pool,
    rows::{Heads, HeadsMut, SharedHeads, chunk},
    scratch::Scratch,
    simd::Simd,
};

/// Positions whose softmax is computed at once.
const SPLIT: usize = 512;
/// Most rows (a query's head each) a task works on: what it decodes of a page serves them all, and their scores over a
/// split stay in the second-level cache.
const ROWS: usize = 48;

/// Which positions of its sequence a query sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// Its own and all before it.
    Before,
    /// This many, its own included, and none after it.
    Window(usize),
    /// All, those after it included.
    All,
}

/// One sequence's part of a call.
#[derive(Clone, Copy)]
pub struct Sequence<'a> {
    /// Page i holds positions from i * P on.
    pub pages: &'a [&'a [u8]],
    /// Positions in the pages, those of the queries (the last ones) included.
    pub length: usize,
    /// How many of the call's tokens are this sequence's.
    pub queries: usize,
}

/// softmax(scale * q kᵀ, masked) v.
#[derive(Clone, Copy)]
pub struct Attention<'a> {
    /// All sequences' tokens, one sequence after the other. Query head h reads kv head h / (heads / kv_heads).
    pub q: Heads<'a>,
    pub sequences: &'a [Sequence<'a>],
    pub layout: Layout,
    pub scale: f32,
    /// Which positions a query sees.
    pub sees: Sees,
    /// [heads]: a logit of each head that takes part in the softmax and carries no value.
    pub sinks: Option<&'a [f32]>,
    /// Scores x become cap * tanh(x / cap).
    pub soft_cap: Option<f32>,
}

/// Computes [`Attention`] into `out`, shaped as `q`.
///
/// # Panics
/// If the shapes do not fit.
pub fn attention(op: &Attention, out: HeadsMut) {
    let (q, kv_heads) = (op.q, op.layout.kv_heads);
    q.check("attention");
    assert!(kv_heads > 0 && q.heads.is_multiple_of(kv_heads), "{} heads over {kv_heads} kv heads", q.heads);
    assert_eq!(op.layout.dim, q.dim, "features of a head");
    assert_eq!(op.sequences.iter().map(|sequence| sequence.queries).sum::<usize>(), q.tokens, "queries of sequences");
    assert!(op.sinks.is_none_or(|sinks| sinks.len() == q.heads), "a sink for each head");
    op.sequences.iter().for_each(|sequence| check(op, sequence));
    let jobs = jobs(op);
    let out = out.share([q.tokens, q.heads, q.dim], "attention");
    let level = level();
    let work: usize = jobs.iter().map(Job::work).sum();
    let longest = jobs.iter().map(Job::work).max().unwrap_or(0);
    // Where one job would keep a thread busy while the others have nothing left to do.
    if work * q.dim > 1 << 17 && 2 * longest * pool::threads() > work && pool::threads() > 1 {
        return split(op, &jobs, &out, level);
    }
    pool::run_worth(work * q.dim, jobs.len(), |task| {
        level.run(Whole { op, job: &jobs[task], out: &out });
    });
}

/// Some rows of one kv head of one sequence.
#[derive(Clone)]
struct Job<'a> {
    sequence: Sequence<'a>,
    /// The sequence's first token in the call.
    first: usize,
    kv_head: usize,
    /// Row r is query r / group, head kv_head * group + r % group.
    rows: std::ops::Range<usize>,
    /// The splits in which any row sees a position.
    splits: std::ops::Range<usize>,
}

fn jobs<'a>(op: &Attention<'a>) -> Vec<Job<'a>> {
    let group = op.q.heads / op.layout.kv_heads;
    let mut jobs = Vec::new();
    let mut first = 0;
    for sequence in op.sequences {
        let rows = sequence.queries * group;
        // Long prompts: later queries see more, so their tasks come first and the short ones even out the end.
        for tile in (0..rows.div_ceil(ROWS)).rev() {
            for kv_head in 0..op.layout.kv_heads {
                let rows = chunk(tile, ROWS, rows);
                let mut job = Job { sequence: *sequence, first, kv_head, rows, splits: 0..0 };
                let (begin, end) = job.span(op);
                job.splits = begin / SPLIT..end.div_ceil(SPLIT);
                jobs.push(job);
            }
        }
        first += sequence.queries;
    }
    jobs
}

/// Checks that a sequence's pages hold its positions.
fn check(op: &Attention, sequence: &Sequence) {
    assert!(sequence.queries <= sequence.length, "more queries than positions");
    assert!(sequence.length <= op.layout.positions * sequence.pages.len(), "more positions than pages hold");
    let bytes = op.layout.bytes();
    assert!(sequence.pages.iter().all(|page| page.len() == bytes), "bytes of a page");
}

impl<'a> Job<'a> {
    /// About how long it takes, in scores.
    fn work(&self) -> usize {
        self.splits.len() * SPLIT.min(self.sequence.length) * (self.rows.len() + 2)
    }

    /// The positions that a row sees.
    #[inline(always)]
    fn range(&self, op: &Attention, row: usize) -> (usize, usize) {
        let end = self.sequence.length - self.sequence.queries + row / (op.q.heads / op.layout.kv_heads) + 1;
        match op.sees {
            Sees::Before => (0, end),
            Sees::Window(window) => (end.saturating_sub(window), end),
            Sees::All => (0, self.sequence.length),
        }
    }

    /// The positions that any row sees.
    #[inline(always)]
    fn span(&self, op: &Attention) -> (usize, usize) {
        (self.range(op, self.rows.start).0, self.range(op, self.rows.end - 1).1)
    }

    /// The positions from `begin` to `end`, page by page, each with the position it starts at.
    #[inline(always)]
    fn runs<'b>(&'b self, op: &'b Attention, begin: usize, end: usize) -> impl Iterator<Item = (usize, Run<'b>)> {
        let (layout, pages) = (&op.layout, self.sequence.pages);
        let mut from = begin;
        std::iter::from_fn(move || {
            let (index, at) = (from / layout.positions, from % layout.positions);
            let count = (layout.positions - at).min(end.checked_sub(from).filter(|left| *left > 0)?);
            let next = if (index + 1) * layout.positions < end { pages[index + 1] } else { pages[index] };
            let run = Run { layout, page: pages[index], next, head: self.kv_head, at, count };
            from += count;
            Some((from - count, run))
        })
    }

    /// The call's token and head of a row.
    #[inline(always)]
    fn place(&self, op: &Attention, row: usize) -> (usize, usize) {
        let group = op.q.heads / op.layout.kv_heads;
        (self.first + row / group, self.kv_head * group + row % group)
    }
}

/// The softmax of some rows over some positions: what is needed to merge it with others.
struct Partial {
    /// The largest score, -infinity where a row sees none of the positions; then the rest means nothing.
    max: [f32; ROWS],
    /// Σ e^(score - max)
    sum: [f32; ROWS],
    /// Σ e^(score - max) v, [rows, wide].
    values: Scratch<f32>,
}

impl Partial {
    fn new(rows: usize, wide: usize) -> Self {
        Partial { max: [f32::NEG_INFINITY; ROWS], sum: [0.0; ROWS], values: Scratch::new(rows * wide) }
    }
}

/// Takes the softmax (max, sum, values) of later positions into one row's running softmax.
#[inline(always)]
fn merge<S: Simd>(s: S, into: (&mut f32, &mut f32, &mut [f32]), from: (f32, f32, &[f32])) {
    let (max, sum, values) = into;
    if from.0 == f32::NEG_INFINITY {
        return;
    }
    if *max == f32::NEG_INFINITY {
        (*max, *sum) = (from.0, from.1);
        values.copy_from_slice(from.2);
        return;
    }
    let highest = if *max > from.0 { *max } else { from.0 };
    let old = tile::exp(s, *max - highest);
    let new = tile::exp(s, from.0 - highest);
    (*max, *sum) = (highest, *sum * old + from.1 * new);
    for (into, from) in values.iter_mut().zip(from.2) {
        *into = *into * old + *from * new;
    }
}

/// Divides by the sum, the sink in it, and writes the row.
#[inline(always)]
fn finish<S: Simd>(s: S, op: &Attention, head: usize, max: f32, mut sum: f32, values: &[f32], out: &mut [f32]) {
    let mut factor = 1.0;
    if let Some(sinks) = op.sinks {
        let highest = if max > sinks[head] { max } else { sinks[head] };
        factor = tile::exp(s, max - highest);
        sum = sum * factor + tile::exp(s, sinks[head] - highest);
    }
    let factor = factor / sum;
    for (out, value) in out.iter_mut().zip(values) {
        *out = value * factor;
    }
}

/// A job's rows over all their splits.
struct Whole<'a> {
    op: &'a Attention<'a>,
    job: &'a Job<'a>,
    out: &'a SharedHeads<'a>,
}

impl Kernel for Whole<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (op, job, wide) = (self.op, self.job, self.op.layout.wide());
        let q = tile::scaled_queries(op, job);
        let (mut total, mut part) = (Partial::new(job.rows.len(), wide), Partial::new(job.rows.len(), wide));
        for split in job.splits.clone() {
            tile::softmax(s, op, job, &q, split, &mut part);
            for r in 0..job.rows.len() {
                let values = r * wide..(r + 1) * wide;
                merge(
                    s,
                    (&mut total.max[r], &mut total.sum[r], &mut total.values[values.clone()]),
                    (part.max[r], part.sum[r], &part.values[values]),
                );
            }
        }
        for (r, row) in job.rows.clone().enumerate() {
            let (token, head) = job.place(op, row);
            // SAFETY: each row is one task's.
            let out = unsafe { self.out.vector(token, head) };
            finish(s, op, head, total.max[r], total.sum[r], &total.values[r * wide..(r + 1) * wide], out);
        }
    }
}

/// Few jobs with many splits: a task for each split of each job, then one for each job that merges them in order.
fn split(op: &Attention, jobs: &[Job], out: &SharedHeads, level: Level) {
    let width = op.layout.wide() + 2;
    let tasks: Vec<(usize, usize)> =
        jobs.iter().enumerate().flat_map(|(job, of)| of.splits.clone().map(move |split| (job, split))).collect();
    let rows = jobs.iter().map(|job| job.rows.len()).max().unwrap_or(0);
    let mut parts = Scratch::<f32>::new(tasks.len() * rows * width);
    let shared = super::rows::RowsMut::packed(&mut parts[..], rows * width).share(tasks.len(), rows * width, "splits");
    pool::run(tasks.len(), |task| {
        let (job, split) = tasks[task];
        // SAFETY: each row of the buffer is one task's.
        let part = unsafe { shared.row(task) };
        level.run(OneSplit { op, job: &jobs[job], split, part });
    });
    let firsts: Vec<usize> = jobs
        .iter()
        .scan(0, |next, job| {
            let first = *next;
            *next += job.splits.len();
            Some(first)
        })
        .collect();
    let parts = &parts[..];
    pool::run_worth(parts.len(), jobs.len(), |task| {
        let job = &jobs[task];
        let parts = &parts[firsts[task] * rows * width..][..job.splits.len() * rows * width];
        level.run(Merge { op, job, parts, stride: rows * width, out });
    });
}

struct OneSplit<'a> {
    op: &'a Attention<'a>,
    job: &'a Job<'a>,
    split: usize,
    /// [rows, max then sum then wide values]
    part: &'a mut [f32],
}

impl Kernel for OneSplit<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let wide = self.op.layout.wide();
        let q = tile::scaled_queries(self.op, self.job);
        let mut part = Partial::new(self.job.rows.len(), wide);
        tile::softmax(s, self.op, self.job, &q, self.split, &mut part);
        for (r, to) in self.part.chunks_exact_mut(wide + 2).take(self.job.rows.len()).enumerate() {
            (to[0], to[1]) = (part.max[r], part.sum[r]);
            to[2..].copy_from_slice(&part.values[r * wide..(r + 1) * wide]);
        }
    }
}

struct Merge<'a> {
    op: &'a Attention<'a>,
    job: &'a Job<'a>,
    /// [splits, rows, wide + 2]
    parts: &'a [f32],
    /// Numbers of a split's part.
    stride: usize,
    out: &'a SharedHeads<'a>,
}

impl Kernel for Merge<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let wide = self.op.layout.wide();
        let width = wide + 2;
        let mut values = Scratch::<f32>::new(wide);
        for (r, row) in self.job.rows.clone().enumerate() {
            let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0);
            for split in self.parts.chunks_exact(self.stride) {
                let part = &split[r * width..(r + 1) * width];
                merge(s, (&mut max, &mut sum, &mut values), (part[0], part[1], &part[2..]));
            }
            let (token, head) = self.job.place(self.op, row);
            // SAFETY: each row is one job's, and each job one task's.
            let out = unsafe { self.out.vector(token, head) };
            finish(s, self.op, head, max, sum, &values, out);
        }
    }
}

#[cfg(test)]
mod tests;
