//! Which instruction set the kernels use: found once at run time, and lowered by tests for one thread.

use std::{cell::Cell, sync::OnceLock};

pub(crate) use super::simd::Kernel;
use super::simd::{Portable, Simd};
#[cfg(target_arch = "x86_64")]
use super::simd::{avx2::Avx2, avx512::Avx512};

/// An instruction set a kernel is compiled for, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the target has; the compiler vectorises.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, VL and VNNI.
    Avx512Vnni,
}

thread_local! {
    static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
}

/// The level of kernels called from this thread: the best this machine has, unless [`with_level`] lowered it.
pub fn level() -> Level {
    FORCED.get().unwrap_or_else(best)
}

/// All levels this machine can run, lowest first.
pub fn levels() -> impl Iterator<Item = Level> {
    [Level::Portable, Level::Avx2, Level::Avx512Vnni].into_iter().filter(|level| *level <= best())
}

/// Runs `body` with kernels called from this thread held at `level` or what the machine has, the lower of the two.
pub fn with_level<T>(level: Level, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<Level>);
    impl Drop for Restore {
        fn drop(&mut self) {
            FORCED.set(self.0);
        }
    }
    let _restore = Restore(FORCED.replace(Some(level.min(best()))));
    body()
}

fn best() -> Level {
    static BEST: OnceLock<Level> = OnceLock::new();
    *BEST.get_or_init(detect)
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni");
    match (avx2, avx512) {
        (true, true) => Level::Avx512Vnni,
        (true, false) => Level::Avx2,
        _ => Level::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

impl Level {
    /// Runs `kernel` compiled for this level.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        assert!(self <= best(), "this machine has no {self:?}");
        match self {
            Level::Portable => Portable.call(kernel),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `best` is this level or above, so the processor has AVX2, FMA and F16C.
            Level::Avx2 => unsafe { Avx2::new() }.call(kernel),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `best` is this level, so the processor has AVX-512 F, BW, VL and VNNI, AVX2, FMA and F16C.
            Level::Avx512Vnni => unsafe { Avx512::new() }.call(kernel),
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 | Level::Avx512Vnni => unreachable!("the assertion above failed"),
        }
    }
}
