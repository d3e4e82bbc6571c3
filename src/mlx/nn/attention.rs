//! Grouped-query attention over what each sequence remembers, causal, with an optional sliding window.

use mlx_cpu::Part;
use mlx_rs::{Array, fast, fast::ScaledDotProductAttentionMask as Mask, ops::indexing::TryIndexOp};

use super::{Kv, Layer, RmsNorm, Rope, State};
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

/// Norms, rotates, remembers and attends. The projections around it belong to the model.
pub struct Attention {
    pub heads: Heads,
    pub backend: Backend,
    /// Of each head's queries and keys, before the rotation.
    norms: Option<[RmsNorm; 2]>,
    rope: Rope,
    /// A token sees this many positions, itself included; `None` sees all before it.
    window: Option<usize>,
    /// What our CPU kernel needs to know.
    kernel: Option<mlx_cpu::Attend>,
}

impl Attention {
    pub fn new(
        heads: Heads,
        norms: Option<[RmsNorm; 2]>,
        rope: Rope,
        window: Option<usize>,
        backend: Backend,
    ) -> Result<Attention, Error> {
        let mut attention = Attention { heads, backend, norms, rope, window, kernel: None };
        if let Backend::Cpu { kv, .. } = backend {
            attention.kernel = Some(mlx_cpu::Attend {
                heads: heads.query,
                kv_heads: heads.kv,
                dim: heads.dim,
                scale: attention.scale(),
                norm: attention.norms.as_ref().map(|[q, k]| q.kernel(k)).transpose()?,
                rope: attention.rope.kernel(),
                window,
                sinks: None,
                soft_cap: None,
                format: kv,
            });
        }
        Ok(attention)
    }

    /// Queries, keys and values of all tokens, not normed nor rotated yet → `[tokens, query * dim]`. Appends keys and
    /// values to layer `layer` of each sequence's state.
    pub fn forward(
        &self,
        parts: [Part; 3],
        batch: &Batch,
        states: &mut [&mut State],
        layer: usize,
    ) -> Result<Array, Error> {
        let kvs = states.iter_mut().map(|state| match &mut state.layers[layer] {
            Layer::Attention(kv) => Ok(kv),
            Layer::Recurrent(_) => Err(Error(format!("layer {layer} has no keys and values; this is a bug"))),
        });
        let kvs = kvs.collect::<Result<Vec<&mut Kv>, Error>>()?;
        match &self.kernel {
            Some(kernel) => {
                let mut sequences = Vec::with_capacity(kvs.len());
                for (segment, kv) in batch.segments.iter().zip(kvs) {
                    let Kv::Pages(pages) = kv else { return Err(Error("a CPU keeps pages; this is a bug".into())) };
                    sequences.push(mlx_cpu::Growth { tokens: segment.length, pages });
                }
                Ok(mlx_cpu::attend(kernel, parts, None, sequences)?)
            }
            None => {
                let [q, k, v] = self.normed(parts)?;
                let whole = |(segment, kv): (&Segment, &mut Kv)| {
                    self.whole([&segment.of(&q)?, &segment.of(&k)?, &segment.of(&v)?], kv, segment)
                };
                joined(batch.segments.iter().zip(kvs).map(whole).collect::<Result<_, Error>>()?)
            }
        }
    }

    fn scale(&self) -> f32 {
        (self.heads.dim as f32).powf(-0.5)
    }

    /// Queries, keys and values as arrays of their own, `[tokens, heads * dim]`, by MLX's ops.
    fn normed(&self, parts: [Part; 3]) -> Result<[Array; 3], Error> {
        let Heads { query, kv, dim } = self.heads;
        let own = |part: Part, heads: usize| -> Result<Array, Error> {
            let (start, stride) = (part.start as i32, part.stride as i32);
            let last = start + (heads as i32 - 1) * stride;
            if stride == dim as i32 {
                return Ok(part.array.try_index((.., start..last + dim as i32))?);
            }
            let whole = part.array.try_index((.., start..start + heads as i32 * stride))?;
            let by_head = whole.reshape(&[-1, heads as i32, stride])?.try_index((.., .., ..dim as i32))?;
            Ok(by_head.reshape(&[-1, (heads * dim) as i32])?)
        };
        let [q, k, v] = parts;
        let (q, k, v) = (own(q, query)?, own(k, kv)?, own(v, kv)?);
        Ok(match &self.norms {
            Some([q_norm, k_norm]) => [q_norm.forward(&q)?, k_norm.forward(&k)?, v],
            None => [q, k, v],
        })
    }

    /// Attention of one sequence by MLX's own ops.
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
