//! Affine weights times activations of two int8: integer dot products, one multiplication for each 32 inputs' scale and one
//! for each group's bias.

#[cfg(target_arch = "x86_64")]
use super::amx;
use super::{
    AHEAD, Matmul, Output, blocks_a_task,
    quantize::{BAND, Quantized, Tile},
};
use crate::kernels::{
    level::{Kernel, Level},
    pack::{Float, Format, Packed},
    pool,
    rows::chunk,
    scratch::Scratch,
    simd::{LANES, Simd, kind},
};

/// From this many rows on the weights of a block are unpacked once for all rows.
const MANY_ROWS: usize = 17;
/// Inputs whose unpacked weights stay in the first-level cache while all rows pass.
pub(super) const PANEL: usize = 512;
/// Rows whose sums a task keeps at hand.
const ROW_CHUNK: usize = 256;

/// Number formats as const arguments.
const F16: u8 = Float::F16 as u8;
const BF16: u8 = Float::BF16 as u8;
const F32: u8 = Float::F32 as u8;

pub(super) fn multiply(op: &Matmul, out: &Output, level: Level) {
    let Format::Affine { group, .. } = op.packed.format else { unreachable!("affine weights only") };
    let rows = Quantized::new(&op.x, group, level);
    #[cfg(target_arch = "x86_64")]
    if level == Level::Amx && op.x.count >= amx::LEAST_ROWS {
        return amx::multiply(op, out, &rows, level);
    }
    let blocks = op.packed.blocks();
    if op.x.count < MANY_ROWS {
        let size = blocks_a_task(blocks, op.packed.block_bytes(), pool::threads());
        pool::run(blocks.div_ceil(size), |task| {
            level.run(Few { op, out, rows: &rows, blocks: chunk(task, size, blocks) });
        });
        return;
    }
    let width = level.run(TileBlocks);
    let chunks = op.x.count.div_ceil(ROW_CHUNK);
    pool::run(blocks.div_ceil(width) * chunks, |task| {
        let blocks = chunk(task / chunks, width, blocks);
        level.run(Many { op, out, rows: &rows, blocks, chunk: chunk(task % chunks, ROW_CHUNK, op.x.count) });
    });
}

/// What a tile needs to know of the weights.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Groups to go through.
    pub groups: usize,
    /// 32 inputs each, in a group.
    pub parts: usize,
    /// Bytes of a group's 16 scales; its biases take as many.
    pub scale_bytes: usize,
    pub group_bytes: usize,
}

impl Shape {
    pub fn bytes(&self) -> usize {
        self.groups * self.group_bytes
    }
}

/// Adds to `acc` the products of `R` rows with `C` blocks of weights over `shape.groups` groups.
///
/// # Safety
/// The blocks hold these groups and the tile as many inputs of `R` rows.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const C: usize, const KIND: u8, const FLOAT: u8>(
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
                scales[c] = load::<S, FLOAT>(s, weights[c]);
                biases[c] = load::<S, FLOAT>(s, weights[c].add(shape.scale_bytes));
            }
            for part in 0..shape.parts {
                let index = group * shape.parts + part;
                let quants = weights.map(|w| w.add(2 * shape.scale_bytes + part * kind::bytes(KIND)));
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

/// # Safety
/// 16 numbers of the format can be read.
#[inline(always)]
unsafe fn load<S: Simd, const FLOAT: u8>(s: S, from: *const u8) -> S::F {
    // SAFETY: the caller's promise.
    unsafe {
        match FLOAT {
            F16 => s.load_f16(from.cast()),
            BF16 => s.load_bf16(from.cast()),
            _ => s.load(from.cast()),
        }
    }
}

/// A few rows: the packed weights are read once, as they lie.
struct Few<'a> {
    op: &'a Matmul<'a>,
    out: &'a Output<'a>,
    rows: &'a Quantized,
    blocks: std::ops::Range<usize>,
}

impl Kernel for Few<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Format::Affine { bits, scales, .. } = self.op.packed.format else { unreachable!("affine weights only") };
        match (bits, scales) {
            (4, Float::F16) => self.blocks_of::<S, { kind::NIBBLES }, F16>(s),
            (4, Float::BF16) => self.blocks_of::<S, { kind::NIBBLES }, BF16>(s),
            (4, Float::F32) => self.blocks_of::<S, { kind::NIBBLES }, F32>(s),
            (_, Float::F16) => self.blocks_of::<S, { kind::BYTES }, F16>(s),
            (_, Float::BF16) => self.blocks_of::<S, { kind::BYTES }, BF16>(s),
            (_, Float::F32) => self.blocks_of::<S, { kind::BYTES }, F32>(s),
        }
    }
}

impl Few<'_> {
    #[inline(always)]
    fn blocks_of<S: Simd, const KIND: u8, const FLOAT: u8>(self, s: S) {
        let m = self.op.x.count;
        for block in self.blocks.clone() {
            let mut row = 0;
            while row < m {
                let rows = (m - row).min(S::DECODE_ROWS);
                let Few { op, out, rows: x, .. } = self;
                match rows {
                    1 => s.call(FewTile::<1, KIND, FLOAT> { op, out, x, block, row }),
                    2 => s.call(FewTile::<2, KIND, FLOAT> { op, out, x, block, row }),
                    3 => s.call(FewTile::<3, KIND, FLOAT> { op, out, x, block, row }),
                    4 => s.call(FewTile::<4, KIND, FLOAT> { op, out, x, block, row }),
                    5 => s.call(FewTile::<5, KIND, FLOAT> { op, out, x, block, row }),
                    6 => s.call(FewTile::<6, KIND, FLOAT> { op, out, x, block, row }),
                    7 => s.call(FewTile::<7, KIND, FLOAT> { op, out, x, block, row }),
                    _ => s.call(FewTile::<8, KIND, FLOAT> { op, out, x, block, row }),
                }
                row += rows;
            }
        }
    }
}

/// `R` rows from `row` on times one block.
struct FewTile<'a, const R: usize, const KIND: u8, const FLOAT: u8> {
    op: &'a Matmul<'a>,
    out: &'a Output<'a>,
    x: &'a Quantized,
    block: usize,
    row: usize,
}

impl<const R: usize, const KIND: u8, const FLOAT: u8> Kernel for FewTile<'_, R, KIND, FLOAT> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if R > S::DECODE_ROWS {
            unreachable!("no tile has more rows");
        }
        let FewTile { op, out, x, block, row } = self;
        let weights = op.data[block * op.packed.block_bytes()..].as_ptr();
        let mut acc = [[s.zero(); 1]; R];
        // SAFETY: the block's bytes are there (`matmul` checked the length), as are `R` rows from `row` on; block and
        // rows are this task's.
        unsafe {
            tile::<S, R, 1, KIND, FLOAT>(s, [weights], packed_shape(op.packed), x.tile(row, 0), &mut acc);
            for (r, acc) in acc.into_iter().enumerate() {
                out.put(s, row + r, block, acc[0]);
            }
        }
    }
}

pub(super) fn packed_shape(packed: &Packed) -> Shape {
    let Format::Affine { group, scales, .. } = packed.format else { unreachable!("affine weights only") };
    Shape {
        groups: packed.k / group,
        parts: group / 32,
        scale_bytes: LANES * scales.bytes(),
        group_bytes: packed.group_bytes(),
    }
}

/// The shape of `inputs` of a block's inputs once unpacked: a byte for each weight, numbers in f32.
pub(super) fn panel_shape(packed: &Packed, inputs: usize) -> Shape {
    let Format::Affine { group, .. } = packed.format else { unreachable!("affine weights only") };
    Shape { groups: inputs / group, parts: group / 32, scale_bytes: LANES * 4, group_bytes: LANES * (8 + group) }
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
    op: &'a Matmul<'a>,
    out: &'a Output<'a>,
    rows: &'a Quantized,
    blocks: std::ops::Range<usize>,
    chunk: std::ops::Range<usize>,
}

impl Kernel for Many<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Format::Affine { bits, .. } = self.op.packed.format else { unreachable!("affine weights only") };
        match (bits, self.blocks.len()) {
            (4, 1) => self.panels::<S, 1, { kind::SMALL_BYTES }>(s),
            (4, _) => self.panels::<S, 2, { kind::SMALL_BYTES }>(s),
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
        let packed = self.op.packed;
        let source = packed_shape(packed);
        let whole = panel_shape(packed, PANEL);
        let mut unpacked = Scratch::<u8>::new(C * whole.bytes());
        let mut sums = Scratch::<f32>::new(self.chunk.len() * C * LANES);
        sums.fill(0.0);
        for first in (0..packed.k).step_by(PANEL) {
            let shape = panel_shape(packed, PANEL.min(packed.k - first));
            for (c, panel) in unpacked.chunks_exact_mut(whole.bytes()).enumerate() {
                let start =
                    (self.blocks.start + c) * packed.block_bytes() + first / self.rows.group * source.group_bytes;
                let from = &self.op.data[start..][..shape.groups * source.group_bytes];
                unpack(s, packed.format, source, from, panel, shape.group_bytes);
            }
            let stride = whole.bytes();
            // SAFETY: the buffer holds C panels.
            let weights = std::array::from_fn(|c| unsafe { unpacked.as_ptr().add(c * stride) });
            self.pass::<S, C, KIND>(s, weights, shape, first, &mut sums);
        }
        for (row, sums) in self.chunk.clone().zip(sums.chunks_exact(C * LANES)) {
            for c in 0..C {
                // SAFETY: these blocks and rows are this task's.
                unsafe { self.out.put(s, row, self.blocks.start + c, s.read(&sums[c * LANES..])) }
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
        while row < self.chunk.len() {
            // No tile goes past a band of rows, where chunks begin.
            let rows = (self.chunk.len() - row).min(BAND - row % BAND).min(S::INT_TILE.0);
            let tile = self.rows.tile(self.chunk.start + row, input);
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

/// Writes groups with f32 scales and a byte for each weight.
#[inline(always)]
pub(super) fn unpack<S: Simd>(s: S, format: Format, source: Shape, from: &[u8], to: &mut [u8], to_bytes: usize) {
    let Format::Affine { bits, scales, .. } = format else { unreachable!("affine weights only") };
    for (from, to) in from.chunks_exact(source.group_bytes).zip(to.chunks_exact_mut(to_bytes)) {
        let (numbers, quants) = from.split_at(2 * source.scale_bytes);
        let (to_numbers, to_quants) = to.split_at_mut(2 * LANES * 4);
        for (from, to) in numbers.chunks_exact(source.scale_bytes).zip(to_numbers.chunks_exact_mut(LANES * 4)) {
            // SAFETY: 16 numbers of the format are read, 16 f32 written.
            unsafe {
                let numbers = match scales {
                    Float::F16 => load::<S, F16>(s, from.as_ptr()),
                    Float::BF16 => load::<S, BF16>(s, from.as_ptr()),
                    Float::F32 => load::<S, F32>(s, from.as_ptr()),
                };
                s.store(to.as_mut_ptr().cast(), numbers);
            }
        }
        if bits == 8 {
            to_quants.copy_from_slice(quants);
            continue;
        }
        for (from, to) in quants.chunks_exact(64).zip(to_quants.chunks_exact_mut(128)) {
            // SAFETY: 64 bytes are read and 128 written.
            unsafe { s.split_nibbles(from.as_ptr(), to.as_mut_ptr()) }
        }
    }
}
