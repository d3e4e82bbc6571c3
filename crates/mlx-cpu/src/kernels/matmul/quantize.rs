//! Activations as two int8 each: 32 of a row (16 where the weights' groups are of 16) share a scale, the largest of them / 127; what rounding to that scale
//! leaves over is kept in 254ths of it. One int8 alone costs an answer of 400 tokens seven of them (SmolLM2 against
//! f32), two cost one or two; decoding waits for memory all the same.

use crate::kernels::{
    level::{Kernel, Level},
    pool,
    rows::{Rows, chunk},
    scratch::Scratch,
    simd::{Dot32, LANES, Simd, kind},
};

/// Rows a task quantizes.
const ROWS: usize = 8;
/// Steps of the low int8 in one of the high.
const STEPS: f32 = 254.0;
/// Added and taken off again, it rounds an f32 to whole numbers, ties to even.
const ROUND: f32 = 12_582_912.0;

/// Quantized rows.
pub(super) struct Quantized {
    pub k: usize,
    /// Inputs that share a weight scale.
    pub group: usize,
    /// Inputs that share a scale of their own, those of one dot: 32 or 16.
    part: usize,
    high: Plane,
    low: Plane,
    /// [m, k / part]
    scales: Scratch<f32>,
    /// The sums of scale * (high + low / 254) over a weight group, [m, k / group].
    totals: Scratch<f32>,
}

/// One int8 of each activation.
struct Plane {
    /// [m, k]
    q: Scratch<i8>,
    /// The sums of `q`, [m, k / part].
    sums: Scratch<i32>,
}

impl Plane {
    fn new(m: usize, k: usize, part: usize) -> Plane {
        Plane { q: Scratch::new(m * k), sums: Scratch::new(m * k / part) }
    }

    #[inline(always)]
    fn at(&self, at: usize, part_at: usize, k: usize, parts: usize) -> Dot32 {
        Dot32 { x: self.q[at..].as_ptr(), stride: k, sums: self.sums[part_at..].as_ptr(), sum_stride: parts }
    }
}

/// Some rows of [`Quantized`], from some input on.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    high: Dot32,
    low: Dot32,
    scales: *const f32,
    totals: *const f32,
    /// Dots and weight groups of a row.
    parts: usize,
    groups: usize,
}

impl Quantized {
    pub fn new(x: &Rows, group: usize, part: usize, level: Level) -> Quantized {
        let (m, k) = (x.count, x.width);
        let mut rows = Quantized {
            k,
            group,
            part,
            high: Plane::new(m, k, part),
            low: Plane::new(m, k, part),
            scales: Scratch::new(m * k / part),
            totals: Scratch::new(m * k / group),
        };
        let out = Writer {
            planes: [&mut rows.high, &mut rows.low].map(|plane| (plane.q.as_mut_ptr(), plane.sums.as_mut_ptr())),
            scales: rows.scales.as_mut_ptr(),
            totals: rows.totals.as_mut_ptr(),
        };
        pool::run(m.div_ceil(ROWS), |task| {
            let out = &out;
            chunk(task, ROWS, m).for_each(|row| level.run(QuantizeRow { x: x.row(row), group, part, row, out }));
        });
        rows
    }

    /// The rows from `row` on and their inputs from `input`, the first of a weight group, on.
    #[inline(always)]
    pub fn tile(&self, row: usize, input: usize) -> Tile {
        let at = row * self.k + input;
        // Shifts, where a division would show in a short row.
        let (part_at, parts) = if self.part == 32 { (at / 32, self.k / 32) } else { (at / 16, self.k / 16) };
        Tile {
            high: self.high.at(at, part_at, self.k, parts),
            low: self.low.at(at, part_at, self.k, parts),
            scales: self.scales[part_at..].as_ptr(),
            totals: self.totals[at / self.group..].as_ptr(),
            parts,
            groups: self.k / self.group,
        }
    }
}

impl Tile {
    /// The exact products of a part's weights of 16 outputs of `C` blocks with the inputs of part `index` of `R` rows,
    /// in units of the inputs' scale.
    ///
    /// # Safety
    /// Inside the quantized rows, and the weights are there. So it goes for all three.
    #[inline(always)]
    pub unsafe fn dot32<S: Simd, const R: usize, const C: usize, const KIND: u8>(
        &self,
        s: S,
        weights: [*const u8; C],
        index: usize,
    ) -> [[S::F; C]; R] {
        let part = |plane: Dot32| {
            // SAFETY: the caller's promise.
            unsafe { Dot32 { x: plane.x.add(kind::inputs(KIND) * index), sums: plane.sums.add(index), ..plane } }
        };
        // SAFETY: the caller's promise.
        let (mut dots, low) = unsafe {
            (s.dot32::<R, C, KIND>(weights, part(self.high)), s.dot32::<R, C, KIND>(weights, part(self.low)))
        };
        let step = s.splat(1.0 / STEPS);
        for r in 0..R {
            for c in 0..C {
                dots[r][c] = s.fma(low[r][c], step, dots[r][c]);
            }
        }
        dots
    }

    /// The scale of a row's inputs of part `index`.
    #[inline(always)]
    pub unsafe fn scale(&self, row: usize, index: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.scales.add(row * self.parts + index) }
    }

    /// The sum of a row's inputs over weight group `index`.
    #[inline(always)]
    pub unsafe fn total(&self, row: usize, index: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.totals.add(row * self.groups + index) }
    }
}

struct Writer {
    /// Values and sums of high and low.
    planes: [(*mut i8, *mut i32); 2],
    scales: *mut f32,
    totals: *mut f32,
}

// SAFETY: tasks write disjoint rows of the buffers, which outlive them.
unsafe impl Sync for Writer {}

struct QuantizeRow<'a> {
    x: &'a [f32],
    group: usize,
    part: usize,
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
            for (i, x) in group.chunks_exact(self.part).enumerate() {
                let at = self.row * k + g * self.group + self.part * i;
                let (a, b) = (s.read(x), if self.part > LANES { s.read(&x[LANES..]) } else { s.zero() });
                let largest = s.largest(s.max(s.abs(a), s.abs(b)));
                let scale = largest / 127.0;
                let inverse = s.splat(if largest > 0.0 { 127.0 / largest } else { 0.0 });
                let (a, b) = (s.mul(a, inverse), s.mul(b, inverse));
                // SAFETY: `at` is this row's, and the row is this task's; a part's values and one scale and sum fit there.
                unsafe {
                    let high = store(s, self.out.planes[0], at, self.part, a, b);
                    let low = store(s, self.out.planes[1], at, self.part, rest(s, a), rest(s, b));
                    *self.out.scales.add(at / self.part) = scale;
                    total += scale * (high as f32 + low as f32 / STEPS);
                }
            }
            // SAFETY: as above, with one total a group.
            unsafe { *self.out.totals.add((self.row * k) / self.group + g) = total }
        }
    }
}

/// What rounding to whole numbers leaves over, in 254ths.
#[inline(always)]
fn rest<S: Simd>(s: S, x: S::F) -> S::F {
    let rounded = s.sub(s.add(x, s.splat(ROUND)), s.splat(ROUND));
    s.mul(s.sub(x, rounded), s.splat(STEPS))
}

/// Writes a part, 16 or 32 values, to a plane from `at` on; gives their sum.
///
/// # Safety
/// The plane has room for them and their sum, and nobody else writes there.
#[inline(always)]
unsafe fn store<S: Simd>(s: S, (q, sums): (*mut i8, *mut i32), at: usize, part: usize, a: S::F, b: S::F) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sum = s.store_i8(q.add(at), a);
        if part > LANES {
            sum += s.store_i8(q.add(at + LANES), b);
        }
        *sums.add(at / part) = sum;
        sum
    }
}
