//! Memory for weights: large blocks on the system's large pages. With ordinary ones a processor that streams weights
//! spends as long looking addresses up as reading (measured: 16 GB/s, and 30 with large pages, two threads).

use std::{
    alloc::{Layout, handle_alloc_error},
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// A large page of x86-64 and of most aarch64 systems.
const LARGE: usize = 2 << 20;
/// What is taken from the system at once.
const BLOCK: usize = 16 * LARGE;
/// Every piece begins on a cache line.
const LINE: usize = 64;

/// Zeroed memory of its own.
struct Block {
    /// On a large page.
    start: *mut u8,
    bytes: usize,
    region: Region,
}

// SAFETY: it is plain memory; pieces of it are handed out once each.
unsafe impl Send for Block {}
// SAFETY: as for `Send`.
unsafe impl Sync for Block {}

impl Block {
    fn new(bytes: usize) -> Block {
        let bytes = bytes.next_multiple_of(LARGE);
        let (start, region) = Region::new(bytes);
        Block { start, bytes, region }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // No piece is left, as each holds the block.
        self.region.free();
    }
}

/// What the system gave.
#[cfg(target_os = "linux")]
struct Region {
    start: *mut core::ffi::c_void,
    bytes: usize,
}

#[cfg(target_os = "linux")]
impl Region {
    /// Pages are given by the system when they are first written to, so that what is left of a block costs nothing.
    fn new(bytes: usize) -> (*mut u8, Region) {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        let whole = bytes + LARGE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new memory, wherever the system has some.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), whole, access, MapFlags::PRIVATE) };
        let Ok(start) = mapped else {
            handle_alloc_error(Layout::from_size_align(whole, LARGE).expect("memory fits an address space"));
        };
        let aligned = start.cast::<u8>().wrapping_add(start.align_offset(LARGE));
        // Refused, it is slower and no less right.
        // SAFETY: these bytes are ours, and their contents stay what they are.
        let _ = unsafe { madvise(aligned.cast(), bytes, Advice::LinuxHugepage) };
        (aligned, Region { start, bytes: whole })
    }

    fn free(&self) {
        // SAFETY: mapped in `new`, and nobody is left who reads it.
        let _ = unsafe { rustix::mm::munmap(self.start, self.bytes) };
    }
}

#[cfg(not(target_os = "linux"))]
struct Region {
    start: *mut u8,
    layout: Layout,
}

#[cfg(not(target_os = "linux"))]
impl Region {
    fn new(bytes: usize) -> (*mut u8, Region) {
        let layout = Layout::from_size_align(bytes, LARGE).expect("memory fits an address space");
        // SAFETY: the layout has a size above zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        (start, Region { start, layout })
    }

    fn free(&self) {
        // SAFETY: allocated with this layout in `new`, and nobody is left who reads it.
        unsafe { std::alloc::dealloc(self.start, self.layout) }
    }
}

/// Tells glibc how this program uses memory; to be called before the first large allocation. Large allocations go back
/// to the system as soon as they are freed: glibc by itself keeps them once it has seen a few, after loading as much as
/// the largest tensor took. And all threads share one arena: arrays are made by one thread and freed by another, which
/// leaves holes in an arena for each (measured: 18 MB of 554 with 8 conversations of 2,000 tokens).
pub fn tune_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const M_MMAP_THRESHOLD: core::ffi::c_int = -3;
        const M_ARENA_MAX: core::ffi::c_int = -8;
        const LARGE: core::ffi::c_int = 4 << 20;
        unsafe extern "C" {
            fn mallopt(what: core::ffi::c_int, value: core::ffi::c_int) -> core::ffi::c_int;
        }
        // SAFETY: glibc's; it changes where later allocations come from.
        unsafe {
            mallopt(M_MMAP_THRESHOLD, LARGE);
            mallopt(M_ARENA_MAX, 1);
        }
    }
}

/// Gives what was freed so far back to the system: after loading, what files were read into; after a long prompt, what
/// its activations took.
pub fn release_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> core::ffi::c_int;
        }
        // SAFETY: glibc's, callable at any time from any thread.
        unsafe { malloc_trim(0) };
    }
}

/// Some bytes of a block, on cache lines. They can be written until the piece is shared.
pub struct Piece {
    block: Arc<Block>,
    offset: usize,
    bytes: usize,
}

impl Piece {
    /// Zeroed memory. Pieces taken one after the other share blocks.
    pub fn new(bytes: usize) -> Piece {
        static LATEST: Mutex<(Weak<Block>, usize)> = Mutex::new((Weak::new(), 0));
        let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        let (block, used) = &mut *latest;
        if let Some(block) = block.upgrade().filter(|block| *used + bytes <= block.bytes) {
            let piece = Piece { block, offset: *used, bytes };
            *used = (*used + bytes).next_multiple_of(LINE);
            return piece;
        }
        let fresh = Arc::new(Block::new(bytes.max(BLOCK)));
        (*block, *used) = (Arc::downgrade(&fresh), bytes.next_multiple_of(LINE));
        Piece { block: fresh, offset: 0, bytes }
    }

    /// Its contents.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: inside the block, initialised, and nobody writes while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.block.start.add(self.offset), self.bytes) }
    }

    /// Its contents, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: inside the block, initialised, and no other piece has these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.block.start.add(self.offset), self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_apart_on_cache_lines_and_are_zero() {
        let sizes = [1, 63, 64, 65, 5000, 3 * LARGE, BLOCK + 1, 7, BLOCK];
        let mut pieces: Vec<Piece> = sizes.iter().map(|&bytes| Piece::new(bytes)).collect();
        for (index, piece) in pieces.iter_mut().enumerate() {
            assert!(piece.bytes().iter().all(|byte| *byte == 0), "piece {index}");
            assert_eq!(piece.bytes().as_ptr() as usize % LINE, 0, "piece {index}");
            piece.bytes_mut().fill(index as u8 + 1);
        }
        for (index, piece) in pieces.iter().enumerate() {
            assert_eq!(piece.bytes().len(), sizes[index]);
            assert!(piece.bytes().iter().all(|byte| *byte == index as u8 + 1), "piece {index}");
        }
    }
}
