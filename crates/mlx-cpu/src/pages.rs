//! A sequence's keys and values of one layer: pages in the kernels' own layout, shared by clones until written to.

use std::sync::Arc;

use mlx_rs::Array;

use crate::Error;

/// Positions of a page. A short prompt wastes half of one a layer; attention's tiles take two vectors of 16 positions.
pub const PAGE: usize = 32;

/// The pages of a sequence. A clone shares them all; the first of the two to grow copies the one it writes to.
#[derive(Clone, Default)]
pub struct Pages {
    /// Positions held.
    length: usize,
    /// Pages that will not change: an attention node holds the list instead of one input each.
    full: Arc<Vec<Full>>,
    /// The pages after them; all but the last are full too, since the last pass.
    open: Vec<Array>,
}

/// An evaluated page.
#[derive(Clone)]
pub(crate) struct Full {
    page: Array,
    bytes: *const u8,
}

// SAFETY: the array's count of references is atomic, and nobody writes to its buffer while it is held here: MLX gives
// a buffer away only where no other reference exists.
unsafe impl Send for Full {}
// SAFETY: as for `Send`.
unsafe impl Sync for Full {}

impl Full {
    /// Evaluates a page, which costs nothing where the pass that filled it is over.
    fn new(page: Array) -> Result<Full, Error> {
        let bytes = page.try_as_slice::<u8>().map_err(|error| Error(error.to_string()))?.as_ptr();
        Ok(Full { page, bytes })
    }

    /// Its contents.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the evaluated array, which is held here, has so many bytes from this address on.
        unsafe { std::slice::from_raw_parts(self.bytes, self.page.size()) }
    }
}

/// The pages a pass starts from.
pub(crate) struct Start {
    /// Positions held.
    pub offset: usize,
    /// The full pages.
    pub full: Arc<Vec<Full>>,
    /// The page after them, if it was begun.
    pub open: Option<Array>,
}

impl Pages {
    /// The pages as they were after the first `length` positions, at most those held.
    pub fn cut(&self, length: usize) -> Pages {
        let whole = length / PAGE;
        let page = |index: usize| match self.full.get(index) {
            Some(full) => full.page.clone(),
            None => self.open[index - self.full.len()].clone(),
        };
        let full = if whole >= self.full.len() { self.full.clone() } else { Arc::new(self.full[..whole].to_vec()) };
        let open = (full.len()..length.div_ceil(PAGE)).map(page).collect();
        Pages { length, full, open }
    }

    /// The bytes of all pages, whether or not others share them.
    pub fn nbytes(&self) -> usize {
        self.arrays().into_iter().map(Array::nbytes).sum()
    }

    /// The array that the last pass made last, for evaluating it.
    pub fn last(&self) -> Option<&Array> {
        self.open.last()
    }

    /// All pages, in the order of their positions. What is in them is the kernels' own matter.
    pub fn arrays(&self) -> Vec<&Array> {
        self.full.iter().map(|full| &full.page).chain(&self.open).collect()
    }

    /// Whether the pages are of so many bytes.
    pub(crate) fn fit(&self, bytes: usize) -> bool {
        let first = self.full.first().map(|full| &full.page).or(self.open.first());
        first.is_none_or(|page| page.nbytes() == bytes)
    }

    /// What a pass starts from. From then on only the graph holds the open page: [`Pages::grown`] brings it back.
    pub(crate) fn grow(&mut self) -> Result<Start, Error> {
        let begun = self.length / PAGE - self.full.len();
        if begun > 0 {
            let full = Arc::make_mut(&mut self.full);
            for page in self.open.drain(..begun) {
                full.push(Full::new(page)?);
            }
        }
        Ok(Start { offset: self.length, full: self.full.clone(), open: self.open.pop() })
    }

    /// Takes the pages that a pass of so many tokens wrote to.
    pub(crate) fn grown(&mut self, tokens: usize, open: Vec<Array>) {
        self.length += tokens;
        self.open = open;
    }
}
