//! A model that answers: requests become jobs for the engine, and the engine's steps become events.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    Answers, Beginning, Decoder, Dialect, EmbeddingModel, Error, Field, Message, Phase, Prompt, Request, Role,
    Sampling, SpecialTokens, Splitter, Template, Thinking, Tokenizer,
    answer::{Answer, Reader},
    constraint::{Constraint, ConstraintBuilder},
    logprobs,
    output::{loops::Loops, repeats::Repeats, stop::StopStrings},
    prompt::PromptBuilder,
    sampling,
};
use crate::engine::{self, Handle, Health, Job, Step, TokenId};

/// A loaded model, ready to answer. Shared by all requests.
pub struct Model {
    tokenizer: Arc<Tokenizer>,
    /// By their names.
    special_tokens: SpecialTokens,
    dialect: &'static Dialect,
    prompts: PromptBuilder,
    constraints: ConstraintBuilder,
    stop_tokens: Vec<u32>,
    sampling: Sampling,
    thinking: Thinking,
    breakers: sampling::Breakers,
    engine: Handle<Job>,
    /// Makes vectors of its hidden states.
    embeddings: Option<Arc<EmbeddingModel>>,
}

/// What a model is made of, beside the engine that runs it.
pub struct ModelParts {
    /// Text to tokens and back.
    pub tokenizer: Tokenizer,
    /// `None` where the model takes no messages.
    pub template: Option<Template>,
    /// How the model writes.
    pub dialect: &'static Dialect,
    /// Tokens that end an answer, beside those of the dialect.
    pub stop_tokens: Vec<u32>,
    /// For requests that leave settings open.
    pub sampling: Sampling,
    /// For requests that say nothing of it.
    pub thinking: Thinking,
}

impl ModelParts {
    /// A tokenizer and a template of a model that writes in no known dialect.
    pub fn new(tokenizer: Tokenizer, template: Option<Template>, stop_tokens: Vec<u32>) -> ModelParts {
        let sampling = Sampling::default();
        ModelParts {
            tokenizer,
            template,
            dialect: Dialect::auto(),
            stop_tokens,
            sampling,
            thinking: Thinking::default(),
        }
    }
}

/// Room for the answers to one request. Dropping it gives the room back.
#[derive(Debug)]
pub struct Permit(Vec<engine::Permit<Job>>);

impl Model {
    /// A model of these parts, on an engine that runs its weights.
    ///
    /// # Errors
    /// It is to think by default, and cannot.
    pub fn new(parts: ModelParts, engine: Handle<Job>) -> Result<Model, Error> {
        let ModelParts { tokenizer, template, dialect, mut stop_tokens, sampling, thinking } = parts;
        let tokenizer = Arc::new(tokenizer);
        let special_tokens = Arc::new(tokenizer.special_names().map(str::to_owned).collect());
        stop_tokens.extend(dialect.stop_tokens.iter().filter_map(|name| tokenizer.special_id(name)));
        stop_tokens.sort_unstable();
        stop_tokens.dedup();
        let mut opening_tags = dialect.reasoning.iter().flat_map(|tags| tags.open.first());
        let template_thinks = template.as_ref().is_some_and(|template| opening_tags.any(|tag| template.mentions(tag)));
        let constraints = ConstraintBuilder::new(Arc::clone(&tokenizer), dialect, stop_tokens.clone(), template_thinks);
        let prompts = PromptBuilder { tokenizer: Arc::clone(&tokenizer), template, dialect };
        let model = Model {
            tokenizer,
            special_tokens,
            dialect,
            prompts,
            constraints,
            stop_tokens,
            sampling,
            thinking,
            breakers: sampling::Breakers::default(),
            engine,
            embeddings: None,
        };
        model.check_thinking()?;
        Ok(model)
    }

    /// Fails where the model cannot think as it is to by default.
    fn check_thinking(&self) -> Result<(), Error> {
        if self.thinking == Thinking::default() {
            return Ok(());
        }
        let messages = vec![Message::new(Role::User, "Hello")];
        let request = Request { thinking: self.thinking.clone(), ..Request::new(messages) };
        let prompt = self.prompt(&request)?;
        self.constraints.build(&request, &self.thinking, &prompt).map(drop)
    }

    /// Takes room for this many answers. Costs next to nothing, so it comes before any work on a request.
    ///
    /// # Errors
    /// There is no room now, or there never will be for so many; the model is closed or has failed.
    pub fn reserve(&self, answers: usize) -> Result<Permit, Error> {
        self.engine.reserve(answers).map(Permit).map_err(Error::from)
    }

    /// Starts the answers. Renders, tokenises and compiles grammars on the calling thread, which takes milliseconds.
    pub fn generate(&self, request: &Request) -> Result<Answers, Error> {
        self.generate_in(request, self.reserve(request.answers.get())?)
    }

    /// [`Model::generate`], in the room that was taken for it.
    ///
    /// # Errors
    /// A request that the model cannot take.
    ///
    /// # Panics
    /// If the room is for less answers than the request asks for.
    pub fn generate_in(&self, request: &Request, permit: Permit) -> Result<Answers, Error> {
        let Permit(mut permits) = permit;
        let prompt = self.prompt(request)?;
        let sampling = sampling::resolve(request, &self.sampling, &self.tokenizer, &self.breakers)?;
        let constraint = self.constraints.build(request, self.thinking_of(request), &prompt)?;
        let answers = (0..request.answers.get()).map(|index| {
            let seed = sampling.seed.map(|seed| sampling::seed_of(seed, index));
            let sampling = Sampling { seed, ..sampling.clone() };
            let (job, steps) = self.job(request, &prompt, sampling, &constraint)?;
            let permit = permits.pop().expect("a request that outgrows its permit is a bug");
            permit.submit(job)?;
            let decoder = if prompt.goes_on || constraint.is_exact() { Decoder::of_all() } else { Decoder::default() };
            let reader = Reader { decoder, ..self.reader(request, prompt.starts, index) };
            Ok(Answer::new(steps, reader, prompt.tokens.len()))
        });
        // Where one cannot be made the others are dropped, and that cancels them.
        let answers = answers.collect::<Result<Vec<Answer>, Error>>()?;
        Ok(Answers::new(answers).with_ignored(prompt.unrendered))
    }

    /// How much to think: as the request says or, where it says nothing, as the model does by default.
    fn thinking_of<'a>(&'a self, request: &'a Request) -> &'a Thinking {
        let is_silent = request.thinking == Thinking::default() && request.template_variables.is_empty();
        if is_silent { &self.thinking } else { &request.thinking }
    }

    /// The prompt of a request.
    ///
    /// # Errors
    /// Messages that the model cannot take, or more of them than its context holds.
    pub fn prompt(&self, request: &Request) -> Result<Prompt, Error> {
        let prompt = self.prompts.build(request, self.thinking_of(request))?;
        let length = prompt.tokens.len();
        let context = self.context();
        if length >= context {
            return Err(Error::TooLong { prompt: length, context });
        }
        Ok(prompt)
    }

    /// The job of one answer, and where its steps come out.
    fn job(
        &self,
        request: &Request,
        prompt: &Prompt,
        sampling: Sampling,
        constraint: &Constraint,
    ) -> Result<(Job, UnboundedReceiver<Step>), Error> {
        if request.max_tokens == Some(0) {
            let message = "an answer has at least 1 token, and at most 0 are asked for".to_owned();
            return Err(Error::Request { field: Field::MaxTokens, message });
        }
        let left = self.context() - prompt.tokens.len();
        let (sender, steps) = unbounded_channel();
        let job = Job {
            prompt: prompt.tokens.clone().into(),
            sampling,
            max_tokens: request.max_tokens.map_or(left, |wanted| wanted.min(left)),
            stop_tokens: if request.ignore_eos {
                Vec::new()
            } else {
                self.stop_tokens.iter().copied().map(TokenId).collect()
            },
            guide: self.constraints.guide(constraint)?,
            logprobs: logprobs::check(request.logprobs)?,
            steps: sender,
        };
        Ok((job, steps))
    }

    fn reader(&self, request: &Request, starts: Phase, index: usize) -> Reader {
        let beginning = Beginning {
            tools: request.callable(),
            phase: starts,
            special_tokens: Arc::clone(&self.special_tokens),
            ids: sampling::seed_of(sampling::random_seed(), index),
        };
        Reader {
            tokenizer: Arc::clone(&self.tokenizer),
            decoder: Decoder::default(),
            splitter: Splitter::new(self.dialect, beginning),
            stop: StopStrings::new(&request.stop),
            // Whoever asks for more than the model has to say gets it.
            loops: (!request.ignore_eos).then(Loops::new),
            parallel_calls: request.parallel(),
            repeats: Repeats::default(),
        }
    }

    /// Makes vectors, too, by this model over the same weights.
    pub fn set_embeddings(&mut self, model: EmbeddingModel) {
        self.embeddings = Some(Arc::new(model));
    }

    /// What makes vectors of its hidden states, if anything does.
    pub fn embeddings(&self) -> Option<&Arc<EmbeddingModel>> {
        self.embeddings.as_ref()
    }

    /// Why it answers no more, if it does not.
    pub fn failure(&self) -> Option<String> {
        match self.engine.health() {
            Health::Dead { reason } => Some(reason),
            Health::Loading { .. } | Health::Alive | Health::Closing => None,
        }
    }

    /// What runs its weights.
    pub fn engine(&self) -> &Handle<Job> {
        &self.engine
    }

    /// Text to tokens and back.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// How it writes.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// The most tokens a conversation may have, prompt and answer together.
    pub fn context(&self) -> usize {
        self.engine.context()
    }
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
