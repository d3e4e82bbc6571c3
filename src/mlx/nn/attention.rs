//! Grouped-query attention over what each sequence remembers, causal, with an optional sliding window.

use mlx_rs::{Array, fast, fast::ScaledDotProductAttentionMask as Mask, ops::indexing::TryIndexOp};

use super::{Kv, Layer, Rope, State, cache::PAGE};
use crate::mlx::{
    Backend, Error,
    batch::{Batch, Segment, joined},
};

/// How queries, keys and values divide into heads.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    pub query: usize,
    /// Divides `query`: so many query heads share one of these.
    pub kv: usize,
    /// Features a head.
    pub dim: usize,
}

/// Rotates, remembers and attends. The projections around it belong to the model.
pub struct Attention {
    pub heads: Heads,
    pub rope: Rope,
    /// A token sees this many positions, itself included; `None` sees all before it.
    pub window: Option<usize>,
    pub backend: Backend,
}

impl Attention {
    /// Queries `[tokens, query * dim]`, keys and values `[tokens, kv * dim]`, not rotated yet → `[tokens, query * dim]`.
    /// Appends keys and values to layer `layer` of each sequence's state.
    pub fn forward(
        &self,
        [q, k, v]: [&Array; 3],
        batch: &Batch,
        states: &mut [&mut State],
        layer: usize,
    ) -> Result<Array, Error> {
        let mut outputs = Vec::with_capacity(batch.segments.len());
        for (segment, state) in batch.segments.iter().zip(states) {
            let Layer::Attention(kv) = &mut state.layers[layer] else {
                return Err(Error(format!("layer {layer} has no keys and values; this is a bug")));
            };
            let (q, k, v) = (segment.of(q)?, segment.of(k)?, segment.of(v)?);
            outputs.push(match kv {
                Kv::Pages(pages) => self.paged([&q, &k, &v], pages, segment.offset)?,
                Kv::Whole(_) => self.whole([&q, &k, &v], kv, segment)?,
            });
        }
        joined(outputs)
    }

    fn scale(&self) -> f32 {
        (self.heads.dim as f32).powf(-0.5)
    }

    /// One kernel rotates, writes into the pages and attends.
    fn paged(&self, [q, k, v]: [&Array; 3], pages: &mut Vec<Array>, offset: usize) -> Result<Array, Error> {
        let rope =
            self.rope.kernel(self.backend).ok_or_else(|| Error("pages are for the CPU; this is a bug".into()))?;
        let settings = mlx_cpu::Attend {
            heads: self.heads.query,
            kv_heads: self.heads.kv,
            dim: self.heads.dim,
            page: PAGE,
            offset,
            scale: self.scale(),
            window: self.window,
            rope,
            half: self.backend == Backend::Cpu { mode: mlx_cpu::Mode::Fast },
        };
        let (output, grown) = mlx_cpu::attend(settings, q, k, v, std::mem::take(pages))?;
        *pages = grown;
        Ok(output)
    }

    /// The same by MLX's own ops.
    fn whole(&self, [q, k, v]: [&Array; 3], kv: &mut Kv, segment: &Segment) -> Result<Array, Error> {
        let Heads { query, kv: kv_heads, dim } = self.heads;
        let (length, dim) = (segment.length as i32, dim as i32);
        let by_head = |x: &Array, heads: usize| -> Result<Array, Error> {
            Ok(x.reshape(&[1, length, heads as i32, dim])?.transpose_axes(&[0, 2, 1, 3])?)
        };
        let q = self.rope.forward(&by_head(q, query)?, segment.offset)?;
        let k = self.rope.forward(&by_head(k, kv_heads)?, segment.offset)?;
        let (keys, values) = kv.append(k, by_head(v, kv_heads)?, segment.offset)?;
        let attended = match self.window {
            Some(window) if segment.offset + segment.length > window => {
                let mask = window_mask(segment, window).as_dtype(q.dtype())?;
                fast::scaled_dot_product_attention(&q, &keys, &values, self.scale(), Mask::Array(&mask), None)?
            }
            _ if length > 1 => {
                fast::scaled_dot_product_attention(&q, &keys, &values, self.scale(), Mask::Causal, None)?
            }
            _ => fast::scaled_dot_product_attention(&q, &keys, &values, self.scale(), None::<Mask>, None)?,
        };
        Ok(attended.transpose_axes(&[0, 2, 1, 3])?.reshape(&[length, query as i32 * dim])?)
    }
}

impl Segment {
    /// The sequence's own tokens of `[total, features]`.
    pub fn of(&self, x: &Array) -> Result<Array, Error> {
        if self.start == 0 && self.length == x.dim(0) as usize {
            return Ok(x.clone());
        }
        Ok(x.try_index((self.start as i32..(self.start + self.length) as i32, ..))?)
    }
}

/// 0 where a query may look, minus infinity elsewhere: `[length, offset + length]`.
fn window_mask(segment: &Segment, window: usize) -> Array {
    let total = segment.offset + segment.length;
    let values: Vec<f32> = (segment.offset..total)
        .flat_map(|query| {
            (0..total).map(move |key| if key <= query && key + window > query { 0.0 } else { f32::NEG_INFINITY })
        })
        .collect();
    Array::from_slice(&values, &[segment.length as i32, total as i32])
}
