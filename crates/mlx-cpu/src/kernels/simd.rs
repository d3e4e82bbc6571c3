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

/// Sign, exponent and mantissa of an e4m3 code that was extended with its sign and shifted up by 7: a half of a 256th of
/// the number. By way of halves, because processors take long over an f32 that is subnormal.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const E4M3_BITS: i16 = 0xbf80_u16 as i16;

/// How the weights of an output that [`Simd::dot32`] reads are stored, each with those of 15 more outputs: 32 of them, or
/// 16 where it says so. In bytes, 64 of them hold four weights of each lane; `pack/planes.rs` says what planes are.
pub(crate) mod kind {
    /// A plane of 4 bits.
    pub const NIBBLES: u8 = 0;
    /// Bytes of at most 15.
    pub const SMALL_BYTES: u8 = 1;
    /// Bytes of at most 255.
    pub const BYTES: u8 = 2;
    /// A plane of 2 bits.
    pub const TWO: u8 = 3;
    /// Planes of 2 bits and of 1.
    pub const THREE: u8 = 4;
    /// Planes of 4 bits and of 1.
    pub const FIVE: u8 = 5;
    /// Planes of 4 bits and of 2.
    pub const SIX: u8 = 6;
    /// A plane of 4 bits of e2m1's codes, which stand for [`E2M1`](super::super::float::E2M1).
    pub const E2M1: u8 = 7;
    /// The same, 16 weights.
    pub const E2M1_16: u8 = 8;
    /// Bytes of at most 63.
    pub const MIDDLE_BYTES: u8 = 9;
    /// The same, 16 weights.
    pub const MIDDLE_BYTES_16: u8 = 10;

    /// How unsigned integers of so many bits are packed.
    pub const fn of_bits(bits: usize) -> u8 {
        match bits {
            2 => TWO,
            3 => THREE,
            4 => NIBBLES,
            5 => FIVE,
            6 => SIX,
            _ => BYTES,
        }
    }

    /// What [`Simd::unpack`](super::Simd::unpack) makes of a kind.
    pub const fn unpacked(kind: u8) -> u8 {
        match kind {
            NIBBLES | TWO | THREE => SMALL_BYTES,
            FIVE | SIX | E2M1 => MIDDLE_BYTES,
            E2M1_16 => MIDDLE_BYTES_16,
            bytes => bytes,
        }
    }

    /// Weights of an output.
    pub const fn inputs(kind: u8) -> usize {
        match kind {
            E2M1_16 | MIDDLE_BYTES_16 => 16,
            _ => 32,
        }
    }

    /// The bytes of the weights of 16 outputs.
    pub const fn bytes(kind: u8) -> usize {
        match kind {
            TWO | E2M1_16 => 128,
            THREE => 192,
            NIBBLES | E2M1 | MIDDLE_BYTES_16 => 256,
            FIVE => 320,
            SIX => 384,
            _ => 512,
        }
    }
}

/// The int8 activations a tile of rows brings to [`Simd::dot32`]: [`kind::inputs`] values a row, row after row, and the
/// sum of each row's values.
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
    /// Most sums that attention's tiles keep in registers, and most vectors of positions or of features among them.
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
    /// Reads 16 bytes as i8, sign-extended to 32 bits.
    unsafe fn load_i8(self, from: *const i8) -> Self::I;
    /// [`Simd::store_i8`] of 32 values.
    #[inline(always)]
    unsafe fn store_i8x2(self, to: *mut i8, a: Self::F, b: Self::F) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { self.store_i8(to, a) + self.store_i8(to.add(LANES), b) }
    }
    /// Reads 64 bytes as 16 little-endian u32.
    unsafe fn load_u32(self, from: *const u8) -> Self::I;
    /// (a >> shift) & mask, taken as i32, as f32.
    fn bits_to_f32<const SHIFT: u32>(self, a: Self::I, mask: u32) -> Self::F;
    /// Reads 16 bytes as the powers of two of [`e8m0`](super::float::e8m0).
    unsafe fn load_e8m0(self, from: *const u8) -> Self::F;
    /// Reads 16 bytes as numbers of [`e4m3`](super::float::e4m3).
    unsafe fn load_e4m3(self, from: *const u8) -> Self::F;
    /// Writes [`kind::bytes`] of a kind as a byte a weight, [`kind::unpacked`].
    unsafe fn unpack<const KIND: u8>(self, from: *const u8, to: *mut u8);
    /// The exact integer dot products of [`kind::inputs`] weights of 16 outputs of `C` blocks with `R` rows, as f32.
    unsafe fn dot32<const R: usize, const C: usize, const KIND: u8>(
        self,
        weights: [*const u8; C],
        rows: Dot32,
    ) -> [[Self::F; C]; R];

    /// The core of [`Simd::dot32`] in registers: multiplies 64 pairs of bytes and adds the products to sums of as many
    /// bits as the level adds in, which wrap. For measuring how fast that can be.
    fn dot_step(self, sums: Self::I, weights: Self::I, x: Self::I) -> Self::I;

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
