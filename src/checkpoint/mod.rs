//! A model on disk, read without arrays: its configuration, where its tensors lie, its tokenizer, its chat template
//! and its generation defaults. Names nothing else in the crate.
//!
//! The main path: [`Checkpoint::open`] reads the headers of a folder of safetensors or of a GGUF file and checks that
//! every byte they promise is there; tensors are read one by one, when asked for. A GGUF is translated into the
//! vocabulary of a Hugging Face folder (config keys, tensor names), so that a reader knows one kind of checkpoint.

mod added;
mod dtype;
mod error;
mod generation;
mod gguf;
mod index;
mod pooling;
mod safetensors;
mod templates;
mod text;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use added::{AddedToken, Rank};
pub use dtype::Dtype;
pub use error::Error;
pub use generation::Generation;
pub use gguf::{TokenType, Vocabulary, is_readable as is_gguf_readable};
pub use pooling::{Pooling, PoolingMode};
pub use templates::Templates;
pub use text::TokenizerSource;

/// What a checkpoint's weights are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Safetensors,
    Gguf,
}

/// A model on disk. Holds its files open, and no weights.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    config: Value,
    architecture: String,
    shards: Vec<Shard>,
    tensors: Vec<Tensor>,
    by_name: HashMap<String, usize>,
    text: text::Text,
    warnings: Vec<String>,
}

/// Where a tensor lies. [`Checkpoint::read`] gets its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The name it has in a Hugging Face checkpoint, whatever the file calls it.
    pub name: String,
    pub dtype: Dtype,
    /// Outermost dimension first: a linear layer's weight is `[out, in]`.
    pub shape: Vec<usize>,
    /// Its size in the file, in bytes.
    pub len: usize,
    shard: usize,
    offset: u64,
    /// The file stores the rows of heads of so many features pair by pair; what is read has them as two halves.
    pairs: Option<usize>,
}

/// The files that hold weights and the tensors in them.
struct Weights {
    shards: Vec<Shard>,
    tensors: Vec<Tensor>,
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    file: File,
}

impl Checkpoint {
    /// Opens a folder with `config.json` and safetensors (one file, or shards with or without an index), a folder
    /// with one `.gguf`, or a `.gguf` file. Reads headers only.
    pub fn open(path: &Path) -> Result<Checkpoint, Error> {
        let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
        if !metadata.is_dir() {
            return Checkpoint::open_gguf(path);
        }
        let files = index::Files::of(path)?;
        if !files.paths.is_empty() {
            return Checkpoint::open_folder(path, files);
        }
        match gguf::file_in(path)? {
            Some(file) => Checkpoint::open_gguf(&file),
            None => Err(Error::missing(path, "the folder holds neither *.safetensors nor a .gguf file")),
        }
    }

    fn open_folder(folder: &Path, mut files: index::Files) -> Result<Checkpoint, Error> {
        let config_path = folder.join("config.json");
        if !config_path.exists() {
            return Err(Error::missing(folder, "the folder has weights but no config.json; pull the model again"));
        }
        let config = read_json(&config_path)?;
        let mut weights = Weights { shards: Vec::new(), tensors: Vec::new() };
        for file in &files.paths {
            let (shard, found) = safetensors::read_header(file, weights.shards.len())?;
            weights.shards.push(shard);
            weights.tensors.extend(found);
        }
        files.choose(&mut weights);
        let text = text::Text::of_folder(folder)?;
        let checkpoint = Checkpoint::assemble(folder, config, weights, text)?;
        Ok(Checkpoint { warnings: files.warnings, ..checkpoint })
    }

    fn open_gguf(path: &Path) -> Result<Checkpoint, Error> {
        let gguf = gguf::open(path)?;
        let text = text::Text::Gguf(gguf.vocabulary);
        Checkpoint::assemble(path, gguf.config, gguf.weights, text)
    }

    fn assemble(path: &Path, config: Value, weights: Weights, text: text::Text) -> Result<Checkpoint, Error> {
        let Weights { shards, tensors } = weights;
        let Some(architecture) = config.get("model_type").and_then(Value::as_str).map(str::to_owned) else {
            let message = "config.json has no \"model_type\", so the architecture is unknown";
            return Err(Error::missing(path, message));
        };
        if tensors.is_empty() {
            return Err(Error::missing(path, "the model holds no tensors"));
        }
        let mut by_name = HashMap::with_capacity(tensors.len());
        for (index, tensor) in tensors.iter().enumerate() {
            if by_name.insert(tensor.name.clone(), index).is_some() {
                let file = &shards[tensor.shard].path;
                return Err(Error::damaged(file, format!("the model holds tensor {} twice", tensor.name)));
            }
        }
        Ok(Checkpoint {
            path: path.to_owned(),
            config,
            architecture,
            shards,
            tensors,
            by_name,
            text,
            warnings: Vec::new(),
        })
    }

    /// What is odd about its files, for a log.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The folder or the file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of `config.json`, always an object; a GGUF's metadata under the same keys.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The config's `model_type`: "llama", "qwen3_5", …
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// What the model is stored as.
    pub fn format(&self) -> Format {
        match self.text {
            text::Text::Folder { .. } => Format::Safetensors,
            text::Text::Gguf(_) => Format::Gguf,
        }
    }

    /// Every tensor, in the order of the files.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter()
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.by_name.get(name).map(|&index| &self.tensors[index])
    }

    /// Reads a tensor's bytes: little endian, rows of the last dimension together.
    pub fn read(&self, tensor: &Tensor) -> Result<Vec<u8>, Error> {
        self.read_rows(tensor, 0..tensor.shape.first().copied().unwrap_or(1))
    }

    /// Reads these rows of a tensor's first dimension.
    ///
    /// # Panics
    /// If the tensor has fewer rows.
    pub fn read_rows(&self, tensor: &Tensor, rows: Range<usize>) -> Result<Vec<u8>, Error> {
        let count = tensor.shape.first().copied().unwrap_or(1);
        assert!(rows.end <= count, "rows {rows:?} of a tensor of {count} are a bug");
        let width = tensor.len.checked_div(count).unwrap_or(0);
        let Some(dim) = tensor.pairs else { return self.read_bytes(tensor, rows.start * width, rows.len() * width) };
        // A row's pair is in the same head.
        let first = rows.start / dim * dim;
        let heads = first..rows.end.next_multiple_of(dim).min(count);
        let stored = self.read_bytes(tensor, first * width, heads.len() * width)?;
        Ok(rows.flat_map(|row| &stored[(paired(row, dim) - first) * width..][..width]).copied().collect())
    }

    fn read_bytes(&self, tensor: &Tensor, start: usize, length: usize) -> Result<Vec<u8>, Error> {
        let Shard { path, file } = &self.shards[tensor.shard];
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, tensor.offset + start as u64).map_err(|error| Error::io(path, error))?;
        Ok(bytes)
    }

    /// The tokenizer as the checkpoint has it: a tokenizer.json, or the vocabulary of a GGUF.
    pub fn tokenizer(&self) -> Result<TokenizerSource, Error> {
        let homes = [Some(&self.config), self.config.get("text_config")];
        let rows = homes.into_iter().flatten().find_map(|home| home.get("vocab_size")?.as_u64());
        self.text.tokenizer(rows)
    }

    /// The content of `tokenizer_config.json`; a GGUF has none.
    pub fn tokenizer_config(&self) -> Option<&Value> {
        self.text.tokenizer_config()
    }

    /// The chat templates, from their homes: chat_template.jinja and additional_chat_templates, then
    /// chat_template.json, then tokenizer_config.json, or a GGUF's metadata. Homes behind the one of the default are
    /// not looked at.
    pub fn templates(&self) -> Result<Option<Templates>, Error> {
        templates::of(&self.text)
    }

    /// The special tokens that have a part, by its name (bos_token, eos_token, unk_token …), with their texts.
    pub fn special_tokens(&self) -> Vec<(String, String)> {
        let tokens = added::SPECIAL_TOKENS.iter();
        tokens.filter_map(|&part| Some((part.to_owned(), self.text.special_token(part)?))).collect()
    }

    /// How hidden states become one vector a text; a GGUF says nothing.
    ///
    /// # Errors
    /// A step or a mode that mettle does not know.
    pub fn pooling(&self) -> Result<Pooling, Error> {
        match self.format() {
            Format::Safetensors => pooling::of_folder(&self.path),
            Format::Gguf => Ok(Pooling::default()),
        }
    }

    /// The tokens that end an answer and the sampling that the model's makers recommend.
    pub fn generation(&self) -> Generation {
        generation::of(&self.config, &self.text)
    }
}

/// Where rows that are stored pair by pair have the one that belongs at `row`, for heads of `dim` features.
fn paired(row: usize, dim: usize) -> usize {
    let (head, within) = (row / dim, row % dim);
    head * dim + 2 * (within % (dim / 2)) + within / (dim / 2)
}

/// Reads a JSON object.
fn read_json(path: &Path) -> Result<Value, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    match serde_json::from_slice(&bytes) {
        Ok(json @ Value::Object(_)) => Ok(json),
        Ok(_) => Err(Error::damaged(path, "it is JSON but no object")),
        Err(error) => Err(Error::damaged(path, format!("it is no valid JSON: {error}; pull the model again"))),
    }
}

/// The visible files of a folder with this extension, sorted by name.
fn files_with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| Error::io(folder, error))? {
        let path = entry.map_err(|error| Error::io(folder, error))?.path();
        // macOS leaves "._name" beside files on foreign disks.
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
