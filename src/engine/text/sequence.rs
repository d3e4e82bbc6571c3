//! One job on the device: its tokens, its state, and how far the two have come together.

use tokio::sync::mpsc::UnboundedSender;

use super::{
    drawn::{Accepted, Drawn},
    guide::Advice,
    guides::{Guides, Pending},
    job::{Finish, Job, Step},
    penalties::Penalties,
    prefix::Key,
    runner::{Draw, Row, Tokens},
};
use crate::engine::{places::Place, token::TokenId};

/// A job that has a row. `state` holds the first `done` of its tokens.
pub struct Sequence<State> {
    /// No other sequence of the scheduler has or had it.
    pub id: u64,
    job: Job,
    place: Place,
    /// Of the prompt.
    keys: Vec<Key>,
    state: State,
    answer: Vec<TokenId>,
    /// Tokens that were drawn but are no part of the answer, because it ended before them.
    surplus: Vec<TokenId>,
    penalties: Penalties,
    /// What the job's guide says of the next token.
    advice: Option<Pending>,
    /// Tokens in `state`, those of submitted passes included.
    done: usize,
    /// The state before the pass that was submitted ahead, which is worth remembering where that pass was in vain and
    /// its state cannot be cut.
    before_ahead: Option<State>,
    /// Where the prompt parts from all that was remembered when it came in; 0 where that is of no interest.
    branch: usize,
    /// The length of the snapshot that the next one takes the place of.
    replaceable: Option<usize>,
}

/// What a sequence starts from.
pub struct Start<State> {
    /// Of each position of the prompt.
    pub keys: Vec<Key>,
    /// Holds the first `cached` tokens of the prompt.
    pub state: State,
    pub cached: usize,
    /// How many tokens of the prompt others share; 0 where that is of no interest.
    pub branch: usize,
}

/// What a sequence does in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Reads this many tokens of its prompt.
    Prompt(usize),
    /// Goes on with its answer.
    Answer,
    /// Goes on with the token that this row of the pass in flight draws.
    Ahead(usize),
}

/// How far taking tokens may go.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// The most tokens of prompt and answer together.
    pub context: usize,
    /// The most tokens of a prompt in one forward pass, at least 1.
    pub chunk: usize,
}

/// A state and what it holds.
pub struct Snapshot<State> {
    pub keys: Vec<Key>,
    pub state: State,
}

/// A sequence taken apart.
pub struct Ended<State> {
    /// Waits for the one reason.
    pub steps: UnboundedSender<Step>,
    pub place: Place,
    /// What is worth remembering.
    pub snapshot: Snapshot<State>,
}

impl<State: Clone> Sequence<State> {
    pub fn new(id: u64, (job, place): (Job, Place), start: Start<State>) -> Sequence<State> {
        let Start { keys, state, cached, branch } = start;
        assert!(cached < job.prompt.tokens.len(), "the last prompt token is always computed");
        let penalties = Penalties::new(&job.sampling, &job.prompt.tokens);
        Sequence {
            id,
            job,
            place,
            keys,
            state,
            answer: Vec::new(),
            surplus: Vec::new(),
            penalties,
            advice: None,
            done: cached,
            before_ahead: None,
            branch,
            replaceable: None,
        }
    }

    /// Has the job's guide think about what it was not told yet: the answer from token `from` on.
    pub fn consult(&mut self, guides: &mut Guides, from: usize) {
        let guide = self.job.guide.take();
        self.advice = guide.map(|guide| guides.ask(guide, self.answer[from..].to_vec()));
    }

    fn prompt(&self) -> &[TokenId] {
        &self.job.prompt.tokens
    }

    pub fn in_prompt(&self) -> bool {
        self.done < self.prompt().len()
    }

    /// How many tokens of the prompt are still to be read.
    pub fn prompt_left(&self) -> usize {
        self.prompt().len().saturating_sub(self.done)
    }

    pub fn is_cancelled(&self) -> bool {
        self.job.steps.is_closed()
    }

    /// Prompt and answer together.
    fn length(&self) -> usize {
        self.prompt().len() + self.answer.len()
    }

    /// How many tokens the answer has.
    pub fn answered(&self) -> usize {
        self.answer.len()
    }

    /// Whether it may go on with a token that the host has not seen, which is still being drawn: nothing on the host
    /// has a say in the one after it, and there is to be one.
    pub fn may_run_ahead(&self, context: usize) -> bool {
        self.job.guide.is_none()
            && self.advice.is_none()
            && !self.penalties.depend_on_answer()
            && self.answer.len() + 1 < self.job.max_tokens
            && self.length() + 1 < context
    }

    /// How many tokens a pass may add to the answer. A runner that `pipelines` adds one: the next pass may be submitted
    /// before it is known. So does one whose next token depends on the host.
    fn most(&self, context: usize, pipelines: bool) -> usize {
        if pipelines || self.advice.is_some() || self.penalties.depend_on_answer() {
            return 1;
        }
        (self.job.max_tokens - self.answer.len()).min(context - self.length())
    }

    /// Its part of a forward pass.
    pub fn row(&mut self, part: Part, context: usize, pipelines: bool) -> Row<'_, State> {
        let is_ahead = matches!(part, Part::Ahead(_));
        let index = self.answer.len() + usize::from(is_ahead);
        let most = self.most(context, pipelines);
        let prompt = &self.job.prompt;
        let tokens = match part {
            Part::Prompt(count) => Tokens::Ids(&prompt.tokens[self.done..self.done + count]),
            Part::Answer => Tokens::Ids(&self.answer[self.done - prompt.tokens.len()..]),
            Part::Ahead(row) => Tokens::Drawn { row },
        };
        let position = self.done;
        let draws = position + tokens.len() >= prompt.tokens.len();
        let draw = draws.then_some(Draw {
            sampling: &self.job.sampling,
            index,
            penalties: &self.penalties,
            mask: self.advice.as_ref(),
            logprobs: self.job.logprobs,
            most,
        });
        Row { media: prompt.media_within(position, tokens.len()), state: &mut self.state, tokens, position, draw }
    }

    /// Keeps the state as it is before a pass that is submitted ahead.
    pub fn keep_before_ahead(&mut self) {
        self.before_ahead = Some(self.state.clone());
    }

    /// `count` more tokens are in the state.
    pub fn advance(&mut self, count: usize) {
        self.done += count;
    }

    /// Takes what a pass accepted, or what the guide says instead, and asks the guide what may follow; or says why the
    /// sequence ends here.
    pub fn take(&mut self, accepted: Accepted, bounds: Bounds, guides: &mut Guides) -> Option<Finish> {
        if accepted.is_empty() {
            return None;
        }
        // The state holds all of them but the last one.
        self.done += accepted.len() - 1;
        let answered = self.answer.len();
        let mut tokens = accepted.into_iter();
        while let Some(token) = tokens.next() {
            if let Some(finish) = self.take_one(token, bounds) {
                self.surplus.extend(tokens.map(|token| token.id));
                return Some(finish);
            }
        }
        self.before_ahead = None;
        self.consult(guides, answered);
        None
    }

    /// Takes a drawn token and what the guide forces behind it.
    fn take_one(&mut self, drawn: Drawn, bounds: Bounds) -> Option<Finish> {
        let forced = match self.advised(&drawn, bounds.chunk) {
            Ok(forced) => forced,
            Err(finish) => return Some(finish),
        };
        let finish = self.push(drawn, bounds.context);
        finish.or_else(|| forced.into_iter().find_map(|id| self.push(Drawn::from(id), bounds.context)))
    }

    /// The tokens that come behind the drawn one by the guide's advice for it.
    fn advised(&mut self, drawn: &Drawn, chunk: usize) -> Result<Vec<TokenId>, Finish> {
        let Some(advice) = self.advice.take() else { return Ok(Vec::new()) };
        let (guide, advice) = advice.take().map_err(Finish::Failed)?;
        self.job.guide = Some(guide);
        match advice {
            Advice::Free => Ok(Vec::new()),
            Advice::Mask(mask) if mask.contains(drawn.id) => Ok(Vec::new()),
            Advice::Force(mut tokens) if tokens.first() == Some(&drawn.id) => {
                // All but the first have no logits. What is left of a long text is forced again.
                tokens.truncate(if self.job.logprobs.is_some() { 1 } else { chunk });
                tokens.remove(0);
                Ok(tokens)
            }
            Advice::Mask(_) | Advice::Force(_) => {
                let text = format!("the answer's guide does not allow token {}, which was drawn", drawn.id);
                Err(Finish::Failed(text))
            }
            Advice::End => Err(Finish::Stop),
        }
    }

    /// Sends a token on, or says why the sequence ends with it. A stop token is not sent.
    fn push(&mut self, token: Drawn, context: usize) -> Option<Finish> {
        if self.job.stop_tokens.contains(&token.id) {
            self.surplus.push(token.id);
            return Some(Finish::Stop);
        }
        self.answer.push(token.id);
        self.penalties.push(token.id);
        // A reader that went away is seen at the next tick.
        let _ = self.job.steps.send(Step::Token(token));
        (self.answer.len() >= self.job.max_tokens || self.length() >= context).then_some(Finish::Length)
    }

    /// Takes it apart without its state: who waits for the reason, and the place.
    pub fn abandon(self) -> (UnboundedSender<Step>, Place) {
        (self.job.steps, self.place)
    }

    /// Takes it apart. All tokens in its state are known.
    pub fn end(self) -> Ended<State> {
        let (state, done) = match self.before_ahead {
            Some(before) => (before, self.done - 1),
            None => (self.state, self.done),
        };
        let mut keys = self.keys;
        keys.extend(self.answer.iter().chain(&self.surplus).map(|&id| Key::from(id)));
        keys.truncate(done);
        assert_eq!(keys.len(), done, "a state cannot hold more than its sequence");
        Ended { steps: self.job.steps, place: self.place, snapshot: Snapshot { keys, state } }
    }

    /// How many tokens of the prompt to run before the next place where a state that cannot be cut is worth having:
    /// where others parted from this prompt, and before its last token, so that the same prompt again finds it.
    pub fn to_next_stop(&self) -> usize {
        let stops = [self.branch, self.prompt().len() - 1];
        stops.into_iter().find(|&stop| stop > self.done).map_or(1, |stop| stop - self.done)
    }

    /// A copy of the state after a chunk of `count` tokens inside the prompt, and the keys of the copy before it that
    /// need not stay. Such a copy may have tens of megabytes, so of a long prompt a handful stays: those of the stops,
    /// those after 1, 2, 4, 8 … `chunk`s, and the last of the others.
    pub fn snapshot(&mut self, count: usize, chunk: usize) -> (Snapshot<State>, Option<&[Key]>) {
        let is_stop = self.done == self.branch || self.done + 1 == self.prompt().len();
        let is_doubled = ((self.done - count) / chunk + 1).next_power_of_two() <= self.done / chunk;
        let replaced = if is_stop || is_doubled { None } else { self.replaceable.replace(self.done) };
        let snapshot = Snapshot { keys: self.keys[..self.done].to_vec(), state: self.state.clone() };
        (snapshot, replaced.map(|length| &self.keys[..length]))
    }
}
