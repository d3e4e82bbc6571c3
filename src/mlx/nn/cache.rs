//! What a sequence remembers: keys and values of attention layers, states of recurrent ones.
//!
//! Arrays are never written to while somebody else holds them: a clone shares its buffers with the original, and the
//! first of the two to grow copies what it writes to. So a remembered prefix costs nothing until it is used.

use mlx_rs::{
    Array, ops,
    ops::indexing::{TryIndexMutOp, TryIndexOp},
};

use crate::mlx::{Backend, Error};

/// Positions that [`Kv::Whole`] grows by.
const STEP: usize = 256;

/// A sequence's memory.
#[derive(Clone)]
pub struct State {
    /// How many tokens it holds.
    pub length: usize,
    /// In the order of the model.
    pub layers: Vec<Layer>,
}

/// One layer's part of it.
#[derive(Clone)]
pub enum Layer {
    Attention(Kv),
    Recurrent(Recurrent),
}

/// Keys and values of all positions so far.
#[derive(Clone)]
pub enum Kv {
    /// On a CPU: pages in the kernels' own layout, appended to and read in place.
    Pages(mlx_cpu::Pages),
    /// Elsewhere: `[1, kv_heads, capacity, dim]` each, grown by [`STEP`] at a time.
    Whole(Option<(Array, Array)>),
}

/// The state of a gated delta layer.
#[derive(Clone)]
pub struct Recurrent {
    /// The last inputs of the short convolution, `[width - 1, channels]`.
    pub conv: Array,
    /// `[value_heads, value_dim, key_dim]`, f32.
    pub delta: Array,
}

impl State {
    /// Whether every layer can forget its last tokens.
    pub fn can_be_cut(&self) -> bool {
        self.layers.iter().all(|layer| matches!(layer, Layer::Attention(_)))
    }

    /// The state as it was after its first `length` tokens. `None` where a recurrent layer stands at another length.
    pub fn cut(&self, length: usize) -> Option<State> {
        if length == self.length {
            return Some(self.clone());
        }
        if length > self.length || !self.can_be_cut() {
            return None;
        }
        let cut = |layer: &Layer| match layer {
            Layer::Attention(Kv::Pages(pages)) => Layer::Attention(Kv::Pages(pages.cut(length))),
            other => other.clone(),
        };
        Some(State { length, layers: self.layers.iter().map(cut).collect() })
    }

    /// The bytes of all its arrays, whether or not others share them.
    pub fn bytes(&self) -> usize {
        let layer = |layer: &Layer| match layer {
            Layer::Attention(Kv::Pages(pages)) => pages.nbytes(),
            Layer::Attention(Kv::Whole(Some((keys, values)))) => keys.nbytes() + values.nbytes(),
            Layer::Attention(Kv::Whole(None)) => 0,
            Layer::Recurrent(Recurrent { conv, delta }) => conv.nbytes() + delta.nbytes(),
        };
        self.layers.iter().map(layer).sum()
    }

    /// Every array, for evaluating them together.
    pub fn arrays(&self) -> Vec<&Array> {
        self.layers
            .iter()
            .flat_map(|layer| match layer {
                // One output of a pass brings the others along.
                Layer::Attention(Kv::Pages(pages)) => pages.last().into_iter().collect::<Vec<&Array>>(),
                Layer::Attention(Kv::Whole(Some((keys, values)))) => vec![keys, values],
                Layer::Attention(Kv::Whole(None)) => Vec::new(),
                Layer::Recurrent(Recurrent { conv, delta }) => vec![conv, delta],
            })
            .collect()
    }
}

impl Kv {
    /// Keys and values of no position.
    pub fn empty(backend: Backend) -> Kv {
        match backend {
            Backend::Cpu { .. } => Kv::Pages(mlx_cpu::Pages::default()),
            Backend::Mlx { .. } => Kv::Whole(None),
        }
    }

    /// Appends `[1, kv_heads, length, dim]` keys and values after the first `offset` positions of a [`Kv::Whole`];
    /// returns all of them.
    pub(super) fn append(&mut self, keys: Array, values: Array, offset: usize) -> Result<(Array, Array), Error> {
        let Kv::Whole(whole) = self else {
            return Err(Error("pages are appended to by the attention kernel; this is a bug".into()));
        };
        let (heads, length, dim) = (keys.dim(1), keys.dim(2) as usize, keys.dim(3));
        let needed = offset + length;
        let grown = |old: Option<&Array>, like: &Array| -> Result<Array, Error> {
            let capacity = needed.div_ceil(STEP) * STEP;
            let have = old.map_or(0, |old| old.dim(2) as usize);
            let room = ops::zeros_dtype(&[1, heads, (capacity - have) as i32, dim], like.dtype())?;
            Ok(match old {
                Some(old) => ops::concatenate(&[old, &room], 2)?,
                None => room,
            })
        };
        let (mut all_keys, mut all_values) = match whole.take() {
            Some((k, v)) if k.dim(2) as usize >= needed => (k, v),
            Some((k, v)) => (grown(Some(&k), &keys)?, grown(Some(&v), &values)?),
            None => (grown(None, &keys)?, grown(None, &values)?),
        };
        let (from, to) = (offset as i32, needed as i32);
        all_keys.try_index_mut((.., .., from..to, ..), &keys)?;
        all_values.try_index_mut((.., .., from..to, ..), &values)?;
        let shown = (all_keys.try_index((.., .., ..to, ..))?, all_values.try_index((.., .., ..to, ..))?);
        *whole = Some((all_keys, all_values));
        Ok(shown)
    }
}
