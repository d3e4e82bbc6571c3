//! A runner without a model, for tests: the next token is a hash of everything so far, so that any mistake in what a
//! state holds shows in the answer. It draws what guides allow. It can draft several tokens a pass, be asked for a pass
//! before the one in front of it is collected, fail, panic or take its time, and notes what it was asked to do.

use std::{
    cell::Cell,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    failure::RunError,
    text::{Accepted, Draw, Drawn, Logprobs, MOST_TOP, Media, Pending, Row, Runner, Tokens},
    token::TokenId,
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
    /// A pass accepts up to so many tokens a row, and now and then none; 0 and 1 accept one.
    pub drafts: usize,
    /// Takes a pass before the one in front of it is collected.
    pub pipelined: bool,
    /// What fails, and which call of its kind, from 0.
    pub fails: Vec<(Call, usize)>,
    /// What panics, and which call of its kind, from 0.
    pub panics: Vec<(Call, usize)>,
    /// How long each pass takes.
    pub delay: Duration,
    pub log: Log,
}

/// What the scripted runner is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// [`Runner::submit`], which counts passes.
    Submit,
    /// [`Runner::collect`].
    Collect,
    /// [`Runner::cut`]. It can only panic.
    Cut,
    /// [`Runner::bytes`]. It can only panic.
    Bytes,
    /// Forgets a row in what it collects, which the engine takes for a bug of the model. It cannot fail otherwise.
    LeaveOut,
}

/// For every forward pass, how many tokens each row had.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Vec<usize>>>>);

impl Log {
    /// Every pass so far: how many tokens each row had.
    pub fn passes(&self) -> Vec<Vec<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, pass: Vec<usize>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pass);
    }
}

/// See the module.
pub struct Scripted {
    script: Script,
    /// How often it was asked, by [`Call`].
    calls: [Cell<usize>; 5],
    /// What the pass submitted last draws for each row.
    drawn: Vec<Option<u64>>,
}

/// What a sequence holds: ids, and for places of media something of their hash.
pub type ScriptedState = Vec<u64>;

/// A submitted pass.
pub struct ScriptedPass {
    rows: Vec<Option<Asked>>,
}

/// A row that draws: the tokens it drafts, and what has a say in the first of them.
struct Asked {
    drafted: Vec<u32>,
    mask: Option<Pending>,
    logprobs: Option<usize>,
}

impl Scripted {
    pub fn new(script: Script) -> Scripted {
        Scripted { script, calls: Default::default(), drawn: Vec::new() }
    }

    /// The token that follows `state`, of which `answered` are the answer's.
    pub fn next(script: &Script, state: &[u64], answered: usize) -> u32 {
        match script.answer.len() {
            0 => (hash(state) >> 20) as u32 % script.vocabulary.max(1),
            length => script.answer[answered % length],
        }
    }

    /// The probabilities of a drawn token: half, and half of what is left for each id after it.
    pub fn logprobs(script: &Script, drawn: TokenId, top: usize) -> Logprobs {
        let logprob = |place: u32| -(place as f32 + 1.0) * std::f32::consts::LN_2;
        let id = |place: u32| TokenId((drawn.0 + place) % script.vocabulary.max(1));
        let top = (0..top.min(MOST_TOP) as u32).map(|place| (id(place), logprob(place))).collect();
        Logprobs { drawn: logprob(0), top }
    }

    /// Counts a call; fails or panics where the script says so.
    fn call(&self, call: Call) -> Result<usize, RunError> {
        let counter = &self.calls[call as usize];
        let number = counter.replace(counter.get() + 1);
        assert!(!self.script.panics.contains(&(call, number)), "{call:?} {number} panics as the script says");
        match self.script.fails.contains(&(call, number)) {
            true => Err(RunError(format!("{call:?} {number} fails as the script says"))),
            false => Ok(number),
        }
    }

    /// Adds a row's tokens to its state.
    fn extend(&self, row: &mut Row<'_, ScriptedState>) {
        assert_eq!(row.position, row.state.len(), "a row goes on where its state ends");
        match row.tokens {
            Tokens::Ids(ids) => {
                let keys = ids.iter().zip(row.position..).map(|(&id, position)| key(id, position, row.media));
                row.state.extend(keys);
            }
            Tokens::Drawn { row: number } => {
                assert!(self.script.pipelined, "nobody asks a runner that cannot");
                row.state.push(self.drawn[number].expect("the row drew"));
            }
        }
    }

    /// How many tokens a pass accepts. None never comes twice in a row.
    fn accepts(&self, state: &[u64], most: usize) -> usize {
        let passes = self.calls[Call::Submit as usize].get();
        match self.script.drafts {
            drafts if drafts < 2 || self.script.pipelined => 1,
            drafts => (hash(state) as usize % 7 + passes) % (drafts + 1),
        }
        .min(most)
    }

    /// What a row drafts. The state then holds all of it but the last token.
    fn draft(&self, state: &mut ScriptedState, draw: &Draw<'_>) -> Asked {
        let mut drafted = Vec::new();
        for number in 0..self.accepts(state, draw.most) {
            state.extend(drafted.last().copied().map(u64::from));
            drafted.push(Scripted::next(&self.script, state, draw.index + number));
        }
        Asked { drafted, mask: draw.mask.cloned(), logprobs: draw.logprobs }
    }

    /// The drafted tokens. Where a mask does not allow the first, the next higher one that it does, and round to the
    /// lowest.
    fn accepted(&self, asked: Asked) -> Accepted {
        let Asked { mut drafted, mask, logprobs } = asked;
        if let (Some(first), Some(mask)) = (drafted.first_mut(), mask.and_then(|mask| mask.mask())) {
            let allowed = mask.iter().find(|id| *id >= TokenId(*first)).or(mask.iter().next());
            *first = allowed.map_or(*first, u32::from);
        }
        let drawn = |id| {
            let id = TokenId(id);
            Drawn { id, logprobs: logprobs.map(|top| Box::new(Scripted::logprobs(&self.script, id, top))) }
        };
        drafted.into_iter().map(drawn).collect()
    }
}

fn hash(state: &[u64]) -> u64 {
    state.iter().fold(0xcbf2_9ce4_8422_2325, |hash, value| (hash ^ value).wrapping_mul(0x0100_0000_01b3))
}

/// What a place of a prompt adds to a state.
fn key(id: TokenId, position: usize, media: &[Media]) -> u64 {
    let within = media.iter().find(|media| (media.start..media.start + media.length).contains(&position));
    within.map_or(u64::from(id.0), |media| media.hash.wrapping_add((position - media.start) as u64) | 1 << 63)
}

impl Runner for Scripted {
    type State = ScriptedState;
    type Pass = ScriptedPass;

    fn context(&self) -> usize {
        self.script.context
    }

    fn fresh(&mut self) -> ScriptedState {
        ScriptedState::new()
    }

    fn submit(&mut self, rows: &mut [Row<'_, ScriptedState>]) -> Result<ScriptedPass, RunError> {
        self.script.log.note(rows.iter().map(|row| row.tokens.len()).collect());
        std::thread::sleep(self.script.delay);
        self.call(Call::Submit)?;
        let mut asked = Vec::with_capacity(rows.len());
        for row in rows {
            self.extend(row);
            asked.push(row.draw.as_ref().map(|draw| self.draft(row.state, draw)));
        }
        let first = |asked: &Asked| asked.drafted.first().copied().map(u64::from);
        self.drawn = asked.iter().map(|asked| asked.as_ref().and_then(first)).collect();
        Ok(ScriptedPass { rows: asked })
    }

    fn collect(&mut self, pass: ScriptedPass) -> Result<Vec<Accepted>, RunError> {
        self.call(Call::Collect)?;
        let accepted = |asked: Option<Asked>| asked.map(|asked| self.accepted(asked)).unwrap_or_default();
        let mut rows: Vec<Accepted> = pass.rows.into_iter().map(accepted).collect();
        if self.call(Call::LeaveOut).is_err() {
            rows.pop();
        }
        Ok(rows)
    }

    fn pipelines(&self) -> bool {
        self.script.pipelined
    }

    fn cut(&self, state: &ScriptedState, length: usize) -> Option<ScriptedState> {
        // Its failures are panics.
        let _ = self.call(Call::Cut);
        let is_possible = length == state.len() || length < state.len() && !self.script.recurrent;
        is_possible.then(|| state[..length].to_vec())
    }

    fn cuts(&self) -> bool {
        !self.script.recurrent
    }

    fn bytes(&self, state: &ScriptedState) -> usize {
        let _ = self.call(Call::Bytes);
        4 * state.len()
    }
}
