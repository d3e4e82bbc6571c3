//! A model that answers: requests become jobs for the engine, and the engine's steps become events.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::grammar::{AnswerGuide, Grammars};
use super::stop::StopStrings;
use super::{
    Cut, Decoder, Error, Event, Finished, Overrides, Reason, Request, Template, Tokenizer, logprobs, sampling,
};
use crate::engine::{Engine, Finish, Guide, Job, Step, SubmitError};

/// A loaded model, ready to answer. Shared by all requests.
pub struct Model {
    tokenizer: Arc<Tokenizer>,
    template: Option<Template>,
    defaults: Overrides,
    stop_tokens: Vec<u32>,
    grammars: Grammars,
    breakers: sampling::Breakers,
    engine: Engine,
}

impl Model {
    /// `defaults` is the sampling of requests that leave it open; `stop_tokens` end an answer.
    pub fn new(
        tokenizer: Tokenizer,
        template: Option<Template>,
        defaults: Overrides,
        stop_tokens: Vec<u32>,
        engine: Engine,
    ) -> Model {
        let tokenizer = Arc::new(tokenizer);
        let grammars = Grammars::new(Arc::clone(&tokenizer), stop_tokens.clone());
        Model { tokenizer, template, defaults, stop_tokens, grammars, breakers: sampling::Breakers::default(), engine }
    }

    /// Starts an answer. Renders and tokenises on the calling thread, which takes milliseconds for a long prompt.
    pub fn generate(&self, request: &Request) -> Result<Events, Error> {
        let prompt = self.prompt(request)?;
        let prompt_tokens = prompt.len();
        let (sender, steps) = unbounded_channel();
        self.engine.submit(self.job(request, prompt, sender)?).map_err(|error| match error {
            SubmitError::Full { waiting, limit } => Error::Busy { waiting, limit },
            SubmitError::Closed => Error::Closing,
        })?;
        let text = Text::new(Arc::clone(&self.tokenizer), &request.stop);
        Ok(Events { steps: Some(steps), text, ready: VecDeque::new(), prompt_tokens, completion_tokens: 0 })
    }

    /// Adds defaults for what the checkpoint leaves open.
    pub fn recommend(&mut self, sampling: &Overrides) {
        let own = &mut self.defaults;
        own.temperature = own.temperature.or(sampling.temperature);
        own.top_p = own.top_p.or(sampling.top_p);
        own.top_k = own.top_k.or(sampling.top_k);
    }

    /// The tokens of a request's prompt: at least one, and fewer than the context holds.
    pub fn prompt(&self, request: &Request) -> Result<Vec<u32>, Error> {
        let wrong = |message: String| Error::Request { field: "messages", message };
        if request.messages.is_empty() {
            return Err(wrong("there are no messages; send at least one".to_owned()));
        }
        let Some(template) = &self.template else {
            return Err(wrong(
                "this model has no chat template, so it cannot take messages; use a chat model".to_owned(),
            ));
        };
        let prompt = self.tokenizer.encode(&template.render(request)?, false)?;
        let (length, context) = (prompt.len(), self.context());
        if prompt.is_empty() {
            return Err(wrong("the model's chat template makes nothing of these messages".to_owned()));
        }
        if length >= context {
            return Err(Error::TooLong { prompt: length, context });
        }
        Ok(prompt)
    }

    fn job(&self, request: &Request, prompt: Vec<u32>, steps: UnboundedSender<Step>) -> Result<Job, Error> {
        if request.max_tokens == Some(0) {
            let message = "max_tokens is 0; an answer has at least 1 token".to_owned();
            return Err(Error::Request { field: "max_tokens", message });
        }
        let left = self.context() - prompt.len();
        Ok(Job {
            sampling: sampling::resolve(&request.sampling, &self.defaults, &self.tokenizer, &self.breakers)?,
            max_tokens: request.max_tokens.map_or(left, |wanted| wanted.min(left)),
            stop_tokens: if request.ignore_eos { Vec::new() } else { self.stop_tokens.clone() },
            guide: self.guide(request)?,
            logprobs: logprobs::check(request.logprobs)?,
            steps,
            prompt,
        })
    }

    /// Holds the answer to the request's format.
    fn guide(&self, request: &Request) -> Result<Option<Box<dyn Guide>>, Error> {
        let Some(grammar) = self.grammars.compile(&request.format)? else { return Ok(None) };
        let guide = AnswerGuide::new(&self.tokenizer, &self.stop_tokens, None, Some(grammar.matcher()))?;
        Ok(Some(Box::new(guide)))
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The most tokens a conversation may have, prompt and answer together.
    pub fn context(&self) -> usize {
        self.engine.context()
    }
}

/// An answer as it comes. Dropping it cancels the job.
#[derive(Debug)]
pub struct Events {
    /// `None` once the answer has ended.
    steps: Option<UnboundedReceiver<Step>>,
    text: Text,
    ready: VecDeque<Event>,
    prompt_tokens: usize,
    /// The tokens drawn so far without the one that ends the answer; those of a stop string are counted.
    completion_tokens: usize,
}

/// From tokens to the text of the answer.
#[derive(Debug)]
struct Text {
    tokenizer: Arc<Tokenizer>,
    decoder: Decoder,
    stop: StopStrings,
}

impl Text {
    fn new(tokenizer: Arc<Tokenizer>, stop: &[String]) -> Text {
        Text { tokenizer, decoder: Decoder::default(), stop: StopStrings::new(stop) }
    }
}

impl Events {
    /// The next event; `None` after [`Event::Finished`].
    pub async fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            let step = self.steps.as_mut()?.recv().await;
            self.take(step);
        }
        self.ready.pop_front()
    }

    /// [`Events::next`] for a thread outside the async runtime; inside one it panics.
    pub fn blocking_next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            let step = self.steps.as_mut()?.blocking_recv();
            self.take(step);
        }
        self.ready.pop_front()
    }

    /// Turns a step into events; `None` is an engine that went away.
    fn take(&mut self, step: Option<Step>) {
        match step {
            Some(Step::Started { cached }) => {
                self.ready.push_back(Event::Started { prompt_tokens: self.prompt_tokens, cached_tokens: cached });
            }
            Some(Step::Token(token)) => {
                self.completion_tokens += 1;
                if let Some(logprobs) = &token.logprobs {
                    self.ready.push_back(Event::Logprob(logprobs::told(&self.text.tokenizer, token.id, logprobs)));
                }
                let text = self.text.decoder.push(&self.text.tokenizer, token.id);
                if self.say(&text) {
                    self.finish(Reason::Stop);
                }
            }
            Some(Step::Finished(finish)) => {
                let rest = self.text.decoder.finish();
                let stopped = self.say(&rest);
                if !stopped {
                    let held = self.text.stop.finish();
                    self.push_text(held);
                }
                self.finish(if stopped { Reason::Stop } else { reason(finish) });
            }
            None => self.finish(Reason::Failed("the engine ended without finishing the answer".to_owned())),
        }
    }

    /// Passes decoded text on; true where a stop string ended the answer.
    fn say(&mut self, text: &str) -> bool {
        let watched = self.text.stop.push(text);
        self.push_text(watched.text);
        watched.stopped
    }

    fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.ready.push_back(Event::Text(text));
        }
    }

    /// Ends the answer and, by dropping the receiver, the job.
    fn finish(&mut self, reason: Reason) {
        self.steps = None;
        self.ready.push_back(Event::Finished(Finished {
            reason,
            completion_tokens: self.completion_tokens,
            reasoning_tokens: 0,
        }));
    }
}

fn reason(finish: Finish) -> Reason {
    match finish {
        Finish::Stop => Reason::Stop,
        Finish::Length => Reason::Length(Cut::Text),
        Finish::Failed(message) => Reason::Failed(message),
        Finish::Closing => Reason::Closing,
    }
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
