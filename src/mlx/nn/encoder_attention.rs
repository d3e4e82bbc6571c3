//! Attention in which every token of a text sees all of them (Vaswani et al. 2017): no cache, no rotation.

use mlx_rs::{Array, fast, fast::ScaledDotProductAttentionMask as Mask, ops::indexing::take_axis};

use super::Heads;
use crate::mlx::{
    Backend, Error,
    batch::{Batch, Segment},
};

/// Attention over the segments of a batch.
pub struct EncoderAttention {
    /// How queries, keys and values divide into heads.
    pub heads: Heads,
    /// What computes.
    pub backend: Backend,
}

impl EncoderAttention {
    /// Queries, keys and values `[tokens, heads * dim]` → what the queries find, `[tokens, heads * dim]`.
    pub fn forward(&self, [q, k, v]: [&Array; 3], batch: &Batch) -> Result<Array, Error> {
        match self.backend {
            Backend::Cpu { kv, .. } => self.by_kernel([q, k, v], batch, kv),
            Backend::Mlx { .. } => self.by_mlx([q, k, v], batch),
        }
    }

    fn scale(&self) -> f32 {
        (self.heads.dim as f32).powf(-0.5)
    }

    /// One node for the whole batch; keys and values lie in pages that go with the pass.
    fn by_kernel(&self, qkv: [&Array; 3], batch: &Batch, format: mlx_cpu::KvFormat) -> Result<Array, Error> {
        let Heads { query, kv, dim } = self.heads;
        let settings = mlx_cpu::Attend {
            heads: query,
            kv_heads: kv,
            dim,
            scale: self.scale(),
            norm: None,
            rope: mlx_cpu::Rope { interleaved: false, inverse: [].into(), factor: 1.0, axes: None },
            sees: mlx_cpu::Sees::All,
            sinks: None,
            soft_cap: None,
            format,
        };
        let mut pages = vec![mlx_cpu::Pages::default(); batch.segments.len()];
        let sequences = batch.segments.iter().zip(&mut pages);
        let sequences = sequences.map(|(segment, pages)| mlx_cpu::Growth { tokens: segment.length, pages }).collect();
        let parts = qkv.map(|array| mlx_cpu::Part { array, start: 0, stride: dim });
        Ok(mlx_cpu::attend(&settings, parts, None, sequences)?)
    }

    /// One op for the whole batch: the segments lie below each other, padded to the longest and masked.
    fn by_mlx(&self, qkv: [&Array; 3], batch: &Batch) -> Result<Array, Error> {
        let rows = batch.segments.len();
        let longest = batch.segments.iter().map(|segment| segment.length).max().unwrap_or(0);
        let padded = |segment: &Segment| {
            // What stands in for a missing token is masked.
            let (start, last) = (segment.start, segment.length - 1);
            (0..longest).map(move |at| (start + at.min(last)) as u32)
        };
        let places: Vec<u32> = batch.segments.iter().flat_map(padded).collect();
        let places = Array::from_slice(&places, &[(rows * longest) as i32]);
        let [q, k, v] = qkv.map(|x| -> Result<Array, Error> {
            let shape = [rows as i32, longest as i32, -1, self.heads.dim as i32];
            Ok(take_axis(x, &places, 0)?.reshape(&shape)?.transpose_axes(&[0, 2, 1, 3])?)
        });
        let (q, k, v) = (q?, k?, v?);
        let seen = |segment: &Segment| {
            let length = segment.length;
            (0..longest).map(move |at| if at < length { 0.0 } else { f32::NEG_INFINITY })
        };
        let mask: Vec<f32> = batch.segments.iter().flat_map(seen).collect();
        let mask = Array::from_slice(&mask, &[rows as i32, 1, 1, longest as i32]).as_dtype(q.dtype())?;
        let found = fast::scaled_dot_product_attention(&q, &k, &v, self.scale(), Mask::Array(&mask), None)?;
        let found = found.transpose_axes(&[0, 2, 1, 3])?.reshape(&[(rows * longest) as i32, -1])?;
        let own = |(row, segment): (usize, &Segment)| (0..segment.length).map(move |at| (row * longest + at) as u32);
        let own: Vec<u32> = batch.segments.iter().enumerate().flat_map(own).collect();
        Ok(take_axis(&found, Array::from_slice(&own, &[own.len() as i32]), 0)?)
    }
}
