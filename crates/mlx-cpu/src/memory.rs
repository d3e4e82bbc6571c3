//! Memory for weights: large blocks on the system's large pages. With ordinary ones a processor that streams weights
//! spends as long looking addresses up as reading (measured: 16 GB/s, and 30 with large pages, two threads).

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
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
    start: *mut u8,
    layout: Layout,
}

// SAFETY: it is plain memory; pieces of it are handed out once each.
unsafe impl Send for Block {}
// SAFETY: as for `Send`.
unsafe impl Sync for Block {}

impl Block {
    fn new(bytes: usize) -> Block {
        let layout =
            Layout::from_size_align(bytes.next_multiple_of(LARGE), LARGE).expect("memory fits an address space");
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        #[cfg(target_os = "linux")]
        // Refused, it is slower and no less right.
        // SAFETY: the block is ours, and its contents stay what they are.
        let _ = unsafe { rustix::mm::madvise(start.cast(), layout.size(), rustix::mm::Advice::LinuxHugepage) };
        Block { start, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`; no piece is left, as each holds the block.
        unsafe { dealloc(self.start, self.layout) }
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
        if let Some(block) = block.upgrade().filter(|block| *used + bytes <= block.layout.size()) {
            let piece = Piece { block, offset: *used, bytes };
            *used = (*used + bytes).next_multiple_of(LINE);
            return piece;
        }
        let fresh = Arc::new(Block::new(bytes.max(BLOCK)));
        (*block, *used) = (Arc::downgrade(&fresh), bytes.next_multiple_of(LINE));
        Piece { block: fresh, offset: 0, bytes }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: inside the block, initialised, and nobody writes while it is borrowed.
        unsafe { std::slice::from_raw_parts(self.block.start.add(self.offset), self.bytes) }
    }

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
