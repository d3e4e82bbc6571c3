//! A group of packed weights: the scales and biases of 16 outputs, then their integers, whatever the format of either.

use crate::kernels::{
    float::E2M1_ZERO,
    level::Kernel,
    pack::{Float, Format, Micro, Packed},
    simd::{LANES, Simd, kind},
};

/// Formats of a group's numbers, for const arguments: scales and biases in floats of the checkpoint.
pub(super) const F16: u8 = Float::F16 as u8;
pub(super) const BF16: u8 = Float::BF16 as u8;
pub(super) const F32: u8 = Float::F32 as u8;
/// Scales e8m0 and e4m3; the biases follow from them.
pub(super) const E8M0: u8 = 3;
pub(super) const E4M3: u8 = 4;
/// Whichever [`Shape::numbers`] says: for what is rare, to compile less.
pub(super) const ANY: u8 = 5;

/// Inputs whose unpacked weights stay in the first-level cache while all rows pass.
pub(super) const PANEL: usize = 512;

/// What a kernel needs to know of the groups it goes through.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub groups: usize,
    /// Dots of [`kind::inputs`] each, in a group.
    pub parts: usize,
    /// The format of scales and biases.
    pub numbers: u8,
    /// Bytes of a group before its integers.
    pub head_bytes: usize,
    pub group_bytes: usize,
}

impl Shape {
    /// The groups of a packed matrix of integers.
    pub fn packed(packed: &Packed) -> Shape {
        let kind = packed.kind().expect("kernels of integers are given integers");
        Shape {
            groups: packed.k / packed.group(),
            parts: packed.group() / kind::inputs(kind),
            numbers: match packed.format {
                Format::Affine { scales, .. } => scales as u8,
                Format::Micro(Micro::Nvfp4) => E4M3,
                _ => E8M0,
            },
            head_bytes: packed.head_bytes(),
            group_bytes: packed.group_bytes(),
        }
    }

    /// The same groups with f32 scales and biases and a byte for each weight.
    pub fn unpacked(self, groups: usize, group: usize) -> Shape {
        let head_bytes = 2 * LANES * 4;
        Shape { groups, numbers: F32, head_bytes, group_bytes: head_bytes + LANES * group, ..self }
    }

    /// The 16 scales and biases of the group at `from`.
    ///
    /// # Safety
    /// The group's head can be read.
    #[inline(always)]
    pub unsafe fn numbers<S: Simd, const NUMBERS: u8>(&self, s: S, from: *const u8) -> (S::F, S::F) {
        // SAFETY: the caller's promise.
        unsafe {
            match if NUMBERS == ANY { self.numbers } else { NUMBERS } {
                F16 => (s.load_f16(from.cast()), s.load_f16(from.add(LANES * 2).cast())),
                BF16 => (s.load_bf16(from.cast()), s.load_bf16(from.add(LANES * 2).cast())),
                F32 => (s.load(from.cast()), s.load(from.add(LANES * 4).cast())),
                E8M0 => of_e2m1(s, s.load_e8m0(from)),
                _ => of_e2m1(s, s.load_e4m3(from)),
            }
        }
    }
}

/// What e2m1's integers, twice the numbers plus [`E2M1_ZERO`], are multiplied with, and what is added then.
#[inline(always)]
fn of_e2m1<S: Simd>(s: S, scale: S::F) -> (S::F, S::F) {
    let half = s.mul(scale, s.splat(0.5));
    (half, s.mul(half, s.splat(-f32::from(E2M1_ZERO))))
}

/// Writes groups with f32 scales and biases and a byte for each weight.
pub(super) struct Unpack<'a, const KIND: u8> {
    pub shape: Shape,
    pub from: &'a [u8],
    pub to: &'a mut [u8],
    pub to_shape: Shape,
}

impl<const KIND: u8> Kernel for Unpack<'_, KIND> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Unpack { shape, from, to, to_shape } = self;
        for (from, to) in from.chunks_exact(shape.group_bytes).zip(to.chunks_exact_mut(to_shape.group_bytes)) {
            let (head, quants) = from.split_at(shape.head_bytes);
            let (to_head, to_quants) = to.split_at_mut(to_shape.head_bytes);
            // SAFETY: the head is there; 16 scales and 16 biases in f32 fit into the other.
            unsafe {
                let (scales, biases) = shape.numbers::<S, ANY>(s, head.as_ptr());
                s.store(to_head.as_mut_ptr().cast(), scales);
                s.store(to_head[LANES * 4..].as_mut_ptr().cast(), biases);
            }
            let parts = quants.chunks_exact(kind::bytes(KIND));
            for (from, to) in parts.zip(to_quants.chunks_exact_mut(kind::inputs(KIND) * LANES)) {
                // SAFETY: the kind's bytes are read, and a byte written for each weight.
                unsafe { s.unpack::<KIND>(from.as_ptr(), to.as_mut_ptr()) }
            }
        }
    }
}

/// Runs the kernel `$make::<KIND> { .. }` for the kind of a matrix.
macro_rules! for_kind {
    ($s:expr, $kind:expr, $make:ident $fields:tt) => {
        match $kind {
            kind::NIBBLES => $s.call($make::<{ kind::NIBBLES }> $fields),
            kind::TWO => $s.call($make::<{ kind::TWO }> $fields),
            kind::THREE => $s.call($make::<{ kind::THREE }> $fields),
            kind::FIVE => $s.call($make::<{ kind::FIVE }> $fields),
            kind::SIX => $s.call($make::<{ kind::SIX }> $fields),
            kind::E2M1 => $s.call($make::<{ kind::E2M1 }> $fields),
            kind::E2M1_16 => $s.call($make::<{ kind::E2M1_16 }> $fields),
            _ => $s.call($make::<{ kind::BYTES }> $fields),
        }
    };
}
pub(super) use for_kind;
