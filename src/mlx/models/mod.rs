//! The architectures, one file each, named by the `model_type` of their config.json. [`MODELS`] is the table.

mod decoder;
mod llama;
mod qwen3;
mod qwen3_5;
mod qwen3_moe;

use mlx_rs::Array;

use super::{Error, batch::Batch, config::Config, nn::State, weights::Source};
use crate::checkpoint::Checkpoint;

/// A loaded architecture.
pub trait Model {
    /// Hidden states `[tokens, dim]` of all tokens of the batch, before the last norm. Appends to `states`.
    fn forward(&self, batch: &Batch, states: &mut [&mut State]) -> Result<Array, Error>;

    /// Logits `[rows, vocabulary]` of hidden states `[rows, dim]`.
    fn head(&self, hidden: &Array) -> Result<Array, Error>;

    /// The state of a sequence of no tokens.
    fn fresh(&self) -> Result<State, Error>;

    /// The most positions the model was made for.
    fn context(&self) -> usize;

    fn vocabulary(&self) -> usize;
}

/// Makes the architecture of a checkpoint's weights and config.
pub type Load = fn(&Source, Config) -> Result<Box<dyn Model>, Error>;

/// A row of the table.
pub struct Architecture {
    /// The `model_type`s it loads.
    pub names: &'static [&'static str],
    /// Parts of the names of tensors that it has no use for.
    pub unused: &'static [&'static str],
    pub load: Load,
}

/// Every architecture mettle loads.
pub const MODELS: &[Architecture] =
    &[llama::ARCHITECTURE, qwen3::ARCHITECTURE, qwen3_moe::ARCHITECTURE, qwen3_5::ARCHITECTURE];

/// The `model_type`s of all architectures, for messages and for checks before a download.
pub fn names() -> Vec<&'static str> {
    MODELS.iter().flat_map(|model| model.names).copied().collect()
}

/// The row for a checkpoint.
///
/// # Errors
/// An architecture that is not in the table, by name.
pub fn find(checkpoint: &Checkpoint) -> Result<&'static Architecture, Error> {
    let name = checkpoint.architecture();
    MODELS
        .iter()
        .find(|model| model.names.contains(&name))
        .ok_or_else(|| Error(format!("the architecture {name} is not supported; mettle loads {}", names().join(", "))))
}
