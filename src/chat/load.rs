//! The text side of a model, read from its checkpoint.

use super::{
    LoadError, ModelParts, Sampling, Template, Thinking, Tokenizer,
    dialect::{Names, TURN_ENDS, choose},
    output::unknown_marks,
};
use crate::checkpoint::{Checkpoint, Format};

impl ModelParts {
    /// Reads tokenizer, chat template, end tokens and sampling defaults of a checkpoint. `names` override the dialect
    /// that the template shows. Returns them and what is odd about them, for a log.
    ///
    /// # Errors
    /// What cannot be used, and why.
    pub fn open(checkpoint: &Checkpoint, names: Names<'_>) -> Result<(ModelParts, Vec<String>), LoadError> {
        let tokenizer = Tokenizer::from_source(&checkpoint.tokenizer()?)?;
        let templates = checkpoint.templates()?;
        let text = templates.as_ref().map_or("", |found| found.tool_use.as_deref().unwrap_or(&found.default));
        let model_type = checkpoint.config()["model_type"].as_str().unwrap_or_default();
        let dialect = choose(model_type, text, names).map_err(LoadError::Dialect)?;
        let mut warnings = tokenizer.warnings().to_vec();
        warnings.extend(unknown_marks::warnings(dialect, text));
        let special = checkpoint.special_tokens();
        let template = match templates {
            Some(found) => Some(Template::open(found, special.clone(), &tokenizer.control_tokens())?),
            None => None,
        };
        let generation = checkpoint.generation();
        let mut stop_tokens = generation.eos_token_ids;
        let eos = special.iter().find(|(part, _)| part == "eos_token");
        stop_tokens.extend(eos.and_then(|(_, name)| tokenizer.id(name)));
        if checkpoint.format() == Format::Gguf {
            stop_tokens.extend(TURN_ENDS.iter().flat_map(|name| tokenizer.special_ids(name)));
        }
        let sampling = Sampling::named(generation.sampling);
        let parts = ModelParts { tokenizer, template, dialect, stop_tokens, sampling, thinking: Thinking::default() };
        Ok((parts, warnings))
    }
}
