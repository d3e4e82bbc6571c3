//! One job on the device: its tokens, its state, and how far the two have come together.

use tokio::sync::mpsc::UnboundedSender;

use super::{Finish, Job, Step};

/// Tokens, and the state that holds them.
pub type Memory<State> = (Vec<u32>, State);

/// A job that has a row. `state` holds the first [`Sequence::done`] of its tokens.
pub struct Sequence<State> {
    job: Job,
    state: State,
    answer: Vec<u32>,
    /// Tokens of prompt and answer that are in `state`.
    done: usize,
    /// Where the prompt parts from all that was remembered when it came in; 0 where that is of no interest.
    branch: usize,
    /// The length of the snapshot that the next one takes the place of.
    passing: Option<usize>,
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
    pub fn new(job: Job, state: State, done: usize, branch: usize) -> Sequence<State> {
        assert!(done < job.prompt.len(), "the last prompt token is always computed");
        Sequence { job, state, answer: Vec::new(), done, branch, passing: None }
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

    /// The parts of a forward pass: the state, the tokens to run next (at most `chunk` of the prompt, or the token
    /// drawn last), the job and the answer so far.
    pub fn parts(&mut self, chunk: usize) -> (&mut State, &[u32], &Job, &[u32]) {
        let prompt = &self.job.prompt;
        let tokens = match self.done < prompt.len() {
            true => &prompt[self.done..prompt.len().min(self.done + chunk)],
            false => &self.answer[self.done - prompt.len()..],
        };
        (&mut self.state, tokens, &self.job, &self.answer)
    }

    /// `count` more tokens are in the state.
    pub fn advance(&mut self, count: usize) {
        self.done += count;
        assert!(self.done <= self.length(), "a state cannot hold more than its sequence");
    }

    /// Takes a drawn token: sends it on, or says why the sequence ends with it. A stop token is not sent.
    pub fn take(&mut self, token: u32, context: usize) -> Option<Finish> {
        if self.job.stop_tokens.contains(&token) {
            return Some(Finish::Stop);
        }
        self.answer.push(token);
        // A reader that went away is seen at the next tick.
        let _ = self.job.steps.send(Step::Token(token));
        (self.answer.len() >= self.job.max_tokens || self.length() >= context).then_some(Finish::Length)
    }

    /// Takes it apart: who waits for the one reason, and what is worth remembering, which is the tokens in the state
    /// and the state.
    pub fn end(self) -> (UnboundedSender<Step>, Memory<State>) {
        let mut tokens = self.job.prompt;
        tokens.extend_from_slice(&self.answer);
        tokens.truncate(self.done);
        assert_eq!(tokens.len(), self.done, "a state cannot hold more than its sequence");
        (self.job.steps, (tokens, self.state))
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
