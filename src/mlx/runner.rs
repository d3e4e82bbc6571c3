//! A loaded model as the engine sees it: token ids in, token ids out.

use std::rc::Rc;

use mlx_rs::{Array, ops::indexing::take_axis, transforms};

use super::{Backend, Error, batch::Batch, models::Model, nn::State, sampler};
use crate::engine::{self, Draw, Drawn, Row, RunError};

/// Tokens of a prompt whose activations are worth giving back at once (2 to 4 ms after some seconds).
const LONG_PROMPT: usize = 1024;

/// Owns the model's arrays; lives on the device thread.
pub struct Runner {
    model: Rc<dyn Model>,
    backend: Backend,
    fresh: State,
}

impl Runner {
    pub(super) fn new(model: Rc<dyn Model>, backend: Backend) -> Result<Runner, Error> {
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

    /// The number of token ids.
    pub fn vocabulary(&self) -> usize {
        self.model.vocabulary()
    }

    fn pass(&self, rows: &mut [Row<'_, State>]) -> Result<Vec<Option<Drawn>>, Error> {
        let batch = Batch::new(rows.iter().map(|row| (row.tokens, row.state.length)));
        let mut states: Vec<&mut State> = rows.iter_mut().map(|row| &mut *row.state).collect();
        let hidden = self.model.forward(&batch, &mut states)?;
        let drawing: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].draw.is_some()).collect();
        let logits = match drawing.is_empty() {
            true => None,
            false => Some(self.model.head(&last_of(&hidden, &batch, &drawing)?)?),
        };
        let draws: Vec<&Draw> = rows.iter().filter_map(|row| row.draw.as_ref()).collect();
        // Guides think while this computes. It is computed before anybody waits for them, and once only.
        let computed = |also: Option<&Array>| {
            // States first: a prompt's chunk has nothing else that would compute them.
            let arrays = rows.iter().flat_map(|row| row.state.arrays()).chain(also);
            transforms::eval(arrays.chain([&hidden]))
        };
        if draws.iter().any(|draw| draw.mask.is_some() || draw.logprobs.is_some()) {
            computed(logits.as_ref())?;
        }
        let drawn = logits.as_ref().map(|logits| sampler::draw(self.backend, logits, draws.iter().copied()));
        let drawn = drawn.transpose()?;
        computed(drawn.as_ref())?;
        let ids: Vec<u32> = match &drawn {
            Some(drawn) => drawn.to_vec_exact().map_err(|error| Error(error.to_string()))?,
            None => Vec::new(),
        };
        let mut results = vec![None; rows.len()];
        for (place, (&row, id)) in drawing.iter().zip(ids).enumerate() {
            let asked = logits.as_ref().zip(draws[place].logprobs);
            let logprobs = asked.map(|(logits, top)| sampler::logprobs(logits, place, id, top).map(Box::new));
            results[row] = Some(Drawn { id, logprobs: logprobs.transpose()? });
        }
        for row in rows.iter_mut() {
            row.state.length += row.tokens.len();
        }
        let ends_long_prompt = |row: &Row<'_, State>| row.tokens.len() > 1 && row.state.length >= LONG_PROMPT;
        if rows.iter().any(|row| row.draw.is_some() && ends_long_prompt(row)) {
            mlx_cpu::release_freed();
        }
        Ok(results)
    }
}

/// The last position of each of these rows, `[rows, dim]`.
fn last_of(hidden: &Array, batch: &Batch, rows: &[usize]) -> Result<Array, Error> {
    let last = |row: &usize| (batch.segments[*row].start + batch.segments[*row].length - 1) as u32;
    let last: Vec<u32> = rows.iter().map(last).collect();
    match last.len() == hidden.dim(0) as usize {
        true => Ok(hidden.clone()),
        false => Ok(take_axis(hidden, Array::from_slice(&last, &[last.len() as i32]), 0)?),
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

    fn forward(&mut self, rows: &mut [Row<'_, State>]) -> Result<Vec<Option<Drawn>>, RunError> {
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
