//! Affine weights times quantized activations on AMX: 16 rows and 16 outputs at a time, 32 inputs after 32 inputs, and
//! behind each product the very float operations of `affine::tile`.

use super::{
    Job, Output, Task,
    group::{PANEL, Shape, Unpack, for_kind},
    quantize::{BAND, Quantized, Tile, join},
};
use crate::kernels::{
    level::Kernel,
    scratch::Scratch,
    simd::{
        LANES, Simd,
        amx::{Factors, Tiles},
        kind,
    },
};

/// From this many rows on tiles are faster than vectors: while tiles are in use, a core does half as many vector
/// operations, and one more row than a tile has costs most of another.
pub(super) const LEAST_ROWS: usize = 20;
/// Most blocks of a task: a panel of them stays in the second-level cache while the bands pass.
pub(super) const BLOCKS: usize = 8;
/// Bytes of 32 weights of 16 outputs, unpacked.
const PART: usize = 32 * LANES;

/// Some blocks times some rows, a panel of inputs after the other. For the level AMX.
pub(super) struct Product<'a> {
    pub job: &'a Job<'a>,
    pub out: &'a Output<'a>,
    pub rows: &'a Quantized,
    pub task: &'a Task,
}

impl Kernel for Product<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Product { job, out, rows, task } = self;
        let packed = job.packed;
        let (kind, group, blocks) = (packed.kind().expect("integers"), packed.group(), task.blocks.len());
        let source = Shape::packed(packed);
        let whole = source.unpacked(PANEL.min(packed.k) / group, group);
        let mut weights = Scratch::<u8>::new(blocks * whole.groups * whole.group_bytes);
        // For each band [blocks, rows, 16].
        let mut sums = Scratch::<f32>::new(task.rows.len() * blocks * LANES);
        sums.fill(0.0);
        // SAFETY: the level is AMX, for which alone `affine` comes here; a task starts no other on its thread.
        let mut tiles = unsafe { Tiles::new(BAND.min(task.rows.len())) };
        let mut products = [const { Products([0; 2 * BAND * LANES]) }; 2];
        for first in (0..packed.k).step_by(PANEL) {
            let shape = Shape { groups: (packed.k - first).min(PANEL) / group, ..whole };
            let panel_bytes = shape.groups * shape.group_bytes;
            for (block, to) in task.blocks.clone().zip(weights.chunks_exact_mut(panel_bytes)) {
                let start = block * packed.block_bytes() + first / group * source.group_bytes;
                let from = &job.matrix(task.matrix)[start..][..shape.groups * source.group_bytes];
                for_kind!(s, kind, Unpack { shape: source, from, to, to_shape: shape });
            }
            let mut at = 0;
            for (row, count) in bands(task) {
                let tile = rows.tile(row, first);
                tiles.resize(count);
                let (weights, tiles, products) = (&weights[..], &mut tiles, &mut products);
                let sums = &mut sums[at..at + count * blocks * LANES];
                at += sums.len();
                multiply_band(s, count, Band { weights, shape, rows: tile, sums, tiles, products });
            }
        }
        let mut at = 0;
        for (row, count) in bands(task) {
            for (index, sums) in sums[at..at + count * blocks * LANES].chunks_exact(LANES).enumerate() {
                // SAFETY: these blocks and rows are this task's.
                unsafe { out.put(s, row + index % count, task.blocks.start + index / count, s.read(sums)) }
            }
            at += count * blocks * LANES;
        }
    }
}

/// The task's rows by the bands they lie in: the first of each and how many.
#[inline(always)]
fn bands(task: &Task) -> impl Iterator<Item = (usize, usize)> {
    let end = task.rows.end;
    let count = move |row: usize| (BAND - row % BAND).min(end - row);
    let mut row = task.rows.start;
    std::iter::from_fn(move || {
        let first = row;
        (first < end).then(|| {
            row += count(first);
            (first, row - first)
        })
    })
}

/// Blocks times a band. Whoever makes one sees to it that they hold what the shape says.
struct Band<'a> {
    /// Each block as [`Unpack`] wrote it.
    weights: &'a [u8],
    shape: Shape,
    rows: Tile,
    /// [blocks, rows, 16]
    sums: &'a mut [f32],
    tiles: &'a mut Tiles,
    products: &'a mut [Products; 2],
}

#[inline(always)]
fn multiply_band<S: Simd>(s: S, count: usize, band: Band) {
    macro_rules! with_rows {
        ($($rows:literal)*) => {
            match count {
                $($rows => s.call(RowsOf::<$rows>(band)),)*
                count => unreachable!("{count} rows of a band"),
            }
        };
    }
    with_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
}

/// `R` rows of a band, whose sums of one block are kept in registers.
struct RowsOf<'a, const R: usize>(Band<'a>);

impl<const R: usize> Kernel for RowsOf<'_, R> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Band { weights, shape, rows, sums, tiles, products } = self.0;
        let blocks = sums.len() / (R * LANES);
        // SAFETY: for all below, each block holds the shape's groups, and `rows` as many inputs of `R` rows.
        unsafe {
            let mut pipeline = Pipeline::new(tiles, products, weights, shape, blocks, rows);
            for (block, sums) in sums.chunks_exact_mut(R * LANES).enumerate() {
                let mut acc = [s.zero(); R];
                for r in 0..R {
                    acc[r] = s.read(&sums[r * LANES..]);
                }
                for group in 0..shape.groups {
                    let numbers = weights.as_ptr().add((block * shape.groups + group) * shape.group_bytes);
                    let scales = s.load(numbers.cast());
                    for part in 0..shape.parts {
                        let index = group * shape.parts + part;
                        let products = pipeline.next().cast::<u8>();
                        for r in 0..R {
                            let float = |row| s.bits_to_f32::<0>(s.load_u32(products.add(row * LANES * 4)), u32::MAX);
                            let dots = join(s, float(r), float(R + r));
                            acc[r] = s.fma(s.mul(dots, s.splat(rows.scale(r, index))), scales, acc[r]);
                        }
                    }
                    let biases = s.load(numbers.add(LANES * 4).cast());
                    for r in 0..R {
                        acc[r] = s.fma(biases, s.splat(rows.total(r, group)), acc[r]);
                    }
                }
                for r in 0..R {
                    s.write(&mut sums[r * LANES..], acc[r]);
                }
            }
        }
    }
}

/// The products of all parts of all blocks in turn. While the vectors add up one, the next is on its way to memory and
/// the tiles are at the one after it.
struct Pipeline<'a> {
    tiles: &'a mut Tiles,
    products: &'a mut [Products; 2],
    /// Products taken.
    taken: usize,
    /// Products not yet begun.
    left: usize,
    /// What the next to be begun reads.
    factors: Factors,
    /// Its part in its group and in its block.
    part: usize,
    part_of_block: usize,
    shape: Shape,
    rows: Tile,
}

/// Products of a band's high digits, [rows, 16], and after them of its low ones.
#[repr(align(64))]
struct Products([i32; 2 * BAND * LANES]);

impl<'a> Pipeline<'a> {
    #[inline(always)]
    unsafe fn new(
        tiles: &'a mut Tiles,
        products: &'a mut [Products; 2],
        weights: &[u8],
        shape: Shape,
        blocks: usize,
        rows: Tile,
    ) -> Self {
        let left = blocks * shape.groups * shape.parts;
        let weights = weights[shape.head_bytes..].as_ptr();
        let factors = Factors { digits: rows.digits(0), weights };
        let mut pipeline =
            Pipeline { tiles, products, taken: 0, left, factors, part: 0, part_of_block: 0, shape, rows };
        // SAFETY: the caller's promise.
        unsafe {
            pipeline.begin::<0>();
            pipeline.finish::<0>();
            pipeline.begin::<1>();
        }
        pipeline
    }

    /// The next product.
    #[inline(always)]
    unsafe fn next(&mut self) -> *const i32 {
        let turn = self.taken % 2;
        self.taken += 1;
        // SAFETY: the caller's promise.
        unsafe {
            match turn {
                0 => {
                    self.begin::<0>();
                    self.finish::<1>();
                }
                _ => {
                    self.begin::<1>();
                    self.finish::<0>();
                }
            }
        }
        self.products[turn].0.as_ptr()
    }

    /// Once all products are taken, what the tiles still hold is written for nothing.
    #[inline(always)]
    unsafe fn finish<const TURN: usize>(&mut self) {
        // SAFETY: there is room for two times a band's rows.
        unsafe { self.tiles.store::<TURN>(self.products[TURN].0.as_mut_ptr()) }
    }

    #[inline(always)]
    unsafe fn begin<const TURN: usize>(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        // SAFETY: one of the products left, whose factors the maker of the pipeline has vouched for.
        unsafe { self.tiles.multiply::<TURN>(self.factors) };
        self.part += 1;
        self.part_of_block += 1;
        let mut step = PART;
        if self.part == self.shape.parts {
            // The scales and biases of the next group.
            step += self.shape.head_bytes;
            self.part = 0;
        }
        if self.part_of_block == self.shape.groups * self.shape.parts {
            self.part_of_block = 0;
        }
        let weights = self.factors.weights.wrapping_add(step);
        self.factors = Factors { digits: self.rows.digits(self.part_of_block), weights };
    }
}
