//! Loading, one block at a time: whoever runs models beside it waits for a block at most.

use std::sync::Arc;

use super::{
    Backend, Cost, Embedder, Error, Options, Runner, backend,
    models::{self, Architecture, Build, Built},
    weights::{Ledger, Source},
};
use crate::{
    checkpoint::Checkpoint,
    engine::{LoadStep, Loader},
};

/// A model on its way into memory. Lives on the thread that will run the model.
pub struct Loading {
    checkpoint: Arc<Checkpoint>,
    options: Options,
    /// `None` before the first step.
    begun: Option<Begun>,
    ledger: Ledger,
}

struct Begun {
    architecture: &'static Architecture,
    backend: Backend,
    build: Box<dyn Build>,
}

/// A model in memory, by what it is for.
pub enum Loaded {
    /// It writes text; its hidden states make embeddings. The two share the weights.
    Text {
        /// Writes.
        runner: Runner,
        /// Reads.
        embedder: Embedder,
    },
    /// It makes embeddings.
    Embedding(Embedder),
}

/// The loader of a model that writes text: what writes, and what makes embeddings with the same weights.
pub struct TextLoader(Loading);

/// The loader of a model that makes embeddings, and perhaps writes text, too.
pub struct EmbedderLoader(Loading);

/// What loads a model, step by step.
pub fn load(checkpoint: Arc<Checkpoint>, options: Options) -> Loading {
    Loading { checkpoint, options, begun: None, ledger: Ledger::default() }
}

impl Loading {
    /// Loads the next block. `None` while there are more.
    ///
    /// # Errors
    /// An unknown architecture, options that do not go together, a config or a tensor that does not fit it, tensors left
    /// over: each named.
    pub fn step(&mut self) -> Result<Option<Loaded>, Error> {
        let Loading { checkpoint, options, begun, ledger } = self;
        let Begun { architecture, backend, build } = match begun {
            Some(begun) => begun,
            None => begun.insert(Begun::new(checkpoint, *options)?),
        };
        let source = Source { checkpoint, backend: *backend, unused: architecture.unused, ledger };
        let Some(built) = build.step(&source)? else { return Ok(None) };
        source.all_read()?;
        mlx_cpu::release_freed();
        let pooling = checkpoint.pooling()?;
        Ok(Some(match built {
            Built::Text(model) => Loaded::Text {
                runner: Runner::new(model.clone(), *backend)?,
                embedder: Embedder::of_text(model, pooling),
            },
            Built::Reader(reader) => Loaded::Embedding(Embedder::new(reader, pooling)),
        }))
    }

    /// Loads all that is left.
    ///
    /// # Errors
    /// As [`Loading::step`].
    pub fn finish(mut self) -> Result<Loaded, Error> {
        loop {
            if let Some(loaded) = self.step()? {
                return Ok(loaded);
            }
        }
    }

    /// As a loader of a model that writes text.
    pub fn text(self) -> TextLoader {
        TextLoader(self)
    }

    /// As a loader of a model that makes embeddings.
    pub fn embedder(self) -> EmbedderLoader {
        EmbedderLoader(self)
    }

    /// The share of the checkpoint's bytes that was read, from 0 to 1.
    fn done(&self) -> f32 {
        let all: usize = self.checkpoint.tensors().map(|tensor| tensor.len).sum();
        (self.ledger.tally().bytes() / all.max(1) as f64).min(1.0) as f32
    }

    /// A step, and what `pick` makes of a model that is loaded.
    fn step_to<T>(&mut self, pick: impl Fn(Loaded) -> Result<T, Error>) -> Result<LoadStep<T>, Error> {
        match self.step()? {
            Some(loaded) => pick(loaded).map(LoadStep::Loaded),
            None => Ok(LoadStep::More(self.done())),
        }
    }
}

impl Begun {
    fn new(checkpoint: &Checkpoint, options: Options) -> Result<Begun, Error> {
        let architecture = models::find(checkpoint)?;
        Ok(Begun { architecture, backend: backend(checkpoint, options)?, build: (architecture.begin)() })
    }
}

impl Loaded {
    /// The model that writes text, and what makes embeddings with the same weights.
    ///
    /// # Errors
    /// It writes none.
    pub fn text(self) -> Result<(Runner, Embedder), Error> {
        match self {
            Loaded::Text { runner, embedder } => Ok((runner, embedder)),
            Loaded::Embedding(_) => Err(Error("the model makes embeddings and writes no text".into())),
        }
    }

    /// What makes embeddings of the model's hidden states.
    pub fn embedder(self) -> Embedder {
        match self {
            Loaded::Text { embedder, .. } | Loaded::Embedding(embedder) => embedder,
        }
    }

    /// What the model's tokens cost.
    pub fn cost(&self) -> &Cost {
        match self {
            Loaded::Text { embedder, .. } | Loaded::Embedding(embedder) => embedder.cost(),
        }
    }
}

impl Loader for TextLoader {
    type Output = (Runner, Embedder);
    type Error = Error;

    fn step(&mut self) -> Result<LoadStep<(Runner, Embedder)>, Error> {
        self.0.step_to(Loaded::text)
    }
}

impl Loader for EmbedderLoader {
    type Output = Embedder;
    type Error = Error;

    fn step(&mut self) -> Result<LoadStep<Embedder>, Error> {
        self.0.step_to(|loaded| Ok(loaded.embedder()))
    }
}
