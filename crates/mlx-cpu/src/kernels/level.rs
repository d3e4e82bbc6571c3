//! Which instruction set the kernels use: found once at run time, and lowered by tests for one thread.

use std::{cell::Cell, sync::OnceLock};

pub(crate) use super::simd::Kernel;
#[cfg(target_arch = "aarch64")]
use super::simd::neon::{DOTPROD, I8MM, Neon, PLAIN};
use super::simd::{Portable, Simd};
#[cfg(target_arch = "x86_64")]
use super::simd::{amx, avx2::Avx2, avx512::Avx512};

/// An instruction set a kernel is compiled for; of those a machine has, a later one is faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the target has; the compiler vectorises.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// As `Avx2`, with AVX-VNNI.
    AvxVnni,
    /// AVX-512 F, BW, VL and VNNI.
    Avx512Vnni,
    /// As `Avx512Vnni`, with quantized products of many rows on AMX.
    Amx,
    /// NEON as every 64-bit ARM has it.
    Neon,
    /// As `Neon`, with SDOT.
    NeonDot,
    /// As `NeonDot`, with USDOT.
    NeonI8mm,
}

const ALL: [Level; 8] = [
    Level::Portable,
    Level::Avx2,
    Level::AvxVnni,
    Level::Avx512Vnni,
    Level::Amx,
    Level::Neon,
    Level::NeonDot,
    Level::NeonI8mm,
];

thread_local! {
    static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
}

/// The level of kernels called from this thread: the best this machine has, unless [`with_level`] lowered it.
pub fn level() -> Level {
    static BEST: OnceLock<Level> = OnceLock::new();
    FORCED.get().unwrap_or_else(|| *BEST.get_or_init(|| best_within(Level::NeonI8mm)))
}

/// All levels this machine can run, lowest first.
pub fn levels() -> impl Iterator<Item = Level> {
    ALL.into_iter().filter(|level| level.available())
}

/// Runs `body` with kernels called from this thread held at `level`, or at the best this machine has below it.
pub fn with_level<T>(level: Level, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<Level>);
    impl Drop for Restore {
        fn drop(&mut self) {
            FORCED.set(self.0);
        }
    }
    let _restore = Restore(FORCED.replace(Some(best_within(level))));
    body()
}

fn best_within(most: Level) -> Level {
    levels().filter(|level| *level <= most).last().unwrap_or(Level::Portable)
}

impl Level {
    #[cfg(target_arch = "x86_64")]
    fn available(self) -> bool {
        macro_rules! has {
            ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
        }
        match self {
            Level::Portable => true,
            Level::Avx2 => has!("avx2" "fma" "f16c"),
            Level::AvxVnni => Level::Avx2.available() && has!("avxvnni"),
            Level::Avx512Vnni => Level::Avx2.available() && has!("avx512f" "avx512bw" "avx512vl" "avx512vnni"),
            Level::Amx => Level::Avx512Vnni.available() && amx::available(),
            _ => false,
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn available(self) -> bool {
        use std::arch::is_aarch64_feature_detected as has;
        match self {
            Level::Portable | Level::Neon => true,
            Level::NeonDot => has!("dotprod"),
            Level::NeonI8mm => has!("dotprod") && has!("i8mm"),
            _ => false,
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn available(self) -> bool {
        self == Level::Portable
    }

    /// Runs `kernel` compiled for this level.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        assert!(self.available(), "this machine has no {self:?}");
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is there, so the processor has AVX2, FMA and F16C.
            Level::Avx2 => unsafe { Avx2::<false>::new() }.call(kernel),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is there, so the processor has AVX2, FMA, F16C and AVX-VNNI.
            Level::AvxVnni => unsafe { Avx2::<true>::new() }.call(kernel),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is there, so the processor has AVX-512 F, BW, VL and VNNI, AVX2, FMA and F16C.
            Level::Avx512Vnni | Level::Amx => unsafe { Avx512::new() }.call(kernel),
            #[cfg(target_arch = "aarch64")]
            // SAFETY: NEON is part of the target.
            Level::Neon => unsafe { Neon::<PLAIN>::new() }.call(kernel),
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the level is there, so the processor has SDOT.
            Level::NeonDot => unsafe { Neon::<DOTPROD>::new() }.call(kernel),
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the level is there, so the processor has SDOT and USDOT.
            Level::NeonI8mm => unsafe { Neon::<I8MM>::new() }.call(kernel),
            _ => Portable.call(kernel),
        }
    }
}
