//! A runner without a model, for tests: the next token is a hash of every token so far, so that any mistake in what a
//! state holds shows in the answer. It draws what guides allow. It can fail, panic or take its time on request, and notes what it was asked to do.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    failure::RunError,
    text::{Draw, Drawn, Logprobs, MOST_TOP, Row, Runner},
};

/// What the scripted runner does.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Answers are these tokens, one after the other and then again; empty draws by hash.
    pub answer: Vec<u32>,
    /// Hashed tokens lie below this.
    pub vocabulary: u32,
    pub context: usize,
    /// States cannot be cut, as those of a recurrent model.
    pub recurrent: bool,
    /// The forward pass of this number, from 0, returns an error.
    pub fail_at: Option<usize>,
    /// The forward pass of this number, from 0, panics.
    pub panic_at: Option<usize>,
    /// Asked for the beginning of a state, it panics.
    pub cut_panics: bool,
    /// How long each pass takes.
    pub delay: Duration,
    pub log: Log,
}

/// For every forward pass, how many tokens each row had.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Vec<usize>>>>);

impl Log {
    /// Every pass so far: how many tokens each row had.
    pub fn passes(&self) -> Vec<Vec<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, pass: Vec<usize>) -> usize {
        let mut passes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        passes.push(pass);
        passes.len() - 1
    }
}

/// See the module.
pub struct Scripted(pub Script);

impl Scripted {
    /// A runner with a context of 4096 and a vocabulary of 1000.
    pub fn new() -> Scripted {
        Scripted(Script { vocabulary: 1000, context: 4096, ..Script::default() })
    }

    /// The token that follows `tokens`.
    pub fn next(script: &Script, tokens: &[u32], answered: usize) -> u32 {
        match script.answer.len() {
            0 => {
                let hash = tokens.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &token| {
                    (hash ^ u64::from(token)).wrapping_mul(0x0100_0000_01b3)
                });
                ((hash >> 20) % u64::from(script.vocabulary.max(1))) as u32
            }
            length => script.answer[answered % length],
        }
    }

    /// The scripted token or, where a mask does not allow it, the next higher one that it does, and round to the lowest.
    fn draw(script: &Script, tokens: &[u32], draw: &Draw) -> Drawn {
        let next = Scripted::next(script, tokens, draw.answer.len());
        let id = match draw.mask.and_then(|mask| mask.mask()) {
            None => next,
            Some(mask) => mask.iter().find(|&id| id >= next).or(mask.iter().next()).unwrap_or(next),
        };
        let logprobs = draw.logprobs.map(|top| Box::new(Scripted::logprobs(script, id, top)));
        Drawn { id, logprobs }
    }

    /// The probabilities of a drawn token: half, and half of what is left for each id after it.
    pub fn logprobs(script: &Script, drawn: u32, top: usize) -> Logprobs {
        let logprob = |place: u32| -(place as f32 + 1.0) * std::f32::consts::LN_2;
        let ids =
            (0..top.min(MOST_TOP) as u32).map(|place| ((drawn + place) % script.vocabulary.max(1), logprob(place)));
        Logprobs { drawn: logprob(0), top: ids.collect() }
    }
}

impl Default for Scripted {
    fn default() -> Scripted {
        Scripted::new()
    }
}

impl Runner for Scripted {
    type State = Vec<u32>;

    fn context(&self) -> usize {
        self.0.context
    }

    fn fresh(&mut self) -> Vec<u32> {
        Vec::new()
    }

    fn forward(&mut self, rows: &mut [Row<'_, Vec<u32>>]) -> Result<Vec<Option<Drawn>>, RunError> {
        let number = self.0.log.note(rows.iter().map(|row| row.tokens.len()).collect());
        std::thread::sleep(self.0.delay);
        if self.0.fail_at == Some(number) {
            return Err(RunError(format!("pass {number} fails as the script says")));
        }
        assert!(self.0.panic_at != Some(number), "pass {number} panics as the script says");
        let run = |row: &mut Row<'_, Vec<u32>>| {
            row.state.extend_from_slice(row.tokens);
            row.draw.as_ref().map(|draw| Scripted::draw(&self.0, row.state, draw))
        };
        Ok(rows.iter_mut().map(run).collect())
    }

    fn cut(&self, state: &Vec<u32>, length: usize) -> Option<Vec<u32>> {
        assert!(!self.0.cut_panics, "the cut panics as the script says");
        (length == state.len() || (length < state.len() && !self.0.recurrent)).then(|| state[..length].to_vec())
    }

    fn cuts(&self) -> bool {
        !self.0.recurrent
    }

    fn bytes(&self, state: &Vec<u32>) -> usize {
        4 * state.len()
    }
}
