//! One job on the device: its tokens, its state, and how far the two have come together.

use tokio::sync::mpsc::UnboundedSender;

use super::{
    guide::Advice,
    guides::{Guides, Pending},
    job::{Finish, Job, Step},
    runner::{Draw, Drawn, Row},
};
use crate::engine::places::Place;

/// Tokens, and the state that holds them.
pub type Memory<State> = (Vec<u32>, State);

/// A job that has a row. `state` holds the first [`Sequence::done`] of its tokens.
pub struct Sequence<State> {
    job: Job,
    place: Place,
    state: State,
    answer: Vec<u32>,
    /// What the job's guide says of the next token.
    advice: Option<Pending>,
    /// Tokens of prompt and answer that are in `state`.
    done: usize,
    /// Where the prompt parts from all that was remembered when it came in; 0 where that is of no interest.
    branch: usize,
    /// The length of the snapshot that the next one takes the place of.
    passing: Option<usize>,
}

/// How far taking tokens may go.
#[derive(Clone, Copy)]
pub struct Taking {
    /// The most tokens of prompt and answer together.
    pub context: usize,
    /// The most tokens of one forward pass, at least 1.
    pub chunk: usize,
}

/// A copy of a state on its way through a prompt.
pub struct Snapshot<'a, State> {
    /// The tokens in the state.
    pub tokens: &'a [u32],
    pub state: State,
    /// The tokens of the snapshot before it that need not stay.
    pub replaces: Option<&'a [u32]>,
}

impl<State> Sequence<State> {
    /// A sequence whose state holds the first `done` tokens of the prompt already. Others share the first `branch`.
    pub fn new((job, place): (Job, Place), state: State, done: usize, branch: usize) -> Sequence<State> {
        assert!(done < job.prompt.len(), "the last prompt token is always computed");
        Sequence { job, place, state, answer: Vec::new(), advice: None, done, branch, passing: None }
    }

    /// Has the job's guide think about what it was not told yet: the answer from token `from` on.
    pub fn consult(&mut self, guides: &mut Guides, from: usize) {
        let guide = self.job.guide.take();
        self.advice = guide.map(|guide| guides.ask(guide, self.answer[from..].to_vec()));
    }

    pub fn job(&self) -> &Job {
        &self.job
    }

    pub fn done(&self) -> usize {
        self.done
    }

    pub fn in_prompt(&self) -> bool {
        self.done < self.job.prompt.len()
    }

    pub fn is_cancelled(&self) -> bool {
        self.job.steps.is_closed()
    }

    /// Prompt and answer together.
    pub fn length(&self) -> usize {
        self.job.prompt.len() + self.answer.len()
    }

    /// How many tokens the answer has.
    pub fn answered(&self) -> usize {
        self.answer.len()
    }

    /// Its part of a forward pass: at most `chunk` tokens of the prompt, or the tokens taken last.
    pub fn row(&mut self, chunk: usize) -> Row<'_, State> {
        let prompt = &self.job.prompt;
        let tokens = match self.done < prompt.len() {
            true => &prompt[self.done..prompt.len().min(self.done + chunk)],
            false => &self.answer[self.done - prompt.len()..],
        };
        let draw = (self.done + tokens.len() >= prompt.len()).then_some(Draw {
            sampling: &self.job.sampling,
            prompt,
            answer: &self.answer,
            mask: self.advice.as_ref(),
            logprobs: self.job.logprobs,
        });
        Row { state: &mut self.state, tokens, draw }
    }

    /// `count` more tokens are in the state.
    pub fn advance(&mut self, count: usize) {
        self.done += count;
        assert!(self.done <= self.length(), "a state cannot hold more than its sequence");
    }

    /// Takes the drawn token, or what the guide says instead, and asks the guide what may follow; or says why the
    /// sequence ends here.
    pub fn take(&mut self, drawn: Drawn, limits: Taking, guides: &mut Guides) -> Option<Finish> {
        let tokens = match self.advised(drawn, limits.chunk) {
            Ok(tokens) => tokens,
            Err(finish) => return Some(finish),
        };
        let taken = self.answer.len();
        for token in tokens {
            let finish = self.push(token, limits.context);
            if finish.is_some() {
                return finish;
            }
        }
        self.consult(guides, taken);
        None
    }

    /// The tokens that come next, by the draw and the guide's advice for it.
    fn advised(&mut self, drawn: Drawn, chunk: usize) -> Result<Vec<Drawn>, Finish> {
        let Some(advice) = self.advice.take() else { return Ok(vec![drawn]) };
        let (guide, advice) = advice.take().map_err(Finish::Failed)?;
        self.job.guide = Some(guide);
        match advice {
            Advice::Free => Ok(vec![drawn]),
            Advice::Mask(mask) if mask.contains(drawn.id) => Ok(vec![drawn]),
            Advice::Force(tokens) if tokens.first() == Some(&drawn.id) => {
                // All but the first have no logits. What is left of a long text is forced again.
                let count = if self.job.logprobs.is_some() { 1 } else { chunk };
                let rest = tokens.into_iter().take(count).skip(1).map(Drawn::from);
                Ok(std::iter::once(drawn).chain(rest).collect())
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
            return Some(Finish::Stop);
        }
        self.answer.push(token.id);
        // A reader that went away is seen at the next tick.
        let _ = self.job.steps.send(Step::Token(token));
        (self.answer.len() >= self.job.max_tokens || self.length() >= context).then_some(Finish::Length)
    }

    /// Takes it apart: who waits for the one reason, and what is worth remembering, which is the tokens in the state
    /// and the state.
    pub fn end(self) -> (UnboundedSender<Step>, Place, Memory<State>) {
        let mut tokens = self.job.prompt;
        tokens.extend_from_slice(&self.answer);
        tokens.truncate(self.done);
        assert_eq!(tokens.len(), self.done, "a state cannot hold more than its sequence");
        (self.job.steps, self.place, (tokens, self.state))
    }

    /// How many tokens of the prompt to run before the next place where a state that cannot be cut is worth having:
    /// where others parted from this prompt, and before its last token, so that the same prompt again finds it.
    pub fn to_next_stop(&self) -> usize {
        let stops = [self.branch, self.job.prompt.len() - 1];
        stops.into_iter().find(|&stop| stop > self.done).map_or(1, |stop| stop - self.done)
    }

    /// A copy of the state after a chunk of `count` tokens. Such a copy may have tens of megabytes, so of a long prompt
    /// a handful stays: those of the stops, those after 1, 2, 4, 8 … `chunk`s, and the last of the others.
    pub fn snapshot(&mut self, count: usize, chunk: usize) -> Snapshot<'_, State>
    where
        State: Clone,
    {
        let stays = self.done == self.branch || self.done + 1 == self.job.prompt.len();
        let doubled = ((self.done - count) / chunk + 1).next_power_of_two() <= self.done / chunk;
        let replaced = match stays || doubled {
            true => None,
            false => self.passing.replace(self.done),
        };
        let prompt = &self.job.prompt;
        let replaces = replaced.map(|length| &prompt[..length]);
        Snapshot { tokens: &prompt[..self.done], state: self.state.clone(), replaces }
    }
}
