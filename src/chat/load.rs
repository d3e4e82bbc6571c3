//! The text side of a model, loaded from its checkpoint.

use super::{Model, Overrides, Template, Tokenizer};
use crate::checkpoint::{self, Checkpoint};
use crate::engine::Engine;

/// A tokenizer or a chat template that cannot be used; says which and why.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    #[error("the model's tokenizer cannot be used: {0}")]
    Tokenizer(String),
    #[error("the model's chat template cannot be used: {0}")]
    Template(String),
}

impl Model {
    /// Reads tokenizer, chat template, end tokens and sampling defaults, for an engine that runs the same checkpoint.
    pub fn open(checkpoint: &Checkpoint, engine: Engine) -> Result<Model, LoadError> {
        let tokenizer = Tokenizer::from_source(&checkpoint.tokenizer()?)?;
        let template = match checkpoint.templates()? {
            Some(found) => Some(Template::open(found, checkpoint.special_tokens(), &tokenizer.control_tokens())?),
            None => None,
        };
        let generation = checkpoint.generation()?;
        let defaults = Overrides {
            temperature: generation.temperature,
            top_k: generation.top_k,
            top_p: generation.top_p,
            min_p: generation.min_p,
            repetition_penalty: generation.repetition_penalty,
            ..Overrides::default()
        };
        Ok(Model::new(tokenizer, template, defaults, generation.eos_token_ids, engine))
    }
}
