//! The header of a GGUF: typed metadata, then the list of tensors. Every count and length is held against the file's
//! size before anything is allocated for it.
//!
//! Format (ggml's gguf.md, versions 2 and 3): "GGUF", version, tensor count, metadata count; the metadata, each a key,
//! a type number and a value; the tensors, each a name, its dimensions innermost first, a type number and an offset
//! into the data, which begins at the next multiple of `general.alignment`. All integers are little endian.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::super::{Dtype, Error, Tensor};

/// How many list entries a header may hold in all; the largest vocabularies have under a million.
const ENTRY_LIMIT: u64 = 1 << 24;
const DEFAULT_ALIGNMENT: u64 = 32;
/// The least bytes of a metadata entry (key length, type, value) and of a tensor's (name length, dimension count,
/// type, offset).
const LEAST_ENTRY: u64 = 8 + 4 + 1;
const LEAST_TENSOR: u64 = 8 + 4 + 4 + 8;

pub(in super::super) struct Header {
    /// What the file says of itself.
    pub metadata: Metadata,
    /// By the file's own names.
    pub tensors: Vec<Tensor>,
}

/// The file's key-value pairs.
pub(in super::super) struct Metadata(HashMap<String, Value>);

/// A metadata value; the integer and float widths of the format are one kind each.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Boolean(bool),
    Text(String),
    List(Vec<Value>),
}

impl Metadata {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A string.
    pub fn text(&self, key: &str) -> Option<&str> {
        if let Value::Text(text) = self.get(key)? { Some(text) } else { None }
    }

    /// True or false.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        if let Value::Boolean(value) = self.get(key)? { Some(*value) } else { None }
    }

    /// A whole number that is not negative.
    pub fn unsigned(&self, key: &str) -> Option<u64> {
        self.get(key)?.unsigned()
    }

    /// A number of any kind.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }
}

impl Value {
    /// The value as a whole number that is not negative.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Value::Unsigned(value) => Some(*value),
            Value::Signed(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The value as a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Unsigned(value) => Some(*value as f64),
            Value::Signed(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as a list.
    pub fn list(&self) -> Option<&[Value]> {
        if let Value::List(list) = self { Some(list) } else { None }
    }
}

/// Reads the whole header and checks that all tensors lie within the file.
pub(super) fn read(path: &Path, file: &File) -> Result<Header, Error> {
    let size = file.metadata().map_err(|error| Error::io(path, error))?.len();
    read_of(path, file, size)
}

/// As [`read`], of a file of which the first part is here and that will have `size` bytes. It ends early with
/// [`std::io::ErrorKind::UnexpectedEof`] where that part ends within the header.
pub(super) fn read_of(path: &Path, file: &File, size: u64) -> Result<Header, Error> {
    let mut cursor = Cursor { path, input: BufReader::new(file), position: 0, size, entries: ENTRY_LIMIT };
    let tensor_count = cursor.preamble()?;
    let metadata = cursor.metadata()?;
    let mut tensors = Vec::new();
    for _ in 0..tensor_count {
        tensors.push(cursor.tensor()?);
    }
    cursor.place(&metadata, &mut tensors)?;
    Ok(Header { metadata, tensors })
}

struct Cursor<'a> {
    path: &'a Path,
    input: BufReader<&'a File>,
    position: u64,
    size: u64,
    /// List entries that may still be read.
    entries: u64,
}

impl Cursor<'_> {
    /// Behind the header: turns offsets into the data into offsets into the file, and checks them.
    fn place(&self, metadata: &Metadata, tensors: &mut [Tensor]) -> Result<(), Error> {
        let Cursor { path, size, position: header, .. } = *self;
        let alignment = metadata.unsigned("general.alignment").unwrap_or(DEFAULT_ALIGNMENT);
        if !alignment.is_power_of_two() || alignment > 1 << 20 {
            return Err(Error::damaged(path, format!("its alignment is {alignment}, which is no power of two")));
        }
        let data = header.next_multiple_of(alignment);
        let mut end = 0;
        for tensor in tensors {
            let beyond = || Error::damaged(path, format!("tensor {} lies beyond any file", tensor.name));
            if !tensor.offset.is_multiple_of(alignment) {
                return Err(Error::damaged(
                    path,
                    format!("tensor {} is not aligned to {alignment} bytes", tensor.name),
                ));
            }
            let offset = data.checked_add(tensor.offset).ok_or_else(beyond)?;
            end = end.max(offset.checked_add(tensor.len as u64).ok_or_else(beyond)?);
            tensor.offset = offset;
        }
        if end > size {
            let what = "its last tensor".to_owned();
            return Err(Error::Truncated { path: path.to_owned(), what, expected: end, actual: size });
        }
        Ok(())
    }

    /// Magic and version; returns the tensor count.
    fn preamble(&mut self) -> Result<u64, Error> {
        if self.take(4, "the format's mark")? != b"GGUF" {
            return Err(Error::unsupported(self.path, "this is no GGUF file"));
        }
        match self.u32("the format's version")? {
            2 | 3 => {}
            version if version.swap_bytes() <= 3 && version != 0 => {
                return Err(Error::unsupported(self.path, "this GGUF is big endian; mettle reads little endian ones"));
            }
            version => {
                let message = format!("GGUF version {version} is not supported, only 2 and 3; convert it anew");
                return Err(Error::unsupported(self.path, message));
            }
        }
        let count = self.u64("the tensor count")?;
        self.check_count(count, LEAST_TENSOR, "the list of tensors")?;
        Ok(count)
    }

    fn metadata(&mut self) -> Result<Metadata, Error> {
        let count = self.u64("the metadata count")?;
        self.check_count(count, LEAST_ENTRY, "the metadata")?;
        let mut map = HashMap::new();
        for _ in 0..count {
            let key = self.name("a metadata key")?;
            let kind = self.u32(&key)?;
            let value = self.value(kind, &key, 0)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(Error::damaged(self.path, format!("it has the key {key} twice")));
            }
        }
        Ok(Metadata(map))
    }

    /// A value of the type number `kind`.
    fn value(&mut self, kind: u32, key: &str, depth: u32) -> Result<Value, Error> {
        Ok(match kind {
            0 => Value::Unsigned(u64::from(u8::from_le_bytes(self.array(key)?))),
            1 => Value::Signed(i64::from(i8::from_le_bytes(self.array(key)?))),
            2 => Value::Unsigned(u64::from(u16::from_le_bytes(self.array(key)?))),
            3 => Value::Signed(i64::from(i16::from_le_bytes(self.array(key)?))),
            4 => Value::Unsigned(u64::from(self.u32(key)?)),
            5 => Value::Signed(i64::from(i32::from_le_bytes(self.array(key)?))),
            6 => Value::Float(f64::from(f32::from_le_bytes(self.array(key)?))),
            7 => Value::Boolean(self.array::<1>(key)? != [0]),
            8 => {
                let bytes = self.bytes(key)?;
                Value::Text(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into()))
            }
            9 if depth < 4 => Value::List(self.list(key, depth)?),
            10 => Value::Unsigned(self.u64(key)?),
            11 => Value::Signed(i64::from_le_bytes(self.array(key)?)),
            12 => Value::Float(f64::from_le_bytes(self.array(key)?)),
            _ => {
                return Err(Error::damaged(self.path, format!("{key} has the unknown value type {kind}")));
            }
        })
    }

    fn list(&mut self, key: &str, depth: u32) -> Result<Vec<Value>, Error> {
        let kind = self.u32(key)?;
        let count = self.u64(key)?;
        let least = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            8 | 10..=12 => 8,
            9 => 12,
            _ => 4,
        };
        self.check_count(count, least, key)?;
        self.entries = self.entries.checked_sub(count).ok_or_else(|| {
            Error::damaged(self.path, format!("{key} has {count} entries, more than any tokenizer needs"))
        })?;
        (0..count).map(|_| self.value(kind, key, depth + 1)).collect()
    }

    /// A tensor's entry. Its offset still counts from the start of the data.
    fn tensor(&mut self) -> Result<Tensor, Error> {
        let name = self.name("a tensor's name")?;
        let dimensions = self.u32(&name)?;
        if dimensions > 4 {
            return Err(Error::damaged(self.path, format!("tensor {name} has {dimensions} dimensions")));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let dimension = self.u64(&name)?;
            let dimension = usize::try_from(dimension)
                .map_err(|_| Error::damaged(self.path, format!("tensor {name} has a dimension of {dimension}")))?;
            shape.insert(0, dimension);
        }
        let number = self.u32(&name)?;
        let dtype = Dtype::from_gguf(number).ok_or_else(|| {
            Error::unsupported(self.path, format!("tensor {name} has type number {number}, which mettle does not know"))
        })?;
        let len = dtype.bytes(&shape).ok_or_else(|| {
            Error::damaged(self.path, format!("tensor {name}: {shape:?} is no possible shape of {dtype}"))
        })?;
        let offset = self.u64(&name)?;
        Ok(Tensor { name, dtype, shape, len, shard: 0, offset, pairs: None })
    }

    /// Whether `count` entries of at least `least` bytes each can still follow.
    fn check_count(&self, count: u64, least: u64, what: &str) -> Result<(), Error> {
        let expected = self.position.saturating_add(count.saturating_mul(least));
        if expected > self.size { Err(self.truncated(what, expected)) } else { Ok(()) }
    }

    fn name(&mut self, what: &str) -> Result<String, Error> {
        let bytes = self.bytes(what)?;
        String::from_utf8(bytes).map_err(|_| Error::damaged(self.path, format!("{what} is not UTF-8")))
    }

    /// A string: its length, then its bytes.
    fn bytes(&mut self, what: &str) -> Result<Vec<u8>, Error> {
        let length = self.u64(what)?;
        self.take(length, what)
    }

    fn u32(&mut self, what: &str) -> Result<u32, Error> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, Error> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn take(&mut self, length: u64, what: &str) -> Result<Vec<u8>, Error> {
        self.check_count(length, 1, what)?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        self.check_count(N as u64, 1, what)?;
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.input.read_exact(bytes).map_err(|error| Error::io(self.path, error))?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn truncated(&self, what: &str, expected: u64) -> Error {
        Error::Truncated { path: self.path.to_owned(), what: what.to_owned(), expected, actual: self.size }
    }
}
