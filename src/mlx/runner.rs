//! A loaded model as the engine sees it: token ids in, token ids out.

use mlx_rs::{Array, ops::indexing::take_axis, transforms};

use super::{Backend, Error, batch::Batch, models::Model, nn::State, sampler};
use crate::engine::{self, Row, RunError};

/// Tokens of a prompt whose activations are worth giving back at once (2 to 4 ms after some seconds).
const LONG_PROMPT: usize = 1024;

/// Owns the model's arrays; lives on the device thread.
pub struct Runner {
    model: Box<dyn Model>,
    backend: Backend,
    fresh: State,
}

impl Runner {
    pub(super) fn new(model: Box<dyn Model>, backend: Backend) -> Result<Runner, Error> {
        let fresh = model.fresh()?;
        transforms::eval(fresh.arrays())?;
        Ok(Runner { model, backend, fresh })
    }

    /// The logits that follow each of `tokens`, `[tokens, vocabulary]` row after row, f32. For tests that compare
    /// with a reference.
    pub fn logits(&self, tokens: &[u32]) -> Result<Vec<f32>, Error> {
        let mut state = self.fresh.clone();
        let batch = Batch::new([(tokens, 0)].into_iter());
        let hidden = self.model.forward(&batch, &mut [&mut state])?;
        let logits = self.model.head(&hidden)?.as_dtype(mlx_rs::Dtype::Float32)?;
        logits.eval()?;
        logits.to_vec_exact().map_err(|error| Error(error.to_string()))
    }

    pub fn vocabulary(&self) -> usize {
        self.model.vocabulary()
    }

    fn pass(&self, rows: &mut [Row<'_, State>]) -> Result<Vec<Option<u32>>, Error> {
        let batch = Batch::new(rows.iter().map(|row| (row.tokens, row.state.length)));
        let mut states: Vec<&mut State> = rows.iter_mut().map(|row| &mut *row.state).collect();
        let hidden = self.model.forward(&batch, &mut states)?;
        let drawing: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].draw.is_some()).collect();
        let drawn = match drawing.is_empty() {
            true => None,
            false => {
                let last = |row: &usize| (batch.segments[*row].start + batch.segments[*row].length - 1) as u32;
                let last: Vec<u32> = drawing.iter().map(last).collect();
                let hidden = match last.len() == hidden.dim(0) as usize {
                    true => hidden.clone(),
                    false => take_axis(&hidden, Array::from_slice(&last, &[last.len() as i32]), 0)?,
                };
                let draws = drawing.iter().map(|&row| rows[row].draw.as_ref().expect("drawing rows have one"));
                Some(sampler::draw(self.backend, &self.model.head(&hidden)?, draws)?)
            }
        };
        // States first: a prompt's chunk has nothing else that would compute them.
        let arrays = rows.iter().flat_map(|row| row.state.arrays()).chain(&drawn);
        transforms::eval(arrays.chain([&hidden]))?;
        for row in rows.iter_mut() {
            row.state.length += row.tokens.len();
        }
        let ends_long_prompt = |row: &Row<'_, State>| row.tokens.len() > 1 && row.state.length >= LONG_PROMPT;
        if rows.iter().any(|row| row.draw.is_some() && ends_long_prompt(row)) {
            mlx_cpu::release_freed();
        }
        let mut tokens = vec![None; rows.len()];
        if let Some(drawn) = drawn {
            let ids: Vec<u32> = drawn.to_vec_exact().map_err(|error| Error(error.to_string()))?;
            for (row, id) in drawing.into_iter().zip(ids) {
                tokens[row] = Some(id);
            }
        }
        Ok(tokens)
    }
}

impl engine::Runner for Runner {
    type State = State;

    fn context(&self) -> usize {
        self.model.context()
    }

    fn fresh(&mut self) -> State {
        self.fresh.clone()
    }

    fn forward(&mut self, rows: &mut [Row<'_, State>]) -> Result<Vec<Option<u32>>, RunError> {
        self.pass(rows).map_err(|error| RunError(error.0))
    }

    fn cut(&self, state: &State, length: usize) -> Option<State> {
        state.cut(length)
    }

    fn cuts(&self) -> bool {
        self.fresh.can_be_cut()
    }

    fn bytes(&self, state: &State) -> usize {
        state.bytes()
    }
}
