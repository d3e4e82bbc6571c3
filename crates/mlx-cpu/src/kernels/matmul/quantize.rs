//! Activations as int8: each 32 of a row share a scale, the largest of them / 127.

use crate::kernels::{
    level::{Kernel, Level},
    pool,
    rows::{Rows, chunk},
    scratch::Scratch,
    simd::{Dot32, LANES, Simd},
};

/// Rows a task quantizes.
const ROWS: usize = 8;

/// Quantized rows.
pub(super) struct Quantized {
    pub k: usize,
    /// Inputs that share a weight scale.
    pub group: usize,
    /// [m, k]
    q: Scratch<i8>,
    /// [m, k / 32]
    scales: Scratch<f32>,
    /// The sums of `q`, [m, k / 32].
    sums: Scratch<i32>,
    /// The sums of scale * q over a weight group, [m, k / group].
    totals: Scratch<f32>,
}

/// Some rows of [`Quantized`], from some input on.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    q: *const i8,
    scales: *const f32,
    sums: *const i32,
    totals: *const f32,
    k: usize,
    group: usize,
}

impl Quantized {
    pub fn new(x: &Rows, group: usize, level: Level) -> Quantized {
        let (m, k) = (x.count, x.width);
        let mut rows = Quantized {
            k,
            group,
            q: Scratch::new(m * k),
            scales: Scratch::new(m * k / 32),
            sums: Scratch::new(m * k / 32),
            totals: Scratch::new(m * k / group),
        };
        let out = Writer {
            q: rows.q.as_mut_ptr(),
            scales: rows.scales.as_mut_ptr(),
            sums: rows.sums.as_mut_ptr(),
            totals: rows.totals.as_mut_ptr(),
        };
        pool::run(m.div_ceil(ROWS), |task| {
            let out = &out;
            chunk(task, ROWS, m).for_each(|row| level.run(QuantizeRow { x: x.row(row), group, row, out }));
        });
        rows
    }

    /// The rows from `row` on and their inputs from `input`, the first of a weight group, on.
    #[inline(always)]
    pub fn tile(&self, row: usize, input: usize) -> Tile {
        let at = row * self.k + input;
        Tile {
            q: self.q[at..].as_ptr(),
            scales: self.scales[at / 32..].as_ptr(),
            sums: self.sums[at / 32..].as_ptr(),
            totals: self.totals[at / self.group..].as_ptr(),
            k: self.k,
            group: self.group,
        }
    }
}

impl Tile {
    /// The 32 inputs `index` of all rows.
    ///
    /// # Safety
    /// Inside the quantized rows. So it goes for all three.
    #[inline(always)]
    pub unsafe fn dot32(&self, index: usize) -> Dot32 {
        // SAFETY: the caller's promise.
        unsafe {
            Dot32 { x: self.q.add(32 * index), stride: self.k, sums: self.sums.add(index), sum_stride: self.k / 32 }
        }
    }

    /// The scale of a row's 32 inputs `index`.
    #[inline(always)]
    pub unsafe fn scale(&self, row: usize, index: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.scales.add(row * (self.k / 32) + index) }
    }

    /// The sum of a row's inputs over weight group `index`.
    #[inline(always)]
    pub unsafe fn total(&self, row: usize, index: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.totals.add(row * (self.k / self.group) + index) }
    }
}

struct Writer {
    q: *mut i8,
    scales: *mut f32,
    sums: *mut i32,
    totals: *mut f32,
}

// SAFETY: tasks write disjoint rows of the buffers, which outlive them.
unsafe impl Sync for Writer {}

struct QuantizeRow<'a> {
    x: &'a [f32],
    group: usize,
    row: usize,
    out: &'a Writer,
}

impl Kernel for QuantizeRow<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let k = self.x.len();
        for (g, group) in self.x.chunks_exact(self.group).enumerate() {
            let mut total = 0.0;
            for (i, x) in group.chunks_exact(32).enumerate() {
                let at = self.row * k + g * self.group + 32 * i;
                let (a, b) = (s.read(x), s.read(&x[LANES..]));
                let largest = s.largest(s.max(s.abs(a), s.abs(b)));
                let scale = largest / 127.0;
                let inverse = s.splat(if largest > 0.0 { 127.0 / largest } else { 0.0 });
                // SAFETY: `at` is this row's, and the row is this task's; 32 values and one scale and sum fit there.
                unsafe {
                    let sum = s.store_i8(self.out.q.add(at), s.mul(a, inverse))
                        + s.store_i8(self.out.q.add(at + LANES), s.mul(b, inverse));
                    *self.out.scales.add(at / 32) = scale;
                    *self.out.sums.add(at / 32) = sum;
                    total += scale * sum as f32;
                }
            }
            // SAFETY: as above, with one total a group.
            unsafe { *self.out.totals.add((self.row * k) / self.group + g) = total }
        }
    }
}
