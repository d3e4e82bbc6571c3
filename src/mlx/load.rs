//! Loading, one piece at a time: whoever runs models beside it waits for a piece at most.

use std::{rc::Rc, sync::Arc, time::Duration};

use super::{
    Backend, Cost, Embedder, Error, Options, Runner, backend,
    models::{self, Built},
    steps::{self, Steps},
    weights::{Ledger, Source},
};
use crate::{
    checkpoint::Checkpoint,
    engine::{LoadStep, Loader, Pace},
};

/// About how many bytes a step reads, counted as f32. Packing them for our CPU kernels takes half a millisecond, or two
/// where the memory is touched for the first time. MLX's own form is hardly more than a copy, and parts of a matrix are
/// copied once more.
const CPU_PIECE: usize = 1 << 20;
const MLX_PIECE: usize = 64 << 20;

/// A model on its way into memory. Lives on the thread that will run the model.
pub struct Loading {
    checkpoint: Arc<Checkpoint>,
    options: Options,
    piece: Option<usize>,
    pace: Pace,
    /// `None` before the first step.
    work: Option<Steps<'static, Loaded>>,
    ledger: Rc<Ledger>,
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
    Loading { checkpoint, options, piece: None, pace: Pace::default(), work: None, ledger: Rc::default() }
}

/// The whole way of a checkpoint into memory.
async fn load_all(
    checkpoint: Arc<Checkpoint>,
    options: Options,
    piece: Option<usize>,
    ledger: Rc<Ledger>,
) -> Result<Loaded, Error> {
    let architecture = models::find(&checkpoint)?;
    let backend = backend(&checkpoint, options)?;
    let usual = if let Backend::Cpu { .. } = backend { CPU_PIECE } else { MLX_PIECE };
    let source = Source {
        checkpoint: &checkpoint,
        backend,
        unused: architecture.unused,
        ledger: &ledger,
        piece: piece.unwrap_or(usual),
    };
    let built = (architecture.load)(&source).await?;
    source.all_read()?;
    mlx_cpu::release_freed();
    let pooling = checkpoint.pooling()?;
    Ok(match built {
        Built::Text(model) => {
            Loaded::Text { runner: Runner::new(model.clone(), backend)?, embedder: Embedder::of_text(model, pooling) }
        }
        Built::Reader(reader) => Loaded::Embedding(Embedder::new(reader, pooling)),
    })
}

impl Loading {
    /// Reads about so many bytes a step instead of what suits the device.
    pub fn in_pieces_of(self, bytes: usize) -> Loading {
        Loading { piece: Some(bytes), ..self }
    }

    /// Loads the next piece. `None` while there are more.
    ///
    /// # Errors
    /// An unknown architecture, options that do not go together, a config or a tensor that does not fit it, tensors left
    /// over: each named.
    pub fn step(&mut self) -> Result<Option<Loaded>, Error> {
        let Loading { checkpoint, options, piece, work, ledger, .. } = self;
        let begin = || load_all(Arc::clone(checkpoint), *options, *piece, Rc::clone(ledger));
        steps::step(work.get_or_insert_with(|| Box::pin(begin())))
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

    /// As many pieces as the time allows, at least one, and what `pick` makes of a model that is loaded.
    fn steps<T>(&mut self, time: Duration, pick: impl Fn(Loaded) -> Result<T, Error>) -> Result<LoadStep<T>, Error> {
        let mut pace = self.pace;
        let loaded = pace.steps(time, || self.step());
        self.pace = pace;
        match loaded? {
            Some(loaded) => pick(loaded).map(LoadStep::Loaded),
            None => Ok(LoadStep::More(self.done())),
        }
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

    fn step(&mut self, time: Duration) -> Result<LoadStep<(Runner, Embedder)>, Error> {
        self.0.steps(time, Loaded::text)
    }
}

impl Loader for EmbedderLoader {
    type Output = Embedder;
    type Error = Error;

    fn step(&mut self, time: Duration) -> Result<LoadStep<Embedder>, Error> {
        self.0.steps(time, |loaded| Ok(loaded.embedder()))
    }
}
