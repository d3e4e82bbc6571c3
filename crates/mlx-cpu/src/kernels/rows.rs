//! How kernels see activations: rows a stride apart, heads of tokens, and buffers that tasks write in disjoint parts.

use std::marker::PhantomData;

/// `count` rows of `width` values that start `stride` values apart.
#[derive(Clone, Copy)]
pub struct Rows<'a, T = f32> {
    pub data: &'a [T],
    pub count: usize,
    pub stride: usize,
    pub width: usize,
}

impl<'a, T> Rows<'a, T> {
    /// Rows without gaps. `data` holds a whole number of rows of `width`.
    pub fn packed(data: &'a [T], width: usize) -> Self {
        let count = data.len().checked_div(width).unwrap_or(0);
        Rows { data, count, stride: width, width }
    }

    /// Runs of `size` rows, the last one with what is left.
    pub(crate) fn chunks(self, size: usize) -> impl Iterator<Item = Rows<'a, T>> {
        (0..self.count).step_by(size).map(move |first| Rows {
            data: &self.data[first * self.stride..],
            count: size.min(self.count - first),
            ..self
        })
    }

    /// # Panics
    /// If the last row does not lie within `data`.
    pub(crate) fn check(&self, what: &str) {
        assert!(self.count <= 1 || self.stride >= self.width, "{what}: rows overlap");
        let span = if self.count == 0 { 0 } else { (self.count - 1) * self.stride + self.width };
        assert!(span <= self.data.len(), "{what}: {} values hold no {} rows", self.data.len(), self.count);
    }

    #[inline(always)]
    pub(crate) fn row(&self, index: usize) -> &'a [T] {
        &self.data[index * self.stride..][..self.width]
    }
}

/// [`Rows`] to write to.
pub struct RowsMut<'a, T = f32> {
    pub data: &'a mut [T],
    pub count: usize,
    pub stride: usize,
    pub width: usize,
}

impl<'a, T> RowsMut<'a, T> {
    /// Rows without gaps. `data` holds a whole number of rows of `width`.
    pub fn packed(data: &'a mut [T], width: usize) -> Self {
        let count = data.len().checked_div(width).unwrap_or(0);
        RowsMut { data, count, stride: width, width }
    }

    /// The rows for tasks to share out, after the check that `count` rows of `width` are there.
    pub(crate) fn share(self, count: usize, width: usize, what: &str) -> SharedRows<'a, T> {
        assert_eq!((self.count, self.width), (count, width), "{what}: the output's rows and width");
        Rows { data: &*self.data, count, stride: self.stride, width }.check(what);
        SharedRows { data: self.data.as_mut_ptr(), count, stride: self.stride, width, of: PhantomData }
    }
}

/// Rows that several threads write to, each its own part.
#[derive(Clone, Copy)]
pub(crate) struct SharedRows<'a, T = f32> {
    data: *mut T,
    pub count: usize,
    pub stride: usize,
    pub width: usize,
    of: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for an exclusive borrow of plain numbers; parts are handed out only through `part`, whose caller
// promises that no two overlap.
unsafe impl<T: Send> Send for SharedRows<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send> Sync for SharedRows<'_, T> {}

impl<'a, T> SharedRows<'a, T> {
    /// `len` values of row `row` from `start` on.
    ///
    /// # Safety
    /// No other live part overlaps this one.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, row: usize, start: usize, len: usize) -> &'a mut [T] {
        assert!(row < self.count && start + len <= self.width, "a part outside of its rows");
        // SAFETY: `share` checked that the rows lie in the buffer; the caller promises that nobody else has this part.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(row * self.stride + start), len) }
    }

    /// A whole row.
    ///
    /// # Safety
    /// No other live part overlaps this one.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn row(&self, row: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { self.part(row, 0, self.width) }
    }
}

/// `tokens` × `heads` vectors of `dim` values; tokens start `token_stride`, heads `head_stride` values apart.
#[derive(Clone, Copy)]
pub struct Heads<'a> {
    pub data: &'a [f32],
    pub tokens: usize,
    pub heads: usize,
    pub dim: usize,
    pub token_stride: usize,
    pub head_stride: usize,
}

impl<'a> Heads<'a> {
    /// Vectors without gaps, [tokens, heads, dim].
    pub fn packed(data: &'a [f32], heads: usize, dim: usize) -> Self {
        let tokens = data.len().checked_div(heads * dim).unwrap_or(0);
        Heads { data, tokens, heads, dim, token_stride: heads * dim, head_stride: dim }
    }

    /// # Panics
    /// If the last vector does not lie within `data`.
    pub(crate) fn check(&self, what: &str) {
        if self.tokens > 0 && self.heads > 0 {
            let last = (self.tokens - 1) * self.token_stride + (self.heads - 1) * self.head_stride;
            assert!(last + self.dim <= self.data.len(), "{what}: the buffer is too short for its strides");
        }
    }

    #[inline(always)]
    pub(crate) fn vector(&self, token: usize, head: usize) -> &'a [f32] {
        &self.data[token * self.token_stride + head * self.head_stride..][..self.dim]
    }
}

impl<'a> From<Rows<'a>> for Heads<'a> {
    /// Each row as the one head of a token.
    fn from(rows: Rows<'a>) -> Self {
        let Rows { data, count, stride, width } = rows;
        Heads { data, tokens: count, heads: 1, dim: width, token_stride: stride, head_stride: width }
    }
}

/// [`Heads`] to write to. Vectors do not overlap: tokens lie further apart than heads, heads than their values.
pub struct HeadsMut<'a> {
    pub data: &'a mut [f32],
    pub tokens: usize,
    pub heads: usize,
    pub dim: usize,
    pub token_stride: usize,
    pub head_stride: usize,
}

impl<'a> HeadsMut<'a> {
    /// Vectors without gaps, [tokens, heads, dim].
    pub fn packed(data: &'a mut [f32], heads: usize, dim: usize) -> Self {
        let tokens = data.len().checked_div(heads * dim).unwrap_or(0);
        HeadsMut { data, tokens, heads, dim, token_stride: heads * dim, head_stride: dim }
    }

    /// The vectors for tasks to share out, after the check that they are there and do not overlap.
    pub(crate) fn share(self, shape: [usize; 3], what: &str) -> SharedHeads<'a> {
        let HeadsMut { data, tokens, heads, dim, token_stride, head_stride } = self;
        assert_eq!([tokens, heads, dim], shape, "{what}: the output's tokens, heads and width");
        Heads { data: &*data, tokens, heads, dim, token_stride, head_stride }.check(what);
        let head_span = if heads > 1 { (heads - 1) * head_stride + dim } else { dim };
        assert!(heads <= 1 || head_stride >= dim, "{what}: the output's heads overlap");
        assert!(tokens <= 1 || token_stride >= head_span, "{what}: the output's tokens overlap");
        SharedHeads { data: data.as_mut_ptr(), shape, token_stride, head_stride, of: PhantomData }
    }
}

impl<'a> From<RowsMut<'a>> for HeadsMut<'a> {
    fn from(rows: RowsMut<'a>) -> Self {
        let RowsMut { data, count, stride, width } = rows;
        HeadsMut { data, tokens: count, heads: 1, dim: width, token_stride: stride, head_stride: width }
    }
}

/// Vectors that several threads write to, each its own.
#[derive(Clone, Copy)]
pub(crate) struct SharedHeads<'a> {
    data: *mut f32,
    /// Tokens, heads, values.
    pub shape: [usize; 3],
    token_stride: usize,
    head_stride: usize,
    of: PhantomData<&'a mut [f32]>,
}

// SAFETY: as for `SharedRows`.
unsafe impl Send for SharedHeads<'_> {}
// SAFETY: as for `SharedRows`.
unsafe impl Sync for SharedHeads<'_> {}

impl<'a> SharedHeads<'a> {
    /// A whole vector.
    ///
    /// # Safety
    /// No other live borrow of this vector exists.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn vector(&self, token: usize, head: usize) -> &'a mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { self.part(token, head, 0..self.shape[2]) }
    }

    /// Some values of a vector.
    ///
    /// # Safety
    /// No other live borrow of these values exists.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, token: usize, head: usize, values: std::ops::Range<usize>) -> &'a mut [f32] {
        let [tokens, heads, dim] = self.shape;
        assert!(
            token < tokens && head < heads && values.start <= values.end && values.end <= dim,
            "outside of its heads"
        );
        let start = token * self.token_stride + head * self.head_stride + values.start;
        // SAFETY: `share` checked that the vectors lie in the buffer and apart; the caller promises that nobody else
        // has these values.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), values.len()) }
    }
}

/// The ranges that split `0..len` into runs of `size`.
#[inline(always)]
pub(crate) fn chunk(index: usize, size: usize, len: usize) -> std::ops::Range<usize> {
    index * size..((index + 1) * size).min(len)
}
