//! One job on the device: its tokens, its state, and how far the two have come together.

use super::{Finish, Job, Step};

/// A job that has a row. `state` holds the first [`Sequence::done`] of its tokens.
pub struct Sequence<State> {
    job: Job,
    state: State,
    answer: Vec<u32>,
    /// Tokens of prompt and answer that are in `state`.
    done: usize,
}

impl<State> Sequence<State> {
    /// A sequence whose state holds the first `done` tokens of the prompt already.
    pub fn new(job: Job, state: State, done: usize) -> Sequence<State> {
        assert!(done < job.prompt.len(), "the last prompt token is always computed");
        Sequence { job, state, answer: Vec::new(), done }
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

    /// Sends the one reason and gives back what is worth remembering: the tokens in the state, and the state.
    pub fn finish(mut self, reason: Finish) -> (Vec<u32>, State) {
        let _ = self.job.steps.send(Step::Finished(reason));
        let mut tokens = std::mem::take(&mut self.job.prompt);
        tokens.extend_from_slice(&self.answer);
        tokens.truncate(self.done);
        (tokens, self.state)
    }

    /// A copy of the state and the tokens in it.
    pub fn snapshot(&self) -> (Vec<u32>, State)
    where
        State: Clone,
    {
        let tokens = self.job.prompt.iter().chain(&self.answer).take(self.done).copied().collect();
        (tokens, self.state.clone())
    }
}
