//! Vectors of 16 lanes for kernels that are written once: a token type per instruction set, whose methods are its
//! instructions. A token exists only where its instructions do, so arithmetic needs no `unsafe`; raw reads do.
//!
//! Every level keeps the same order of operations, so all give the same bits; but `Portable` rounds products where the
//! target has no fused multiply-add.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod portable;

pub(crate) use portable::Portable;

/// Lanes of every vector, and outputs of every block of packed weights.
pub(crate) const LANES: usize = 16;

/// How the 32 weights of an output that [`Simd::dot32`] reads are stored, each with those of 15 more outputs.
pub(crate) mod kind {
    /// 256 bytes: 64 bytes hold four weights of each lane in the low nibbles and the next four in the high ones.
    pub const NIBBLES: u8 = 0;
    /// 512 bytes: 64 bytes hold four weights of each lane, each at most 15.
    pub const SMALL_BYTES: u8 = 1;
    /// 512 bytes: 64 bytes hold four weights of each lane, each at most 255.
    pub const BYTES: u8 = 2;

    /// The bytes of 32 weights of 16 outputs.
    pub const fn bytes(kind: u8) -> usize {
        if kind == NIBBLES { 256 } else { 512 }
    }
}

/// The int8 activations a tile of rows brings to [`Simd::dot32`]: 32 values a row, row after row, and the sum of each
/// row's 32 values.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only levels that multiply signed weights need the sums")
)]
pub(crate) struct Dot32 {
    pub x: *const i8,
    pub sums: *const i32,
}

/// Work written once over [`Simd`] and compiled for each level. `run` must be `#[inline(always)]`, and so must every
/// generic function it calls: only code inlined into [`Simd::call`] is compiled with the level's instructions.
pub(crate) trait Kernel {
    type Out;
    fn run<S: Simd>(self, simd: S) -> Self::Out;
}

/// One instruction set. `F` is 16 f32, `I` is 16 u32.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    type F: Copy;
    type I: Copy;
    /// Most rows a decode kernel holds in registers.
    const DECODE_ROWS: usize;
    /// Rows and blocks of the integer prefill tile.
    const INT_TILE: (usize, usize);
    /// Rows and blocks of the f32 tile.
    const FLOAT_TILE: (usize, usize);
    /// Rows and vectors of positions, or of values, of attention's tiles.
    const SCORE_TILE: (usize, usize);

    /// Runs a kernel in a function of its own, compiled for this level. A register tile is worth one: the compiler
    /// gives it all registers, and takes far longer over one large function than over many small ones.
    fn call<K: Kernel>(self, kernel: K) -> K::Out;

    fn splat(self, x: f32) -> Self::F;
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// a * b + c
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The larger, `b` where `a` is not a number.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    fn abs(self, a: Self::F) -> Self::F;
    /// `x` where a < b, else `y` (also where either is not a number).
    fn select_lt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F;
    /// The sum of the lanes: halves are added until one lane is left.
    fn sum(self, a: Self::F) -> f32;
    /// The largest lane.
    fn largest(self, a: Self::F) -> f32;
    /// 2^(n-1) where `t` is 1.5 * 2^23 + n, for n in -126..=128.
    fn half_pow2(self, t: Self::F) -> Self::F;

    /// # Safety
    /// 16 values can be read at `from`. So it goes for all loads: what they read must be there.
    unsafe fn load(self, from: *const f32) -> Self::F;
    /// # Safety
    /// 16 values can be written at `to`. So it goes for all stores.
    unsafe fn store(self, to: *mut f32, a: Self::F);
    /// Reads `count` (at most 16) values; the other lanes are zero.
    unsafe fn load_part(self, from: *const f32, count: usize) -> Self::F;
    unsafe fn store_part(self, to: *mut f32, a: Self::F, count: usize);
    unsafe fn load_f16(self, from: *const u16) -> Self::F;
    unsafe fn load_bf16(self, from: *const u16) -> Self::F;
    unsafe fn store_f16(self, to: *mut u16, a: Self::F);
    /// Rounds each lane to nearest, ties to even, and stores it as i8; gives the sum of what was stored.
    /// The lanes lie within -127..=127 or are not numbers.
    unsafe fn store_i8(self, to: *mut i8, a: Self::F) -> i32;
    /// Reads 64 bytes as 16 little-endian u32.
    unsafe fn load_u32(self, from: *const u8) -> Self::I;
    /// (a >> shift) & mask, as f32.
    fn bits_to_f32<const SHIFT: u32>(self, a: Self::I, mask: u32) -> Self::F;
    /// Splits 64 bytes of [`kind::NIBBLES`] into 128 of [`kind::SMALL_BYTES`].
    unsafe fn split_nibbles(self, from: *const u8, to: *mut u8);
    /// The exact integer dot products of 32 weights of 16 outputs of `C` blocks with `R` rows, as f32.
    unsafe fn dot32<const R: usize, const C: usize, const KIND: u8>(
        self,
        weights: [*const u8; C],
        rows: Dot32,
    ) -> [[Self::F; C]; R];

    /// Asks for the cache line at an address, which need not be anyone's.
    fn prefetch(self, address: *const u8);

    /// The 16 values `x` begins with.
    #[inline(always)]
    fn read(self, x: &[f32]) -> Self::F {
        assert!(x.len() >= LANES);
        // SAFETY: the slice holds 16 values, as just checked.
        unsafe { self.load(x.as_ptr()) }
    }

    /// Writes the 16 values `x` begins with.
    #[inline(always)]
    fn write(self, x: &mut [f32], a: Self::F) {
        assert!(x.len() >= LANES);
        // SAFETY: the slice holds 16 values, as just checked.
        unsafe { self.store(x.as_mut_ptr(), a) }
    }

    /// The up to 16 values `x` holds; the other lanes are zero.
    #[inline(always)]
    fn read_part(self, x: &[f32]) -> Self::F {
        // SAFETY: no more than the slice holds is read.
        unsafe { self.load_part(x.as_ptr(), x.len().min(LANES)) }
    }

    /// Writes the up to 16 values `x` holds.
    #[inline(always)]
    fn write_part(self, x: &mut [f32], a: Self::F) {
        // SAFETY: no more than the slice holds is written.
        unsafe { self.store_part(x.as_mut_ptr(), a, x.len().min(LANES)) }
    }

    #[inline(always)]
    fn zero(self) -> Self::F {
        self.splat(0.0)
    }
}
