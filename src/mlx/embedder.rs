//! Hidden states become vectors: what makes embeddings of a loaded model.

use std::rc::Rc;

use mlx_rs::{Array, Dtype};

use super::{
    Cost, Error,
    batch::{Batch, Segment},
    models::{Model, Reader},
    nn::State,
    steps::{self, Steps, pause},
};
use crate::{
    checkpoint::{Pooling, PoolingMode},
    engine::{Encoder, RunError, TokenId},
};

/// A model and how its hidden states become one vector a text.
pub struct Embedder {
    reader: Rc<dyn Reader>,
    pooling: Pooling,
    /// The pass that is being computed.
    pass: Option<Steps<'static, Vec<Vec<f32>>>>,
}

impl Embedder {
    pub(super) fn new(reader: Rc<dyn Reader>, pooling: Pooling) -> Embedder {
        Embedder { reader, pooling, pass: None }
    }

    /// Over the hidden states of a model that writes text, behind its last norm.
    pub(super) fn of_text(model: Rc<dyn Model>, pooling: Pooling) -> Embedder {
        Embedder::new(Rc::new(Text(model)), pooling)
    }

    /// What a token costs.
    pub fn cost(&self) -> &Cost {
        self.reader.cost()
    }

    /// One vector a row of token ids, in order.
    ///
    /// # Errors
    /// What MLX says.
    pub fn embed(&self, rows: &[&[u32]]) -> Result<Vec<Vec<f32>>, Error> {
        let mut pass = self.pass_over(rows);
        loop {
            if let Some(vectors) = steps::step(&mut pass)? {
                return Ok(vectors);
            }
        }
    }

    fn pass_over(&self, rows: &[&[u32]]) -> Steps<'static, Vec<Vec<f32>>> {
        let batch = Batch::new(rows.iter().map(|row| (*row, 0)));
        let (reader, pooling) = (Rc::clone(&self.reader), self.pooling);
        Box::pin(async move {
            let hidden = reader.read(&batch).await?.as_dtype(Dtype::Float32)?; // [tokens, dim]
            hidden.eval()?;
            let dim = hidden.dim(1) as usize;
            let hidden: Vec<f32> = hidden.to_vec_exact().map_err(|error| Error(error.to_string()))?;
            let pool = |segment: &Segment| {
                let rows = &hidden[segment.start * dim..][..segment.length * dim];
                let vector = pooled(rows, dim, pooling.mode);
                if pooling.normalise { normalised(vector) } else { vector }
            };
            Ok(batch.segments.iter().map(pool).collect())
        })
    }
}

impl Encoder for Embedder {
    fn context(&self) -> usize {
        let made_for = self.reader.cost().context;
        self.pooling.most_tokens.map_or(made_for, |most| most.min(made_for))
    }

    fn begin(&mut self, rows: &[&[TokenId]]) {
        let ids: Vec<Vec<u32>> = rows.iter().map(|row| row.iter().map(|id| id.0).collect()).collect();
        let rows: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        self.pass = Some(self.pass_over(&rows));
    }

    fn step(&mut self) -> Result<Option<Vec<Vec<f32>>>, RunError> {
        let pass = self.pass.as_mut().ok_or_else(|| RunError("a step of no pass; this is a bug".into()))?;
        steps::step(pass).map_err(|error| RunError(error.0))
    }
}

/// One vector of the hidden states `[tokens, dim]` of a text.
fn pooled(rows: &[f32], dim: usize, mode: PoolingMode) -> Vec<f32> {
    let tokens = rows.len() / dim;
    match mode {
        PoolingMode::First => rows[..dim].to_vec(),
        PoolingMode::Last => rows[rows.len() - dim..].to_vec(),
        PoolingMode::Mean => {
            let mut sum = vec![0.0; dim];
            for row in rows.chunks_exact(dim) {
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            sum.into_iter().map(|sum| sum / tokens as f32).collect()
        }
    }
}

/// The vector of length 1 in the same direction; none stays none.
fn normalised(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt().max(1e-12);
    vector.into_iter().map(|value| (f64::from(value) / length) as f32).collect()
}

/// A model that writes text, read instead.
struct Text(Rc<dyn Model>);

impl Reader for Text {
    fn read<'a>(&'a self, batch: &'a Batch) -> Steps<'a, Array> {
        Box::pin(async move {
            let fresh = batch.segments.iter().map(|_| self.0.fresh());
            let mut states = fresh.collect::<Result<Vec<State>, Error>>()?;
            let mut states: Vec<&mut State> = states.iter_mut().collect();
            let mut x = self.0.embed(&batch.tokens)?;
            for index in 0..self.0.layers() {
                x = self.0.layer(index, &x, batch, &mut states)?;
                x.eval()?;
                pause().await;
            }
            self.0.norm(&x)
        })
    }

    fn cost(&self) -> &Cost {
        self.0.cost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling() {
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];
        assert_eq!(pooled(&rows, 2, PoolingMode::First), [1.0, 2.0]);
        assert_eq!(pooled(&rows, 2, PoolingMode::Last), [5.0, 9.0]);
        assert_eq!(pooled(&rows, 2, PoolingMode::Mean), [3.0, 5.0]);
        assert_eq!(normalised(vec![3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(normalised(vec![0.0, 0.0]), [0.0, 0.0]);
    }
}
