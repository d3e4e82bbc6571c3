//! The safetensors format: one header of names, types and byte ranges before the data, in one file or in shards
//! under an index.
//!
//! Format: eight bytes of header length, little endian; the header, a JSON object; the data. Ranges count from the
//! end of the header.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Dtype, Error, Shard, Tensor, read_json};

/// The most bytes a header may have, the format's own limit.
const HEADER_LIMIT: u64 = 100_000_000;
const INDEX: &str = "model.safetensors.index.json";

/// The safetensors files of `folder` that make up the model; empty where it holds none.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let index = folder.join(INDEX);
    if index.exists() {
        return indexed(folder, &index);
    }
    let single = folder.join("model.safetensors");
    if single.exists() {
        return Ok(vec![single]);
    }
    let found = super::files_with_extension(folder, "safetensors")?;
    check_numbering(folder, &found)?;
    Ok(found)
}

/// The files that an index's `weight_map` names, all of which must be there.
fn indexed(folder: &Path, index: &Path) -> Result<Vec<PathBuf>, Error> {
    let json = read_json(index)?;
    let Some(map) = json.get("weight_map").and_then(Value::as_object) else {
        return Err(Error::damaged(index, "it has no object \"weight_map\""));
    };
    let mut names = BTreeSet::new();
    for (tensor, name) in map {
        match name.as_str() {
            // A name from the network must not lead out of the folder.
            Some(name) if !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']) => {
                names.insert(name);
            }
            _ => {
                return Err(Error::damaged(index, format!("{tensor} is mapped to {name}, which is no file name")));
            }
        }
    }
    if names.is_empty() {
        return Err(Error::damaged(index, "its \"weight_map\" is empty"));
    }
    let absent: Vec<&str> = names.iter().copied().filter(|name| !folder.join(name).exists()).collect();
    if !absent.is_empty() {
        return Err(missing_shards(folder, &absent));
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

fn missing_shards(folder: &Path, absent: &[&str]) -> Error {
    let message = format!("{} of the model's files are not there: {}; pull it again", absent.len(), absent.join(", "));
    Error::missing(folder, message)
}

/// Files called `…-00002-of-00005.safetensors` must be all there, index or not.
fn check_numbering(folder: &Path, found: &[PathBuf]) -> Result<(), Error> {
    let names: BTreeSet<String> =
        found.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    for name in &names {
        let Some((stem, of, digits)) = numbering(name) else {
            continue;
        };
        let absent: Vec<String> = (1..=of)
            .map(|number| format!("{stem}-{number:0digits$}-of-{of:0digits$}.safetensors"))
            .filter(|shard| !names.contains(shard))
            .collect();
        if !absent.is_empty() {
            return Err(missing_shards(folder, &absent.iter().map(String::as_str).collect::<Vec<_>>()));
        }
    }
    Ok(())
}

/// `a-00002-of-00005.safetensors` → `("a", 5, 5 digits)`.
fn numbering(name: &str) -> Option<(&str, usize, usize)> {
    let (rest, of) = name.strip_suffix(".safetensors")?.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let digits = of.len();
    let numeric = |text: &str| text.len() == digits && digits <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if numeric(of) && numeric(number) { Some((stem, of.parse().ok()?, digits)) } else { None }
}

/// Reads one file's header. `shard` is the file's index in the checkpoint.
pub(super) fn read_header(path: &Path, shard: usize) -> Result<(Shard, Vec<Tensor>), Error> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let size = file.metadata().map_err(|error| Error::io(path, error))?.len();
    let truncated = |what: &str, expected: u64| Error::Truncated {
        path: path.to_owned(),
        what: what.to_owned(),
        expected,
        actual: size,
    };
    if size < 8 {
        return Err(truncated("the header's length", 8));
    }
    let mut length = [0; 8];
    file.read_exact_at(&mut length, 0).map_err(|error| Error::io(path, error))?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_LIMIT {
        return Err(Error::damaged(path, format!("a header of {length} bytes; this is no safetensors file")));
    }
    if size < 8 + length {
        return Err(truncated("the header", 8 + length));
    }
    let mut header = vec![0; length as usize];
    file.read_exact_at(&mut header, 8).map_err(|error| Error::io(path, error))?;
    let json: BTreeMap<String, Value> = serde_json::from_slice(&header)
        .map_err(|error| Error::damaged(path, format!("its header is no JSON object: {error}")))?;
    let entries = Entries { path, shard, data: 8 + length };
    let mut tensors = Vec::with_capacity(json.len());
    let mut end = 8 + length;
    for (name, entry) in json.into_iter().filter(|(name, _)| name != "__metadata__") {
        let tensor = entries.tensor(name, &entry)?;
        end = end.max(tensor.offset + tensor.len as u64);
        tensors.push(tensor);
    }
    if end > size {
        return Err(truncated("its last tensor", end));
    }
    tensors.sort_by_key(|tensor| tensor.offset);
    Ok((Shard { path: path.to_owned(), file }, tensors))
}

/// The entries of a header.
struct Entries<'a> {
    path: &'a Path,
    /// The file's index in the checkpoint.
    shard: usize,
    /// Where the tensors' bytes begin.
    data: u64,
}

impl Entries<'_> {
    /// One header entry: `{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}`.
    fn tensor(&self, name: String, entry: &Value) -> Result<Tensor, Error> {
        let Entries { path, shard, data } = *self;
        let wrong = |message: String| Error::damaged(path, format!("tensor {name}: {message}"));
        let dtype = entry.get("dtype").and_then(Value::as_str).ok_or_else(|| wrong("it has no dtype".into()))?;
        let dtype = Dtype::from_safetensors(dtype).ok_or_else(|| {
            Error::unsupported(path, format!("tensor {name} has the element type {dtype}, which mettle does not know"))
        })?;
        let shape = integers(entry.get("shape")).ok_or_else(|| wrong("its shape is no list of integers".into()))?;
        let (start, end) = match integers(entry.get("data_offsets")).as_deref() {
            Some(&[start, end]) if start <= end => (start as u64, end as u64),
            _ => return Err(wrong("its data_offsets are no range".into())),
        };
        let len = dtype.bytes(&shape).ok_or_else(|| wrong(format!("its shape {shape:?} overflows")))?;
        if end - start != len as u64 {
            return Err(wrong(format!("{dtype} of shape {shape:?} takes {len} bytes, its range has {}", end - start)));
        }
        if end > i64::MAX as u64 - data {
            return Err(wrong(format!("its range {start}..{end} is beyond any file")));
        }
        Ok(Tensor { name, dtype, shape, len, shard, offset: data + start, pairs: None })
    }
}

fn integers(value: Option<&Value>) -> Option<Vec<usize>> {
    value?.as_array()?.iter().map(|item| usize::try_from(item.as_u64()?).ok()).collect()
}
