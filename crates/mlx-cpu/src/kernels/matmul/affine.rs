//! Weights of integers times activations of two int8: integer dot products, one multiplication for each 32 inputs' scale
//! (16 where groups are of 16) and one for each group's bias.

#[cfg(target_arch = "x86_64")]
use super::amx;
use super::{
    AHEAD, Job, Output, Task, blocks_a_task,
    group::{ANY, BF16, E4M3, E8M0, F16, F32, PANEL, Shape, Unpack, for_kind},
    quantize::{BAND, Quantized, Tile},
    tasks,
};
use crate::kernels::{
    level::{Kernel, Level},
    pool,
    rows::chunk,
    scratch::Scratch,
    simd::{LANES, Simd, kind},
};

/// From this many rows on the weights of a block are unpacked once for all rows.
const MANY_ROWS: usize = 17;
/// Rows whose sums a task keeps at hand.
const ROW_CHUNK: usize = 256;

pub(super) fn multiply(job: &Job, out: &Output, level: Level) {
    let packed = job.packed;
    let kind = packed.kind().expect("kernels of integers are given integers");
    let rows = Quantized::new(&job.x, packed.group(), kind::inputs(kind), level);
    let few = blocks_a_task(job.segments.len() * packed.blocks(), packed.block_bytes(), pool::threads());
    let width = level.run(TileBlocks);
    let way = |rows: usize| match rows {
        #[cfg(target_arch = "x86_64")]
        amx::LEAST_ROWS.. if level == Level::Amx && kind::inputs(kind) == 32 => Way::Tiles,
        MANY_ROWS.. => Way::Many,
        _ => Way::Few,
    };
    let tasks = tasks(job, |rows| match way(rows) {
        Way::Few => (few, rows),
        Way::Many => (width, ROW_CHUNK),
        #[cfg(target_arch = "x86_64")]
        Way::Tiles => (few.min(amx::BLOCKS), ROW_CHUNK),
    });
    pool::run(tasks.len(), |index| {
        let (rows, task) = (&rows, &tasks[index]);
        match way(task.rows.len()) {
            Way::Few => level.run(Few { job, out, rows, task }),
            Way::Many => (0..task.blocks.len().div_ceil(width)).for_each(|part| {
                let blocks = chunk(part, width, task.blocks.len());
                let blocks = task.blocks.start + blocks.start..task.blocks.start + blocks.end;
                level.run(Many { job, out, rows, task: &Task { blocks, rows: task.rows.clone(), ..*task } });
            }),
            #[cfg(target_arch = "x86_64")]
            Way::Tiles => level.run(amx::Product { job, out, rows, task }),
        }
    });
}

/// How some rows are multiplied, by their number.
enum Way {
    Few,
    Many,
    #[cfg(target_arch = "x86_64")]
    Tiles,
}

/// Adds to `acc` the products of `R` rows with `C` blocks of weights over `shape.groups` groups.
///
/// # Safety
/// The blocks hold these groups and the tile as many inputs of `R` rows.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const C: usize, const KIND: u8, const NUMBERS: u8>(
    s: S,
    mut weights: [*const u8; C],
    shape: Shape,
    rows: Tile,
    acc: &mut [[S::F; C]; R],
) {
    for group in 0..shape.groups {
        // SAFETY: inside the group, and the group inside the block, as the caller promises.
        unsafe {
            let (mut scales, mut biases) = ([s.zero(); C], [s.zero(); C]);
            for c in 0..C {
                (scales[c], biases[c]) = shape.numbers::<S, NUMBERS>(s, weights[c]);
            }
            for part in 0..shape.parts {
                let index = group * shape.parts + part;
                let quants = weights.map(|w| w.add(shape.head_bytes + part * kind::bytes(KIND)));
                if C == 1 {
                    // Packed weights come from memory, and past the end of a page no processor looks ahead by itself.
                    for line in (0..kind::bytes(KIND)).step_by(64) {
                        s.prefetch(quants[0].wrapping_add(AHEAD + line));
                    }
                }
                let dots = rows.dot32::<S, R, C, KIND>(s, quants, index);
                for r in 0..R {
                    let scale = s.splat(rows.scale(r, index));
                    for c in 0..C {
                        acc[r][c] = s.fma(s.mul(dots[r][c], scale), scales[c], acc[r][c]);
                    }
                }
            }
            for r in 0..R {
                let total = s.splat(rows.total(r, group));
                for c in 0..C {
                    acc[r][c] = s.fma(biases[c], total, acc[r][c]);
                }
            }
            weights = weights.map(|w| w.add(shape.group_bytes));
        }
    }
}

/// A few rows: the packed weights are read once, as they lie.
struct Few<'a> {
    job: &'a Job<'a>,
    out: &'a Output<'a>,
    rows: &'a Quantized,
    task: &'a Task,
}

impl Kernel for Few<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let packed = self.job.packed;
        let shape = Shape::packed(packed);
        match (packed.kind().expect("integers"), shape.numbers) {
            (kind::NIBBLES, F16) => self.blocks_of::<S, { kind::NIBBLES }, F16>(s, shape),
            (kind::NIBBLES, BF16) => self.blocks_of::<S, { kind::NIBBLES }, BF16>(s, shape),
            (kind::NIBBLES, _) => self.blocks_of::<S, { kind::NIBBLES }, F32>(s, shape),
            (kind::BYTES, F16) => self.blocks_of::<S, { kind::BYTES }, F16>(s, shape),
            (kind::BYTES, BF16) => self.blocks_of::<S, { kind::BYTES }, BF16>(s, shape),
            (kind::BYTES, _) => self.blocks_of::<S, { kind::BYTES }, F32>(s, shape),
            (kind::TWO, _) => self.blocks_of::<S, { kind::TWO }, ANY>(s, shape),
            (kind::THREE, _) => self.blocks_of::<S, { kind::THREE }, ANY>(s, shape),
            (kind::FIVE, _) => self.blocks_of::<S, { kind::FIVE }, ANY>(s, shape),
            (kind::SIX, _) => self.blocks_of::<S, { kind::SIX }, ANY>(s, shape),
            (kind::E2M1, _) => self.blocks_of::<S, { kind::E2M1 }, E8M0>(s, shape),
            (_, _) => self.blocks_of::<S, { kind::E2M1_16 }, E4M3>(s, shape),
        }
    }
}

impl Few<'_> {
    #[inline(always)]
    fn blocks_of<S: Simd, const KIND: u8, const NUMBERS: u8>(self, s: S, shape: Shape) {
        let Few { job, out, rows: x, task } = self;
        // What is looked ahead for afterwards begins further on.
        let first = job.matrix(task.matrix)[task.blocks.start * job.packed.block_bytes()..].as_ptr();
        for line in (0..AHEAD).step_by(64) {
            s.prefetch(first.wrapping_add(line));
        }
        for block in task.blocks.clone() {
            let weights = &job.matrix(task.matrix)[block * job.packed.block_bytes()..];
            let mut row = task.rows.start;
            while row < task.rows.end {
                // No tile goes past a band of rows.
                let rows = (task.rows.end - row).min(BAND - row % BAND).min(S::DECODE_ROWS);
                match rows {
                    1 => s.call(FewTile::<1, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                    2 => s.call(FewTile::<2, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                    3 => s.call(FewTile::<3, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                    4 => s.call(FewTile::<4, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                    5 => s.call(FewTile::<5, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                    6 => s.call(FewTile::<6, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                    7 => s.call(FewTile::<7, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                    _ => s.call(FewTile::<8, KIND, NUMBERS> { weights, shape, out, x, block, row }),
                }
                row += rows;
            }
        }
    }
}

/// `R` rows from `row` on times one block, with which `weights` begin.
struct FewTile<'a, const R: usize, const KIND: u8, const NUMBERS: u8> {
    weights: &'a [u8],
    shape: Shape,
    out: &'a Output<'a>,
    x: &'a Quantized,
    block: usize,
    row: usize,
}

impl<const R: usize, const KIND: u8, const NUMBERS: u8> Kernel for FewTile<'_, R, KIND, NUMBERS> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if R > S::DECODE_ROWS {
            unreachable!("no tile has more rows");
        }
        let FewTile { weights, shape, out, x, block, row } = self;
        let mut acc = [[s.zero(); 1]; R];
        // SAFETY: the block's bytes are there (`matmul` checked the length), as are `R` rows from `row` on; block and
        // rows are this task's.
        unsafe {
            tile::<S, R, 1, KIND, NUMBERS>(s, [weights.as_ptr()], shape, x.tile(row, 0), &mut acc);
            for (r, acc) in acc.into_iter().enumerate() {
                out.put(s, row + r, block, acc[0]);
            }
        }
    }
}

struct TileBlocks;

impl Kernel for TileBlocks {
    type Out = usize;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        S::INT_TILE.1
    }
}

/// Many rows: the weights of one or two blocks are unpacked, a panel of inputs at a time, and all rows pass over them.
struct Many<'a> {
    job: &'a Job<'a>,
    out: &'a Output<'a>,
    rows: &'a Quantized,
    task: &'a Task,
}

impl Kernel for Many<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let kind = self.job.packed.kind().expect("integers");
        match (kind::unpacked(kind), self.task.blocks.len()) {
            (kind::SMALL_BYTES, 1) => self.panels::<S, 1, { kind::SMALL_BYTES }>(s),
            (kind::SMALL_BYTES, _) => self.panels::<S, 2, { kind::SMALL_BYTES }>(s),
            (kind::MIDDLE_BYTES, 1) => self.panels::<S, 1, { kind::MIDDLE_BYTES }>(s),
            (kind::MIDDLE_BYTES, _) => self.panels::<S, 2, { kind::MIDDLE_BYTES }>(s),
            (kind::MIDDLE_BYTES_16, 1) => self.panels::<S, 1, { kind::MIDDLE_BYTES_16 }>(s),
            (kind::MIDDLE_BYTES_16, _) => self.panels::<S, 2, { kind::MIDDLE_BYTES_16 }>(s),
            (_, 1) => self.panels::<S, 1, { kind::BYTES }>(s),
            (_, _) => self.panels::<S, 2, { kind::BYTES }>(s),
        }
    }
}

impl Many<'_> {
    #[inline(always)]
    fn panels<S: Simd, const C: usize, const KIND: u8>(self, s: S) {
        if C > S::INT_TILE.1 {
            unreachable!("no tile has more blocks");
        }
        let packed = self.job.packed;
        let (kind, group) = (packed.kind().expect("integers"), packed.group());
        let source = Shape::packed(packed);
        let whole = source.unpacked(PANEL / group, group);
        let stride = whole.groups * whole.group_bytes;
        let mut unpacked = Scratch::<u8>::new(C * stride);
        let mut sums = Scratch::<f32>::new(self.task.rows.len() * C * LANES);
        sums.fill(0.0);
        for first in (0..packed.k).step_by(PANEL) {
            let shape = Shape { groups: (packed.k - first).min(PANEL) / group, ..whole };
            for (c, to) in unpacked.chunks_exact_mut(stride).enumerate() {
                let start = (self.task.blocks.start + c) * packed.block_bytes() + first / group * source.group_bytes;
                let from = &self.job.matrix(self.task.matrix)[start..][..shape.groups * source.group_bytes];
                for_kind!(s, kind, Unpack { shape: source, from, to, to_shape: shape });
            }
            // SAFETY: the buffer holds C panels.
            let weights = std::array::from_fn(|c| unsafe { unpacked.as_ptr().add(c * stride) });
            self.pass::<S, C, KIND>(s, weights, shape, first, &mut sums);
        }
        for (row, sums) in self.task.rows.clone().zip(sums.chunks_exact(C * LANES)) {
            for c in 0..C {
                // SAFETY: these blocks and rows are this task's.
                unsafe { self.out.put(s, row, self.task.blocks.start + c, s.read(&sums[c * LANES..])) }
            }
        }
    }

    /// All rows of the chunk over one panel.
    #[inline(always)]
    fn pass<S: Simd, const C: usize, const KIND: u8>(
        &self,
        s: S,
        weights: [*const u8; C],
        shape: Shape,
        input: usize,
        sums: &mut [f32],
    ) {
        let mut row = 0;
        while row < self.task.rows.len() {
            let first = self.task.rows.start + row;
            let rows = (self.task.rows.len() - row).min(BAND - first % BAND).min(S::INT_TILE.0);
            let tile = self.rows.tile(first, input);
            let sums = &mut sums[row * C * LANES..][..rows * C * LANES];
            // The panel holds the shape's groups, the quantized rows as many inputs from `input` on.
            match rows {
                1 => s.call(AddTile::<1, C, KIND> { weights, shape, tile, sums }),
                2 => s.call(AddTile::<2, C, KIND> { weights, shape, tile, sums }),
                3 => s.call(AddTile::<3, C, KIND> { weights, shape, tile, sums }),
                4 => s.call(AddTile::<4, C, KIND> { weights, shape, tile, sums }),
                5 => s.call(AddTile::<5, C, KIND> { weights, shape, tile, sums }),
                _ => s.call(AddTile::<6, C, KIND> { weights, shape, tile, sums }),
            }
            row += rows;
        }
    }
}

/// [`tile`] on sums kept in memory. Whoever makes one sees to it that blocks and rows hold what the shape says.
struct AddTile<'a, const R: usize, const C: usize, const KIND: u8> {
    weights: [*const u8; C],
    shape: Shape,
    tile: Tile,
    /// [R, C, 16]
    sums: &'a mut [f32],
}

impl<const R: usize, const C: usize, const KIND: u8> Kernel for AddTile<'_, R, C, KIND> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if R > S::INT_TILE.0 || C > S::INT_TILE.1 {
            unreachable!("no tile is larger");
        }
        let mut acc = [[s.zero(); C]; R];
        for r in 0..R {
            for c in 0..C {
                acc[r][c] = s.read(&self.sums[(r * C + c) * LANES..]);
            }
        }
        // SAFETY: the maker's promise.
        unsafe { tile::<S, R, C, KIND, F32>(s, self.weights, self.shape, self.tile, &mut acc) };
        for r in 0..R {
            for c in 0..C {
                s.write(&mut self.sums[(r * C + c) * LANES..], acc[r][c]);
            }
        }
    }
}
