//! Texts as vectors: what is asked for and what comes of it, whatever protocol it came by, and the model that does it.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::{Error, Field, Tokenizer};
use crate::engine::{EmbedError, EmbedJob, Handle, Health, Stats, TokenId};

/// What to make vectors of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingRequest {
    /// At least one; each becomes a vector.
    pub inputs: Vec<EmbeddingInput>,
    /// How many numbers of each vector are wanted, from its beginning; `None` is all the model has. What is left of a
    /// vector is scaled to length 1 again.
    pub dimensions: Option<usize>,
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbeddingInput {
    Text(String),
    /// A text that the caller has tokenised already, with the special tokens that it wants.
    Tokens(Vec<u32>),
}

/// The vectors of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embeddings {
    /// In the order of the inputs, each of as many numbers as were asked for.
    pub vectors: Vec<Vec<f32>>,
    /// What the inputs were in tokens together, special ones included.
    pub tokens: usize,
}

/// What makes vectors of token ids: an instance of the engine, or a stand-in for one.
pub trait Vectors: Send + Sync {
    /// The most tokens of one text.
    fn context(&self) -> usize;

    /// How many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// Takes room for one request, before any work on it.
    ///
    /// # Errors
    /// There is none, or the model is gone.
    fn reserve(&self) -> Result<EmbedPermit, Error>;

    /// What it has done and is doing.
    fn stats(&self) -> Stats;

    /// Why it makes none any more, if it does not.
    fn failure(&self) -> Option<String>;

    /// Ends what runs and frees the memory. Blocks until that is done.
    fn close(&self);
}

/// Room for one request; dropping it gives it back. Called with rows of token ids, it makes one vector for each, in
/// order.
pub type EmbedPermit = Box<dyn FnOnce(Vec<Vec<u32>>) -> EmbedFuture + Send>;

/// Vectors on their way. Dropping this cancels them.
pub type EmbedFuture = Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, Error>> + Send>>;

/// The engine's instance that makes vectors of so many numbers.
#[derive(Debug)]
pub struct EngineVectors {
    pub engine: Handle<EmbedJob>,
    pub dimensions: usize,
}

impl Vectors for EngineVectors {
    fn context(&self) -> usize {
        self.engine.context()
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn reserve(&self) -> Result<EmbedPermit, Error> {
        let permits = self.engine.reserve(1)?;
        let permit = permits.into_iter().next().expect("one permit for one place; anything else is a bug");
        Ok(Box::new(move |rows| {
            let (sender, vectors) = oneshot::channel();
            let rows = rows.into_iter().map(|row| row.into_iter().map(TokenId).collect()).collect();
            let submitted = permit.submit(EmbedJob { rows, vectors: sender });
            Box::pin(async move {
                submitted?;
                match vectors.await {
                    Ok(Ok(vectors)) => Ok(vectors),
                    Ok(Err(EmbedError::Closing)) => Err(Error::Closing),
                    Ok(Err(error)) => Err(Error::Internal(error.to_string())),
                    Err(_) => Err(Error::Internal("the engine ended without the vectors".to_owned())),
                }
            })
        }))
    }

    fn stats(&self) -> Stats {
        self.engine.stats()
    }

    fn failure(&self) -> Option<String> {
        match self.engine.health() {
            Health::Dead { reason } => Some(reason),
            Health::Loading { .. } | Health::Alive | Health::Closing => None,
        }
    }

    fn close(&self) {
        self.engine.close(Duration::ZERO);
    }
}

/// A model that makes vectors of texts. Shared by all requests.
pub struct EmbeddingModel {
    tokenizer: Arc<Tokenizer>,
    vectors: Box<dyn Vectors>,
}

impl EmbeddingModel {
    /// A model of this tokenizer, which puts around a text what belongs there.
    pub fn new(tokenizer: Arc<Tokenizer>, vectors: Box<dyn Vectors>) -> EmbeddingModel {
        EmbeddingModel { tokenizer, vectors }
    }

    /// Takes room for one request, before any work on it.
    ///
    /// # Errors
    /// There is none, or the model is gone.
    pub fn reserve(&self) -> Result<EmbedPermit, Error> {
        self.vectors.reserve()
    }

    /// Makes the vectors in the room that was taken. Tokenises on the calling thread.
    ///
    /// # Errors
    /// An input is empty, too long or no tokens of this model's; there are not so many dimensions; the model is gone.
    pub fn embed(
        &self,
        request: &EmbeddingRequest,
        permit: EmbedPermit,
    ) -> Result<impl Future<Output = Result<Embeddings, Error>> + Send + use<>, Error> {
        let all = self.vectors.dimensions();
        let kept = request.dimensions.unwrap_or(all);
        if kept == 0 || kept > all {
            let message =
                format!("{kept} numbers are asked for, but this model's vectors have {all}; ask for 1 to {all}");
            return Err(Error::Request { field: Field::Dimensions, message });
        }
        let numbered = request.inputs.iter().enumerate();
        let rows: Vec<Vec<u32>> = numbered.map(|(index, input)| self.row(index, input)).collect::<Result<_, _>>()?;
        let tokens = rows.iter().map(Vec::len).sum();
        let vectors = permit(rows);
        Ok(async move {
            let mut vectors = vectors.await?;
            vectors.iter_mut().for_each(|vector| shorten(vector, kept));
            Ok(Embeddings { vectors, tokens })
        })
    }

    fn row(&self, index: usize, input: &EmbeddingInput) -> Result<Vec<u32>, Error> {
        let wrong = |message: String| Error::Request { field: Field::Input(Some(index)), message };
        let row = match input {
            EmbeddingInput::Text(text) => self.tokenizer.encode(text, true)?,
            EmbeddingInput::Tokens(ids) => ids.clone(),
        };
        let vocabulary = self.tokenizer.vocab_size();
        if let Some(id) = row.iter().find(|id| **id as usize >= vocabulary) {
            return Err(wrong(format!("there is no token {id}: the model's tokens go from 0 to {}", vocabulary - 1)));
        }
        let context = self.vectors.context();
        if row.len() > context {
            return Err(wrong(format!("it is {} tokens long, but the model takes {context}; send less", row.len())));
        }
        if row.is_empty() {
            return Err(wrong("it has no tokens; there is nothing to make a vector of".to_owned()));
        }
        Ok(row)
    }

    /// The most tokens of one text.
    pub fn context(&self) -> usize {
        self.vectors.context()
    }

    /// What it has done and is doing.
    pub fn stats(&self) -> Stats {
        self.vectors.stats()
    }

    /// Why it makes no vectors any more, if it does not.
    pub fn failure(&self) -> Option<String> {
        self.vectors.failure()
    }

    /// Ends what runs and frees the model's memory. Blocks until that is done.
    pub fn close(&self) {
        self.vectors.close();
    }
}

/// Keeps the first numbers of a vector, scaled to length 1 again.
fn shorten(vector: &mut Vec<f32>, kept: usize) {
    if kept >= vector.len() {
        return;
    }
    vector.truncate(kept);
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    }
}
