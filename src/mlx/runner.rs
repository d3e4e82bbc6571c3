//! A loaded model as the engine sees it: token ids in, token ids out.

use std::rc::Rc;

use mlx_rs::{Array, ops::indexing::take_axis, transforms};

use super::{
    Backend, Error,
    batch::{Batch, DrawnTokens},
    models::Model,
    nn::State,
    sampler::{self, Asked, LazyLogprobs},
};
use crate::engine::{self, Accepted, Draw, Drawn, Pending, Row, RunError, TokenId, TokenSet};

/// Tokens of a prompt whose activations are worth giving back at once (2 to 4 ms after some seconds).
const LONG_PROMPT: usize = 1024;

/// Owns the model's arrays; lives on the device thread.
///
/// With MLX's own ops, a pass is handed to the device when it is submitted, and the next one may go on with the tokens
/// that it draws. On a CPU there is no other device: a pass is computed when it is collected.
pub struct Runner {
    model: Rc<dyn Model>,
    backend: Backend,
    fresh: State,
    /// What the pass submitted last draws.
    drew: Option<DrawnTokens>,
}

/// A submitted pass.
pub struct Pass {
    rows: usize,
    /// What it computes beside tokens: the hidden states, and the sequences' states.
    outputs: Vec<Array>,
    draws: Option<Draws>,
    ends_long_prompt: bool,
}

/// The draws of a pass.
struct Draws {
    logits: Array, // [draws, vocabulary]
    /// The rows that draw.
    rows: Vec<usize>,
    /// How many others beside the drawn token are told of, where any are.
    logprobs: Vec<Option<usize>>,
    /// Draws that wait for nobody.
    early: Option<Group>,
    /// Draws that wait for their guides.
    late: Vec<LateDraw>,
}

/// Some of a pass's draws.
struct Group {
    /// Which.
    places: Vec<usize>,
    ids: Array, // [places] u32
    logprobs: Option<LazyLogprobs>,
}

struct LateDraw {
    place: usize,
    settings: mlx_cpu::Sample,
    mask: Option<Pending>,
}

impl Runner {
    pub(super) fn new(model: Rc<dyn Model>, backend: Backend) -> Result<Runner, Error> {
        let fresh = model.fresh()?;
        transforms::eval(fresh.arrays())?;
        Ok(Runner { model, backend, fresh, drew: None })
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

    /// Builds the pass's graph and, where a device computes by itself, hands it over.
    fn start(&mut self, rows: &mut [Row<'_, State>]) -> Result<Pass, Error> {
        if rows.iter().any(|row| !row.media.is_empty()) {
            return Err(Error("this model reads no media".into()));
        }
        let batch = Batch::of_rows(rows.iter().map(|row| (row.tokens, row.position)), self.drew.as_ref())?;
        let mut states: Vec<&mut State> = rows.iter_mut().map(|row| &mut *row.state).collect();
        let hidden = self.model.forward(&batch, &mut states)?;
        for row in rows.iter_mut() {
            row.state.length += row.tokens.len();
        }
        let drawing: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].draw.is_some()).collect();
        let draws = match drawing.is_empty() {
            true => None,
            false => Some(self.draws(self.model.head(&last_of(&hidden, &batch, &drawing)?)?, rows, drawing)?),
        };
        self.drew = draws.as_ref().and_then(|draws| draws.on_device(rows.len()));
        // A prompt's chunk has nothing else that would compute the states.
        let states = rows.iter().flat_map(|row| row.state.arrays()).cloned();
        let outputs = [hidden].into_iter().chain(states).collect();
        let ends = |row: &Row<State>| row.draw.is_some() && row.tokens.len() > 1 && row.state.length >= LONG_PROMPT;
        let mut pass = Pass { rows: rows.len(), outputs, draws, ends_long_prompt: rows.iter().any(ends) };
        if self.is_asynchronous() {
            transforms::async_eval(pass.arrays())?;
            // What nobody else holds is written to in place by the next pass, which need not wait for this one.
            pass.outputs.truncate(1);
        }
        Ok(pass)
    }

    fn is_asynchronous(&self) -> bool {
        matches!(self.backend, Backend::Mlx { .. })
    }

    /// Draws for the rows of `logits` that wait for nobody, and prepares the others.
    fn draws(&self, logits: Array, rows: &[Row<'_, State>], drawing: Vec<usize>) -> Result<Draws, Error> {
        let asked: Vec<&Draw> = rows.iter().filter_map(|row| row.draw.as_ref()).collect();
        // One kernel draws for all rows, or each row is drawn for by itself.
        let are_together = !self.is_asynchronous() && asked.iter().any(|draw| draw.mask.is_some());
        let mut early = Vec::new();
        let mut late = Vec::new();
        for (place, draw) in asked.iter().enumerate() {
            let settings = sampler::settings(draw);
            match draw.mask.is_some() || are_together {
                true => late.push(LateDraw { place, settings, mask: draw.mask.cloned() }),
                false => early.push((place, settings)),
            }
        }
        let logprobs: Vec<Option<usize>> = asked.iter().map(|draw| draw.logprobs).collect();
        let early = (!early.is_empty()).then(|| Group::draw(self.backend, &logits, early, &logprobs)).transpose()?;
        Ok(Draws { logits, rows: drawing, logprobs, early, late })
    }

    /// Computes what is left and reads the tokens.
    fn finish(&mut self, mut pass: Pass) -> Result<Vec<Accepted>, Error> {
        // Guides think while this computes. It is computed before anybody waits for them, and once only.
        transforms::eval(pass.arrays())?;
        let mut accepted = vec![Accepted::none(); pass.rows];
        if let Some(draws) = &mut pass.draws {
            let late = draws.draw_late(self.backend)?;
            for group in draws.early.iter().chain(&late) {
                group.read(|place, drawn| accepted[draws.rows[place]] = Accepted::one(drawn))?;
            }
        }
        if pass.ends_long_prompt {
            drop(pass);
            mlx_cpu::release_freed();
        }
        Ok(accepted)
    }
}

impl Pass {
    /// All that is computed before anybody waits for a guide.
    fn arrays(&self) -> impl Iterator<Item = &Array> {
        let draws = self.draws.iter().flat_map(|draws| {
            let early = draws.early.iter().flat_map(Group::arrays);
            early.chain((!draws.late.is_empty()).then_some(&draws.logits))
        });
        self.outputs.iter().chain(draws)
    }
}

impl Draws {
    /// The tokens that the next pass may go on with before anybody has seen them.
    fn on_device(&self, rows: usize) -> Option<DrawnTokens> {
        let Group { places, ids, .. } = self.early.as_ref()?;
        let mut of_rows = vec![None; rows];
        for (index, &place) in places.iter().enumerate() {
            of_rows[self.rows[place]] = Some(index);
        }
        Some(DrawnTokens { ids: ids.clone(), places: of_rows })
    }

    /// Waits for the guides and draws what they allow.
    fn draw_late(&mut self, backend: Backend) -> Result<Option<Group>, Error> {
        if self.late.is_empty() {
            return Ok(None);
        }
        let allowed = |LateDraw { place, settings, mask }| {
            let mask: Option<std::sync::Arc<TokenSet>> = mask.and_then(|mask: Pending| mask.mask());
            (place, sampler::among(settings, mask.as_deref()))
        };
        let draws = self.late.drain(..).map(allowed).collect();
        let group = Group::draw(backend, &self.logits, draws, &self.logprobs)?;
        transforms::eval(group.arrays())?;
        Ok(Some(group))
    }
}

impl Group {
    /// Draws by these rows of `logits`.
    fn draw(
        backend: Backend,
        logits: &Array,
        draws: Vec<(usize, mlx_cpu::Sample)>,
        logprobs: &[Option<usize>],
    ) -> Result<Group, Error> {
        let places: Vec<usize> = draws.iter().map(|(place, _)| *place).collect();
        let settings = draws.into_iter().map(|(_, settings)| settings).collect();
        let logits = rows_of(logits, &places)?;
        let ids = sampler::draw(backend, &logits, settings)?;
        let asked = places.iter().enumerate().filter_map(|(row, &place)| Some(Asked { row, top: logprobs[place]? }));
        let asked: Vec<Asked> = asked.collect();
        let logprobs = match asked.is_empty() {
            true => None,
            false => Some(LazyLogprobs::new(backend, &logits, &ids, asked)?),
        };
        Ok(Group { places, ids, logprobs })
    }

    fn arrays(&self) -> impl Iterator<Item = &Array> {
        [&self.ids].into_iter().chain(self.logprobs.as_ref().map(|logprobs| &logprobs.numbers))
    }

    /// Tells each draw's place and token, which are computed.
    fn read(&self, mut tell: impl FnMut(usize, Drawn)) -> Result<(), Error> {
        let ids: Vec<u32> = self.ids.to_vec_exact().map_err(|error| Error(error.to_string()))?;
        let told = self.logprobs.as_ref().map(LazyLogprobs::read).transpose()?;
        let mut told = told.unwrap_or_default().into_iter().peekable();
        for (row, (&place, id)) in self.places.iter().zip(ids).enumerate() {
            let logprobs = told.next_if(|(asked, _)| *asked == row).map(|(_, logprobs)| Box::new(logprobs));
            tell(place, Drawn { id: TokenId(id), logprobs });
        }
        Ok(())
    }
}

/// The last position of each of these rows, `[rows, dim]`.
fn last_of(hidden: &Array, batch: &Batch, rows: &[usize]) -> Result<Array, Error> {
    let last = |row: &usize| batch.segments[*row].start + batch.segments[*row].length - 1;
    rows_of(hidden, &rows.iter().map(last).collect::<Vec<usize>>())
}

/// These rows of `[rows, width]`, in rising order.
fn rows_of(x: &Array, rows: &[usize]) -> Result<Array, Error> {
    if rows.len() == x.dim(0) as usize {
        return Ok(x.clone());
    }
    let rows: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    Ok(take_axis(x, Array::from_slice(&rows, &[rows.len() as i32]), 0)?)
}

impl engine::Runner for Runner {
    type State = State;
    type Pass = Pass;

    fn context(&self) -> usize {
        self.model.context()
    }

    fn fresh(&mut self) -> State {
        self.fresh.clone()
    }

    fn submit(&mut self, rows: &mut [Row<'_, State>]) -> Result<Pass, RunError> {
        self.start(rows).map_err(|error| RunError(error.0))
    }

    fn collect(&mut self, pass: Pass) -> Result<Vec<Accepted>, RunError> {
        self.finish(pass).map_err(|error| RunError(error.0))
    }

    fn pipelines(&self) -> bool {
        self.is_asynchronous()
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
