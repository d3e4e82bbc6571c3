//! Activations as two int8 each: a part of a row, 32 of them (16 where the weights' groups are of 16), shares a scale, the
//! largest of them / 127; what rounding to that scale leaves over is kept in 254ths of it. One int8 alone costs an answer of 400 tokens seven of them (SmolLM2 against
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
/// Rows that lie together: those of one part side by side. Rows lying one after the other would, at the
/// usual widths, all fall into the same sets of the first-level cache; and a tile of AMX is 16 rows.
pub(super) const BAND: usize = 16;
/// Steps of the low int8 in one of the high.
const STEPS: f32 = 254.0;
/// Added and taken off again, it rounds an f32 to whole numbers, ties to even.
const ROUND: f32 = 12_582_912.0;

/// Quantized rows, in bands of [`BAND`]; the last has as many as are left. "rows" below is a band's number of them.
pub(super) struct Quantized {
    m: usize,
    k: usize,
    /// Inputs that share a weight scale.
    pub group: usize,
    /// Inputs that share a scale of their own, those of one dot.
    part: usize,
    /// High and low int8: for each band [k / part, 2, rows, part].
    q: Scratch<i8>,
    /// The sums of each part of `q`: for each band [k / part, 2, rows].
    sums: Scratch<i32>,
    /// For each band [k / part, rows].
    scales: Scratch<f32>,
    /// The sums of scale * (high + low / 254) over a weight group: for each band [k / group, rows].
    totals: Scratch<f32>,
}

/// Some rows of a band of [`Quantized`], from some input on.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    q: *const i8,
    sums: *const i32,
    scales: *const f32,
    totals: *const f32,
    /// Rows of the band.
    rows: usize,
}

impl Quantized {
    /// Quantizes all rows. `group` is the inputs of a group of the weights, `part` those of one dot product.
    pub fn new(x: &Rows, group: usize, part: usize, level: Level) -> Quantized {
        let (m, k) = (x.count, x.width);
        let mut rows = Quantized {
            m,
            k,
            group,
            part,
            q: Scratch::new(2 * m * k),
            sums: Scratch::new(2 * m * k / part),
            scales: Scratch::new(m * k / part),
            totals: Scratch::new(m * k / group),
        };
        let out = Writer {
            q: rows.q.as_mut_ptr(),
            sums: rows.sums.as_mut_ptr(),
            scales: rows.scales.as_mut_ptr(),
            totals: rows.totals.as_mut_ptr(),
        };
        pool::run(m.div_ceil(ROWS), |task| {
            let out = &out;
            chunk(task, ROWS, m).for_each(|row| {
                let place = Place::new(row, m, k, part);
                level.run(QuantizeRow { x: x.row(row), group, place, out });
            });
        });
        rows
    }

    /// The rows from `row` to the end of its band and their inputs from `input`, the first of a weight group, on.
    #[inline(always)]
    pub fn tile(&self, row: usize, input: usize) -> Tile {
        let place = Place::new(row, self.m, self.k, self.part);
        let part = place.part(place.in_parts(input));
        Tile {
            q: self.q[self.part * (2 * part.first + part.row)..].as_ptr(),
            sums: self.sums[2 * part.first + part.row..].as_ptr(),
            scales: self.scales[part.first + part.row..].as_ptr(),
            totals: self.totals[place.total(input / self.group, self.group)..].as_ptr(),
            rows: place.rows,
        }
    }
}

/// Where a row lies.
#[derive(Clone, Copy)]
struct Place {
    /// Numbers in the bands before its band, of a plane of one number for each activation.
    before: usize,
    /// Rows of its band.
    rows: usize,
    /// Its row in the band.
    row: usize,
    /// Inputs of a part.
    part: usize,
}

/// Where a row's part lies, in parts.
struct Part {
    /// Parts before the first of the band's rows with this part.
    first: usize,
    row: usize,
}

impl Place {
    #[inline(always)]
    fn new(row: usize, m: usize, k: usize, part: usize) -> Place {
        let first = row / BAND * BAND;
        Place { before: first * k, rows: BAND.min(m - first), row: row - first, part }
    }
    /// Shifts, where a division would show in a short row.
    #[inline(always)]
    fn in_parts(self, inputs: usize) -> usize {
        if self.part == 32 { inputs / 32 } else { inputs / 16 }
    }
    #[inline(always)]
    fn part(self, index: usize) -> Part {
        Part { first: self.in_parts(self.before) + index * self.rows, row: self.row }
    }
    #[inline(always)]
    fn total(self, index: usize, group: usize) -> usize {
        self.before / group + index * self.rows + self.row
    }
}

impl Tile {
    /// The exact products of a part's weights of 16 outputs of `C` blocks with part `index` of `R` rows, in units of the
    /// part's scale.
    ///
    /// # Safety
    /// Inside the quantized rows of a band, and the weights are there. So it goes for all that follow.
    #[inline(always)]
    pub unsafe fn dot32<S: Simd, const R: usize, const C: usize, const KIND: u8>(
        &self,
        s: S,
        weights: [*const u8; C],
        index: usize,
    ) -> [[S::F; C]; R] {
        let plane = |plane: usize| {
            let at = (2 * index + plane) * self.rows;
            // SAFETY: the caller's promise.
            unsafe { Dot32 { x: self.q.add(kind::inputs(KIND) * at), sums: self.sums.add(at) } }
        };
        // SAFETY: the caller's promise.
        let (high, low) =
            unsafe { (s.dot32::<R, C, KIND>(weights, plane(0)), s.dot32::<R, C, KIND>(weights, plane(1))) };
        let mut dots = high;
        for r in 0..R {
            for c in 0..C {
                dots[r][c] = join(s, high[r][c], low[r][c]);
            }
        }
        dots
    }

    /// The high digits of the rows' part `index`, 32 inputs a row, and the low ones.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn digits(&self, index: usize) -> [*const i8; 2] {
        let high = self.q.wrapping_add(64 * self.rows * index);
        [high, high.wrapping_add(32 * self.rows)]
    }

    /// The scale of a row's part `index`.
    #[inline(always)]
    pub unsafe fn scale(&self, row: usize, index: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.scales.add(self.rows * index + row) }
    }

    /// The sum of a row's inputs over weight group `index`.
    #[inline(always)]
    pub unsafe fn total(&self, row: usize, index: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *self.totals.add(self.rows * index + row) }
    }
}

/// Products with both int8, in units of the high one's scale.
#[inline(always)]
pub(super) fn join<S: Simd>(s: S, high: S::F, low: S::F) -> S::F {
    s.fma(low, s.splat(1.0 / STEPS), high)
}

struct Writer {
    q: *mut i8,
    sums: *mut i32,
    scales: *mut f32,
    totals: *mut f32,
}

// SAFETY: tasks write disjoint rows of the buffers, which outlive them.
unsafe impl Sync for Writer {}

struct QuantizeRow<'a> {
    x: &'a [f32],
    group: usize,
    place: Place,
    out: &'a Writer,
}

impl Kernel for QuantizeRow<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let QuantizeRow { x, group: width, place, out } = self;
        for (g, group) in x.chunks_exact(width).enumerate() {
            let mut total = 0.0;
            for (i, x) in group.chunks_exact(place.part).enumerate() {
                let (a, b) = (s.read(x), if place.part > LANES { s.read(&x[LANES..]) } else { s.zero() });
                let largest = s.largest(s.max(s.abs(a), s.abs(b)));
                let scale = largest / 127.0;
                let inverse = s.splat(if largest > 0.0 { 127.0 / largest } else { 0.0 });
                let (a, b) = (s.mul(a, inverse), s.mul(b, inverse));
                let Part { first, row } = place.part(place.in_parts(g * width) + i);
                let (high, low) = (2 * first + row, 2 * first + place.rows + row);
                // SAFETY: these are this row's, and the row is this task's; a part's values, a scale and a sum fit there.
                unsafe {
                    let high = store(s, place.part, [a, b], out.q.add(place.part * high), out.sums.add(high));
                    let rest = [rest(s, a), rest(s, b)];
                    let low = store(s, place.part, rest, out.q.add(place.part * low), out.sums.add(low));
                    *out.scales.add(first + row) = scale;
                    total += scale * (high + low / STEPS);
                }
            }
            // SAFETY: as above, with one total a group.
            unsafe { *out.totals.add(place.total(g, width)) = total }
        }
    }
}

/// Writes a part's digits and their sum, and gives it.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn store<S: Simd>(s: S, part: usize, [a, b]: [S::F; 2], q: *mut i8, sum: *mut i32) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        *sum = if part > LANES { s.store_i8x2(q, a, b) } else { s.store_i8(q, a) };
        *sum as f32
    }
}

/// What rounding to whole numbers leaves over, in steps of the low digit.
#[inline(always)]
fn rest<S: Simd>(s: S, x: S::F) -> S::F {
    let rounded = s.sub(s.add(x, s.splat(ROUND)), s.splat(ROUND));
    s.mul(s.sub(x, rounded), s.splat(STEPS))
}
