//! AMX: a matrix unit with eight tiles of up to 16 rows of 64 bytes. Its intrinsics are not stable in Rust, so the few
//! instructions needed are written as assembly. Tiles belong to a thread, and to whoever holds [`Tiles`] there.

use std::{
    arch::{
        asm,
        x86_64::{__cpuid, __cpuid_count},
    },
    marker::PhantomData,
    sync::OnceLock,
};

/// Rows of a tile, at most.
const ROWS: usize = 16;
/// Bytes of a row of products with 16 outputs, or of four inputs' weights of them.
const LINE: usize = 64;
/// Bytes of a row of 32 int8 activations.
const PART: usize = 32;

/// Whether this processor has AMX with int8, and this process may use it.
pub(crate) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| processor_has_it() && permitted())
}

fn processor_has_it() -> bool {
    /// XSAVE that the system has turned on.
    const OSXSAVE: u32 = 1 << 27;
    /// AMX-TILE and AMX-INT8.
    const AMX: u32 = 1 << 24 | 1 << 25;
    /// Tile configuration and data among what the system saves.
    const SAVED: u32 = 1 << 17 | 1 << 18;
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 || __cpuid_count(7, 0).edx & AMX != AMX {
        return false;
    }
    let (saved, _high): (u32, u32);
    // SAFETY: with OSXSAVE the instruction is there; it reads a register.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") saved, out("edx") _high, options(nomem, nostack, preserves_flags))
    };
    saved & SAVED == SAVED
}

/// Asks Linux, which makes room for a thread's tiles only in processes that want them (since 5.16). The permission is
/// the process's: it covers all threads.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_PRCTL: isize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: the call takes two numbers and touches no memory of the process; it clobbers rcx and r11.
    unsafe {
        asm!("syscall", inlateout("rax") result, in("rdi") ARCH_REQ_XCOMP_PERM, in("rsi") XFEATURE_XTILEDATA,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// The tiles of this thread, set up for a number of rows; freed when dropped, so that a switch of threads has no tiles
/// to save.
pub(crate) struct Tiles {
    rows: usize,
    of_thread: PhantomData<*const ()>,
}

/// As `ldtilecfg` reads it: palette 1, and the bytes of a row and the rows of each tile.
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Factors of a product, 32 inputs of each.
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    /// Int8 activations [rows, 32]: the high digits and the low ones.
    pub digits: [*const i8; 2],
    /// [32 / 4, 16, 4] bytes: four inputs of 16 outputs a line.
    pub weights: *const u8,
}

impl Tiles {
    /// # Safety
    /// [`available`] said yes, and nobody else holds the tiles of this thread.
    #[inline(always)]
    pub(crate) unsafe fn new(rows: usize) -> Tiles {
        let mut tiles = Tiles { rows: 0, of_thread: PhantomData };
        tiles.resize(rows);
        tiles
    }

    /// Sets the tiles up for `rows` rows.
    #[inline(always)]
    pub(crate) fn resize(&mut self, rows: usize) {
        assert!((1..=ROWS).contains(&rows));
        if rows == self.rows {
            return;
        }
        self.rows = rows;
        let mut config = Config { palette: 1, start: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        // 0 to 3: products; 4 and 5: activations, high and low; 6: weights.
        for tile in 0..7 {
            (config.rows[tile], config.row_bytes[tile]) = match tile {
                0..4 => (rows as u8, LINE as u16),
                4 | 5 => (rows as u8, PART as u16),
                _ => (PART as u8 / 4, LINE as u16),
            };
        }
        // SAFETY: whoever made this vouched for the instruction; the configuration is valid and is read only.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const config, options(nostack, preserves_flags, readonly)) };
    }

    /// Multiplies both digits with the weights, into pair `TURN` (0 or 1) of products.
    ///
    /// # Safety
    /// The factors are there.
    #[inline(always)]
    pub(crate) unsafe fn multiply<const TURN: usize>(&mut self, factors: Factors) {
        // SAFETY: the caller's promise for what is read; the compiler itself uses no tiles.
        unsafe {
            asm!(
                "tilezero tmm{high_product}",
                "tileloadd tmm4, [{high} + {part}]",
                "tileloadd tmm6, [{weights} + {line}]",
                "tdpbsud tmm{high_product}, tmm4, tmm6",
                "tilezero tmm{low_product}",
                "tileloadd tmm5, [{low} + {part}]",
                "tdpbsud tmm{low_product}, tmm5, tmm6",
                high_product = const 2 * TURN,
                low_product = const 2 * TURN + 1,
                high = in(reg) factors.digits[0],
                low = in(reg) factors.digits[1],
                part = in(reg) PART,
                weights = in(reg) factors.weights,
                line = in(reg) LINE,
                options(nostack, preserves_flags, readonly)
            );
        }
    }

    /// Writes pair `TURN` of products, i32 [2, rows, 16].
    ///
    /// # Safety
    /// There is room for them.
    #[inline(always)]
    pub(crate) unsafe fn store<const TURN: usize>(&self, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!(
                "tilestored [{high} + {line}], tmm{high_product}",
                "tilestored [{low} + {line}], tmm{low_product}",
                high_product = const 2 * TURN,
                low_product = const 2 * TURN + 1,
                high = in(reg) to,
                low = in(reg) to.add(self.rows * LINE / 4),
                line = in(reg) LINE,
                options(nostack, preserves_flags)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: whoever made this vouched for the instruction.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
    }
}
