//! The architectures, one file each, named by the `model_type` of their config.json. [`MODELS`] is the table.

mod bert;
mod decoder;
mod llama;
mod qwen3;
mod qwen3_5;
mod qwen3_moe;

use std::rc::Rc;

use mlx_rs::Array;

use super::{Error, batch::Batch, cost::Cost, nn::State, steps::Steps, weights::Source};
use crate::checkpoint::Checkpoint;

/// A loaded model that writes text.
pub trait Model {
    /// Ids `[tokens]` → `[tokens, dim]`, what the first layer gets.
    fn embed(&self, tokens: &Array) -> Result<Array, Error>;

    /// The number of layers.
    fn layers(&self) -> usize;

    /// `[tokens, dim]` → the same, behind the layer of an index. Appends to the layer's part of `states`.
    fn layer(&self, index: usize, x: &Array, batch: &Batch, states: &mut [&mut State]) -> Result<Array, Error>;

    /// Hidden states `[tokens, dim]` of all tokens of the batch, before the last norm. Appends to `states`.
    fn forward(&self, batch: &Batch, states: &mut [&mut State]) -> Result<Array, Error> {
        let mut x = self.embed(&batch.tokens)?;
        for index in 0..self.layers() {
            x = self.layer(index, &x, batch, states)?;
        }
        Ok(x)
    }

    /// Hidden states `[rows, dim]` behind the last norm, of those before it.
    fn norm(&self, hidden: &Array) -> Result<Array, Error>;

    /// Logits `[rows, vocabulary]` of hidden states `[rows, dim]` before the last norm.
    fn head(&self, hidden: &Array) -> Result<Array, Error>;

    /// The state of a sequence of no tokens.
    fn fresh(&self) -> Result<State, Error>;

    /// What its tokens cost, its vocabulary and the most positions it was made for.
    fn cost(&self) -> &Cost;

    /// The most positions it was made for.
    fn context(&self) -> usize {
        self.cost().context
    }

    /// The number of token ids.
    fn vocabulary(&self) -> usize {
        self.cost().vocabulary
    }
}

/// A loaded model that reads text and writes none.
pub trait Reader {
    /// Hidden states `[tokens, dim]` of all tokens of the batch, behind the last norm. Every token of a segment sees
    /// all of them; offsets are 0. A step is a layer.
    fn read<'a>(&'a self, batch: &'a Batch) -> Steps<'a, Array>;

    /// What its tokens cost, its vocabulary and the most positions it was made for.
    fn cost(&self) -> &Cost;
}

/// A loaded model of either kind.
pub enum Built {
    /// It writes text, and its hidden states can be read too.
    Text(Rc<dyn Model>),
    /// It is for its hidden states alone.
    Reader(Rc<dyn Reader>),
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It writes text, and its hidden states make embeddings.
    Text,
    /// It makes embeddings.
    Embedding,
}

/// A row of the table.
pub struct Architecture {
    /// The `model_type`s it loads. The first is the file's name and that of its test data; the others are further names
    /// for the same computation, which a test reads that data under. What differs by more than its name is a file of its
    /// own.
    pub names: &'static [&'static str],
    /// What it is for.
    pub kind: Kind,
    /// Parts of the names of tensors that it has no use for.
    pub unused: &'static [&'static str],
    /// Loads it, a step for each piece that is read. Fails for a config or a tensor that does not fit, by name.
    pub load: for<'a> fn(&'a Source<'a>) -> Steps<'a, Built>,
}

/// Every architecture mettle loads.
pub const MODELS: &[Architecture] =
    &[llama::ARCHITECTURE, qwen3::ARCHITECTURE, qwen3_moe::ARCHITECTURE, qwen3_5::ARCHITECTURE, bert::ARCHITECTURE];

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
