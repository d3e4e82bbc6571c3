//! The text side of a model, loaded from its checkpoint.

use super::{
    Model, Overrides, Template, Tokenizer,
    dialect::{Names, choose},
    output::unknown_marks,
};
use crate::checkpoint::{self, Checkpoint};
use crate::engine::{Handle, Job};

/// A tokenizer or a chat template that cannot be used; says which and why.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    #[error("the model's tokenizer cannot be used: {0}")]
    Tokenizer(String),
    #[error("the model's chat template cannot be used: {0}")]
    Template(String),
    /// A dialect that nothing is called by.
    #[error("{0}")]
    Dialect(String),
}

impl Model {
    /// Reads tokenizer, chat template, end tokens and sampling defaults, for an engine that runs the same checkpoint.
    /// `names` override the dialect that the template shows. Returns the model and what is odd about it, for a log.
    pub fn open(
        checkpoint: &Checkpoint,
        engine: Handle<Job>,
        names: Names<'_>,
    ) -> Result<(Model, Vec<String>), LoadError> {
        let tokenizer = Tokenizer::from_source(&checkpoint.tokenizer()?)?;
        let templates = checkpoint.templates()?;
        let text = templates.as_ref().map_or("", |found| found.tool_use.as_deref().unwrap_or(&found.default));
        let model_type = checkpoint.config()["model_type"].as_str().unwrap_or_default();
        let dialect = choose(model_type, text, names).map_err(LoadError::Dialect)?;
        let warnings = unknown_marks::warnings(dialect, text);
        let template = match templates {
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
        let mut model = Model::new(tokenizer, template, defaults, generation.eos_token_ids, engine);
        model.speak(dialect);
        Ok((model, warnings))
    }
}
