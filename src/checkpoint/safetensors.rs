//! The safetensors format: one header of names, types and byte ranges before the data.
//!
//! Format: eight bytes of header length, little endian; the header, a JSON object; the data. Ranges count from the
//! end of the header.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use super::{Dtype, Error, Shard, Tensor};

/// The most bytes a header may have, the format's own limit.
const HEADER_LIMIT: u64 = 100_000_000;

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
