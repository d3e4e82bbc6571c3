//! A model that answers: requests become jobs for the engine, and the engine's steps become events.

use std::{borrow::Cow, sync::Arc};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    Answers, Beginning, Decoder, Dialect, Error, Field, Message, Overrides, ParallelCalls, Part, Phase, Request, Role,
    SpecialTokens, Splitter, Template, Thinking, Tokenizer,
    answer::{Answer, Reader},
    constraint::{
        contract::{self, Contract},
        grammar::Grammars,
    },
    logprobs,
    output::{loops::Loops, stop::StopStrings},
    prompt::tool_prompt,
    sampling,
};
use crate::engine::{Handle, Job, Sampling, Step, SubmitError};

/// A loaded model, ready to answer. Shared by all requests.
pub struct Model {
    tokenizer: Arc<Tokenizer>,
    /// By their names.
    special_tokens: SpecialTokens,
    template: Option<Template>,
    dialect: &'static Dialect,
    defaults: Overrides,
    thinking: Thinking,
    stop_tokens: Vec<u32>,
    grammars: Grammars,
    breakers: sampling::Breakers,
    engine: Handle<Job>,
}

/// A conversation as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// At least one, and fewer than the context holds.
    pub tokens: Vec<u32>,
    /// What the prompt's end has begun: a thought, or the answer.
    pub starts: Phase,
    /// Whether the prompt's end has closed a thought, so that the answer will have none.
    pub ends_thought: bool,
    /// Whether the prompt's end has begun the answer's text, where that is a message of its own.
    pub begins_text: bool,
}

impl Model {
    /// `defaults` is the sampling of requests that leave it open; `stop_tokens` end an answer.
    pub fn new(
        tokenizer: Tokenizer,
        template: Option<Template>,
        defaults: Overrides,
        stop_tokens: Vec<u32>,
        engine: Handle<Job>,
    ) -> Model {
        let tokenizer = Arc::new(tokenizer);
        let grammars = Grammars::new(Arc::clone(&tokenizer), stop_tokens.clone());
        let special_tokens = Arc::new(tokenizer.special_names().map(str::to_owned).collect());
        let dialect = Dialect::auto();
        let breakers = sampling::Breakers::default();
        let thinking = Thinking::default();
        Model {
            tokenizer,
            special_tokens,
            template,
            dialect,
            defaults,
            thinking,
            stop_tokens,
            grammars,
            breakers,
            engine,
        }
    }

    /// Reads and writes answers in this dialect.
    pub fn speak(&mut self, dialect: &'static Dialect) {
        self.dialect = dialect;
        let own = dialect.stop_tokens.iter().filter_map(|name| self.tokenizer.special_id(name));
        self.stop_tokens.extend(own);
        self.stop_tokens.sort_unstable();
        self.stop_tokens.dedup();
        self.grammars = Grammars::new(Arc::clone(&self.tokenizer), self.stop_tokens.clone());
    }

    /// Starts the answers. Renders, tokenises and compiles grammars on the calling thread, which takes milliseconds.
    pub fn generate(&self, request: &Request) -> Result<Answers, Error> {
        let request = &self.with_thinking(request);
        let prompt = self.prompt(request)?;
        let sampling = sampling::resolve(&request.sampling, &self.defaults, &self.tokenizer, &self.breakers)?;
        let contract = contract::of(request, &prompt, self)?;
        let answers = (0..request.answers.get()).map(|index| {
            let sampling = Sampling { seed: seed(sampling.seed, index), ..sampling.clone() };
            let steps = self.submit(request, &prompt, sampling, &contract)?;
            Ok(Answer::new(steps, self.reader(request, prompt.starts, index), prompt.tokens.len()))
        });
        // Where one cannot be queued the others are dropped, and that cancels them.
        answers.collect::<Result<Vec<Answer>, Error>>().map(Answers::new)
    }

    /// Thinks this much where a request says nothing of it.
    ///
    /// # Errors
    /// The model cannot.
    pub fn think(&mut self, thinking: Thinking) -> Result<(), Error> {
        let hello = Request::new(vec![Message::new(Role::User, "Hello")]);
        let sample = Request { thinking: thinking.clone(), ..hello };
        if thinking != Thinking::default() {
            contract::of(&sample, &self.prompt(&sample)?, self)?;
        }
        self.thinking = thinking;
        Ok(())
    }

    /// The request with the model's own wishes about thoughts where it has none.
    fn with_thinking<'r>(&self, request: &'r Request) -> Cow<'r, Request> {
        let is_silent = request.thinking == Thinking::default() && request.template_variables.is_empty();
        match is_silent && self.thinking != Thinking::default() {
            true => Cow::Owned(Request { thinking: self.thinking.clone(), ..request.clone() }),
            false => Cow::Borrowed(request),
        }
    }

    /// Adds defaults for what the checkpoint leaves open.
    pub fn recommend(&mut self, sampling: &Overrides) {
        let own = &mut self.defaults;
        own.temperature = own.temperature.or(sampling.temperature);
        own.top_p = own.top_p.or(sampling.top_p);
        own.top_k = own.top_k.or(sampling.top_k);
    }

    /// The prompt of a request.
    pub fn prompt(&self, request: &Request) -> Result<Prompt, Error> {
        let wrong = |message: String| Error::Request { field: Field::Messages, message };
        if request.messages.is_empty() {
            return Err(wrong("there are no messages; send at least one".to_owned()));
        }
        request.messages.iter().enumerate().try_for_each(|(index, message)| only_text(index, message))?;
        let Some(template) = &self.template else {
            return Err(wrong(
                "this model has no chat template, so it cannot take messages; use a chat model".to_owned(),
            ));
        };
        let taught = tool_prompt::ids(tool_prompt::tools(request, template, self.dialect), self.dialect.call_ids);
        let rendered = template.render(&taught)?;
        let tokens = self.tokenizer.encode_rendered(&rendered)?;
        let (length, context) = (tokens.len(), self.context());
        if tokens.is_empty() {
            return Err(wrong("the model's chat template makes nothing of these messages".to_owned()));
        }
        if length >= context {
            return Err(Error::TooLong { prompt: length, context });
        }
        let ends_thought = self.dialect.ends_thought(&rendered.text);
        let starts = match request.messages.last().filter(|_| request.continue_final) {
            // The thought that the last message has begun goes on.
            Some(last) if self.dialect.leaves_open(&last.text()) => Phase::Reasoning,
            _ => self.dialect.starts_in(&rendered.text),
        };
        let begins_text = request.continue_final
            || self.dialect.turns.is_some_and(|turns| rendered.text.trim_end().ends_with(turns.text.trim_end()));
        Ok(Prompt { tokens, starts, ends_thought, begins_text })
    }

    fn submit(
        &self,
        request: &Request,
        prompt: &Prompt,
        sampling: Sampling,
        contract: &Contract,
    ) -> Result<UnboundedReceiver<Step>, Error> {
        if request.max_tokens == Some(0) {
            let message = "an answer has at least 1 token, and at most 0 are asked for".to_owned();
            return Err(Error::Request { field: Field::MaxTokens, message });
        }
        let left = self.context() - prompt.tokens.len();
        let (sender, steps) = unbounded_channel();
        let job = Job {
            prompt: prompt.tokens.clone(),
            sampling,
            max_tokens: request.max_tokens.map_or(left, |wanted| wanted.min(left)),
            stop_tokens: if request.ignore_eos { Vec::new() } else { self.stop_tokens.clone() },
            guide: contract.guide(self)?,
            logprobs: logprobs::check(request.logprobs)?,
            steps: sender,
        };
        self.engine.submit(job).map_err(|error| match error {
            SubmitError::Full { waiting, limit, .. } => Error::Busy { waiting, limit },
            SubmitError::TooMany { .. } => Error::Request { field: Field::Answers, message: error.to_string() },
            SubmitError::Closed => Error::Closing,
            SubmitError::Dead { .. } => Error::Internal(error.to_string()),
        })?;
        Ok(steps)
    }

    fn reader(&self, request: &Request, starts: Phase, index: usize) -> Reader {
        let beginning = Beginning {
            tools: request.callable(),
            phase: starts,
            special_tokens: Arc::clone(&self.special_tokens),
            ids: seed(sampling::random_seed(), index),
        };
        Reader {
            tokenizer: Arc::clone(&self.tokenizer),
            decoder: Decoder::default(),
            splitter: Splitter::new(self.dialect, beginning),
            stop: StopStrings::new(&request.stop),
            // Whoever asks for more than the model has to say gets it.
            loops: (!request.ignore_eos).then(Loops::new),
            parallel_calls: request.parallel_calls == ParallelCalls::Allowed,
        }
    }

    pub fn engine(&self) -> &Handle<Job> {
        &self.engine
    }

    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    pub(super) fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }

    pub(super) fn grammars(&self) -> &Grammars {
        &self.grammars
    }

    pub(super) fn stop_tokens(&self) -> &[u32] {
        &self.stop_tokens
    }

    /// The most tokens a conversation may have, prompt and answer together.
    pub fn context(&self) -> usize {
        self.engine.context()
    }
}

/// Refuses what a model of text cannot read.
fn only_text(index: usize, message: &Message) -> Result<(), Error> {
    let said = message.content.iter().filter(|part| !matches!(part, Part::Reasoning(_) | Part::ToolCall(_)));
    for (number, part) in said.enumerate() {
        let Some(what) = unreadable(part) else { continue };
        let message = format!("this model takes text only and no {what}; leave it out, or ask another model");
        return Err(Error::Request { field: Field::Part { message: index, part: number }, message });
    }
    Ok(())
}

/// What of this part is no text, if anything is.
fn unreadable(part: &Part) -> Option<&'static str> {
    match part {
        Part::Text(_) | Part::Reasoning(_) | Part::ToolCall(_) => None,
        Part::ToolResult(result) => result.content.iter().find_map(unreadable),
        Part::Picture(_) => Some("pictures"),
        Part::Sound(_) => Some("sounds"),
        Part::Document(_) => Some("documents"),
    }
}

/// The seed of answer number `index`; the first has the request's own.
fn seed(request: u64, index: usize) -> u64 {
    request.wrapping_add((index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
