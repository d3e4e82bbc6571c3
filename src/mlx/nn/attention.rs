//! An attention layer: the norm in front, projections, grouped-query attention over what each sequence remembers (causal,
//! with an optional sliding window), the output, and the residual around all.

use std::sync::Arc;

use mlx_rs::{Array, fast, fast::ScaledDotProductAttentionMask as Mask, ops, ops::indexing::TryIndexOp};

use super::{Joined, Kv, Layer, Linear, RmsNorm, Rope, State};
use crate::mlx::{
    Backend, Error,
    batch::{Batch, Segment, joined},
    cost::AttentionCost,
    weights::Weights,
};

/// How queries, keys and values divide into heads.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// Heads of queries.
    pub query: usize,
    /// Divides `query`: so many query heads share one of these.
    pub kv: usize,
    /// Features a head.
    pub dim: usize,
}

/// The parts a layer is made of.
pub struct AttentionParts {
    /// How queries, keys and values divide into heads.
    pub heads: Heads,
    /// In front of the projections.
    pub norm: RmsNorm,
    /// Queries, keys and values.
    pub projections: Joined,
    /// Of each head's queries and keys, before the rotation.
    pub head_norms: Option<[RmsNorm; 2]>,
    /// Turns queries and keys by their positions.
    pub rope: Rope,
    /// A token sees this many positions, itself included; `None` sees all before it.
    pub window: Option<usize>,
    /// Every head's queries are followed by as many gates: what it finds is multiplied with their sigmoid.
    pub gated: bool,
    /// From heads back to features.
    pub output: Linear,
    /// What computes.
    pub backend: Backend,
}

/// The layer.
pub struct Attention {
    backend: Backend,
    heads: Heads,
    window: Option<usize>,
    form: Form,
}

enum Form {
    Cpu(Arc<mlx_cpu::AttentionLayer>),
    Mlx(Box<AttentionParts>),
}

/// `q_proj`, `k_proj` and `v_proj` over `dim` features.
pub async fn qkv(at: &Weights<'_>, dim: usize, heads: Heads) -> Result<Joined, Error> {
    let parts = [
        (at.at("q_proj"), heads.query * heads.dim),
        (at.at("k_proj"), heads.kv * heads.dim),
        (at.at("v_proj"), heads.kv * heads.dim),
    ];
    Joined::load(&parts, dim).await
}

impl Attention {
    /// A layer of these parts.
    pub fn new(parts: AttentionParts) -> Result<Attention, Error> {
        let AttentionParts { backend, heads, window, .. } = parts;
        let form = match parts.kernel()? {
            Some(layer) => Form::Cpu(Arc::new(layer)),
            None => Form::Mlx(Box::new(parts)),
        };
        Ok(Attention { backend, heads, window, form })
    }

    /// What a sequence of no tokens remembers.
    pub fn fresh(&self) -> Layer {
        Layer::Attention(Kv::empty(self.backend))
    }

    /// What it remembers of a position, and for how long.
    pub fn cost(&self) -> AttentionCost {
        let numbers = 2 * self.heads.kv * self.heads.dim;
        AttentionCost { position_bytes: numbers as f64 * self.backend.kv_bits() / 8.0, window: self.window }
    }

    /// `x + layer(norm(x))`, all `[tokens, dim]`. Appends keys and values to layer `layer` of each sequence's state.
    pub fn forward(&self, x: &Array, batch: &Batch, states: &mut [&mut State], layer: usize) -> Result<Array, Error> {
        let kvs = states.iter_mut().map(|state| match &mut state.layers[layer] {
            Layer::Attention(kv) => Ok(kv),
            Layer::Recurrent(_) => Err(Error(format!("layer {layer} has no keys and values; this is a bug"))),
        });
        let kvs = kvs.collect::<Result<Vec<&mut Kv>, Error>>()?;
        match &self.form {
            Form::Cpu(kernel) => {
                let mut sequences = Vec::with_capacity(kvs.len());
                for (segment, kv) in batch.segments.iter().zip(kvs) {
                    let Kv::Pages(pages) = kv else { return Err(Error("a CPU keeps pages; this is a bug".into())) };
                    sequences.push(mlx_cpu::Growth { tokens: segment.length, pages });
                }
                Ok(mlx_cpu::attention_layer(kernel, x, None, sequences)?)
            }
            Form::Mlx(parts) => parts.forward(x, batch, kvs),
        }
    }
}

impl AttentionParts {
    fn scale(&self) -> f32 {
        (self.heads.dim as f32).powf(-0.5)
    }

    /// The layer for our CPU kernels; `None` elsewhere.
    fn kernel(&self) -> Result<Option<mlx_cpu::AttentionLayer>, Error> {
        let Backend::Cpu { kv: format, .. } = self.backend else { return Ok(None) };
        let parts = (&self.norm, self.projections.kernel()?, self.output.kernel());
        let (RmsNorm::Cpu(norm), Some(projections), Some(output)) = parts else { return Ok(None) };
        let (norm, output) = (norm.clone(), output.clone());
        let attend = mlx_cpu::Attend {
            heads: self.heads.query,
            kv_heads: self.heads.kv,
            dim: self.heads.dim,
            scale: self.scale(),
            norm: self.head_norms.as_ref().map(|[q, k]| q.kernel(k)).transpose()?,
            rope: self.rope.kernel(),
            sees: self.window.map_or(mlx_cpu::Sees::Before, mlx_cpu::Sees::Window),
            sinks: None,
            soft_cap: None,
            format,
        };
        Ok(Some(mlx_cpu::AttentionLayer { norm, projections, attend, gated: self.gated, output }))
    }

    /// The layer by MLX's own ops.
    fn forward(&self, x: &Array, batch: &Batch, kvs: Vec<&mut Kv>) -> Result<Array, Error> {
        let Heads { query, dim, .. } = self.heads;
        let (query, dim) = (query as i32, dim as i32);
        let parts = self.projections.forward(&self.norm.forward(x)?)?;
        let [q, k, v] = &parts[..] else {
            return Err(Error("queries, keys and values are three; this is a bug".into()));
        };
        let (q, gate) = if self.gated {
            let mut halves = q.reshape(&[-1, query, 2 * dim])?.split_at_indices(&[dim], 2)?.into_iter();
            let mut half = || halves.next().expect("two halves").reshape(&[-1, query * dim]);
            (half()?, Some(half()?))
        } else {
            (q.clone(), None)
        };
        let (q, k) = match &self.head_norms {
            Some([q_norm, k_norm]) => (q_norm.forward(&q)?, k_norm.forward(k)?),
            None => (q, k.clone()),
        };
        let whole = |(segment, kv): (&Segment, &mut Kv)| {
            self.whole([&segment.of(&q)?, &segment.of(&k)?, &segment.of(v)?], kv, segment)
        };
        let found = joined(batch.segments.iter().zip(kvs).map(whole).collect::<Result<_, Error>>()?)?;
        let found = match gate {
            Some(gate) => found.multiply(ops::sigmoid(gate)?)?,
            None => found,
        };
        self.output.forward_onto(&found, x)
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
