//! Loading, one block at a time: whoever runs models beside it waits for a block at most.

use std::sync::Arc;

use super::{
    Backend, Cost, Embedder, Error, Options, Runner, backend,
    models::{self, Architecture, Build, Built},
    weights::{Ledger, Source},
};
use crate::checkpoint::Checkpoint;

/// A model on its way into memory. Lives on the thread that will run the model.
pub struct Loading {
    checkpoint: Arc<Checkpoint>,
    architecture: &'static Architecture,
    backend: Backend,
    build: Box<dyn Build>,
    ledger: Ledger,
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

/// Begins to load a model. Call it on the thread that will run it.
///
/// # Errors
/// An unknown architecture; options that do not go together.
pub fn load(checkpoint: Arc<Checkpoint>, options: Options) -> Result<Loading, Error> {
    let architecture = models::find(&checkpoint)?;
    let backend = backend(&checkpoint, options)?;
    Ok(Loading { checkpoint, architecture, backend, build: (architecture.begin)(), ledger: Ledger::default() })
}

impl Loading {
    /// Loads the next block. `None` while there are more.
    ///
    /// # Errors
    /// A config or a tensor that does not fit it, tensors left over: each named.
    pub fn step(&mut self) -> Result<Option<Loaded>, Error> {
        let Loading { checkpoint, architecture, backend, build, ledger } = self;
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
}

impl Loaded {
    /// The model that writes text.
    ///
    /// # Errors
    /// It writes none.
    pub fn text(self) -> Result<Runner, Error> {
        match self {
            Loaded::Text { runner, .. } => Ok(runner),
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
