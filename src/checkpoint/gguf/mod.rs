//! GGUF: one file of metadata and tensors, translated into the keys and names of a Hugging Face checkpoint.

mod architecture;
mod config;
mod reader;
mod vocabulary;

#[cfg(test)]
pub(super) mod writer;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Error, Shard, Tensor, Weights};
use architecture::Architecture;
pub use vocabulary::{TokenType, Vocabulary};

/// An opened file.
pub(super) struct Gguf {
    /// As a config.json has it.
    pub config: Value,
    /// Its tokenizer.
    pub vocabulary: Box<Vocabulary>,
    /// Where its tensors lie, by their Hugging Face names.
    pub weights: Weights,
}

/// The one model file of a folder. Projectors for images lie beside it under the name "mmproj…".
pub(super) fn file_in(folder: &Path) -> Result<Option<PathBuf>, Error> {
    let mut files = super::files_with_extension(folder, "gguf")?;
    files.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"mmproj")));
    match files.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        [first, ..] if is_split(first) => Err(split(first)),
        several => {
            let names: Vec<_> = several.iter().filter_map(|path| path.file_name()?.to_str()).collect();
            let names = names.join(", ");
            Err(Error::unsupported(folder, format!("the folder holds several models ({names}); name the file itself")))
        }
    }
}

/// Reads a file's header, checks it against the file's size and translates it.
pub(super) fn open(path: &Path) -> Result<Gguf, Error> {
    if is_split(path) {
        return Err(split(path));
    }
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let header = reader::read(path, &file)?;
    let (architecture, vocabulary, config) = translated(path, &header)?;
    let shard = Shard { path: path.to_owned(), file };
    let dim = config["head_dim"].as_u64().map_or(0, |dim| dim as usize);
    let placed = |tensor: Tensor| {
        // A tensor of another shape is refused by the model's loader, which says more.
        let whole =
            dim > 0 && dim.is_multiple_of(2) && tensor.shape.first().is_some_and(|rows| rows.is_multiple_of(dim));
        let pairs = (whole && architecture.is_paired(&tensor.name)).then_some(dim);
        Tensor { name: architecture.translate(&tensor.name), pairs, ..tensor }
    };
    let tensors = header.tensors.into_iter().map(placed).collect();
    Ok(Gguf { config, vocabulary, weights: Weights { shards: vec![shard], tensors } })
}

/// A header's parts in the words of a Hugging Face folder.
fn translated(path: &Path, header: &reader::Header) -> Result<(&'static Architecture, Box<Vocabulary>, Value), Error> {
    if header.metadata.unsigned("split.count").is_some_and(|count| count > 1) {
        return Err(split(path));
    }
    let name = header.metadata.text("general.architecture").unwrap_or_default();
    let Some(architecture) = Architecture::find(name) else {
        let supported = Architecture::names();
        let message =
            format!("a GGUF of the architecture \"{name}\" is not supported; of GGUFs mettle reads: {supported}");
        return Err(Error::unsupported(path, message));
    };
    let vocabulary = Box::new(vocabulary::of(path, &header.metadata)?);
    let config = config::of(architecture, path, header, &vocabulary)?;
    Ok((architecture, vocabulary, config))
}

/// Whether the file called `name`, of which the first part lies at `path` and that has `size` bytes in all, can be read:
/// by its name, its architecture, its tokenizer and the types of its tensors. `false` where the part is too short to
/// tell.
///
/// # Errors
/// As [`super::Checkpoint::open`].
pub fn is_readable(name: &Path, path: &Path, size: u64) -> Result<bool, Error> {
    if is_split(name) {
        return Err(split(name));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io(path, error)),
    };
    let header = match reader::read_of(path, &file, size) {
        Ok(header) => header,
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    };
    translated(name, &header).map(|_| true)
}

/// Whether the name is one of a split model's: `…-00001-of-00003.gguf`.
fn is_split(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((rest, of)) = name.rsplit_once("-of-") else {
        return false;
    };
    let numeric = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    numeric(of) && of != "00001" && rest.rsplit_once('-').is_some_and(|(_, number)| numeric(number))
}

fn split(path: &Path) -> Error {
    Error::unsupported(path, "a GGUF split over several files is not supported; merge it into one file first")
}
