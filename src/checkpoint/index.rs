//! A folder's `model.safetensors.index.json` against the files that lie in it: which files make up the model, and which
//! file has which tensor.
//!
//! Conversions keep the index of what they were made from, so an index may be about another build. One of which no file
//! is there is; one of which some are there is a download that was cut.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Error, Tensor, Weights, read_json};

const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";

/// Tensor → the name of its file.
type Map = BTreeMap<String, String>;

/// The files that make up a model.
pub(super) struct Files {
    /// Empty where the folder holds none.
    pub paths: Vec<PathBuf>,
    /// The index, where it is about these files.
    map: Option<Map>,
    /// What is odd about the folder, for a log.
    pub warnings: Vec<String>,
}

impl Files {
    /// The safetensors files of a folder that are its model's. `model.safetensors` is a whole model, whatever an index
    /// says that does not name it (transformers' order).
    pub fn of(folder: &Path) -> Result<Files, Error> {
        let index = folder.join(INDEX);
        let map = if index.exists() { Some(read(&index)?) } else { None };
        let named: BTreeSet<&str> = map.iter().flat_map(|map| map.values()).map(String::as_str).collect();
        let here = |name: &str| folder.join(name).exists();
        let absent: Vec<&str> = named.iter().copied().filter(|name| !here(name)).collect();
        let mut warnings = Vec::new();
        if here(SINGLE) && !named.contains(SINGLE) || !named.is_empty() && absent.len() == named.len() {
            let paths = without_index(folder)?;
            if map.is_some() && !paths.is_empty() {
                warnings.push(format!("{} names other files than the model's and is ignored", index.display()));
            } else if map.is_some() {
                return Err(missing_shards(folder, &absent));
            }
            return Ok(Files { paths, map: None, warnings });
        }
        if map.is_none() {
            return Ok(Files { paths: without_index(folder)?, map: None, warnings });
        }
        if !absent.is_empty() {
            return Err(missing_shards(folder, &absent));
        }
        let paths = named.into_iter().map(|name| folder.join(name)).collect();
        Ok(Files { paths, map, warnings })
    }

    /// Leaves the tensors that the index gives to their files, if it is about them: it then says which of two counts,
    /// and what it does not name is not the model's. Quantised parts stay with the weight that it names: conversions
    /// add them under the old index. Adds to the warnings.
    pub fn choose(&mut self, weights: &mut Weights) {
        let Some(map) = self.map.take() else { return };
        let Weights { shards, tensors } = weights;
        let file = |tensor: &Tensor| shards[tensor.shard].path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let found: BTreeSet<(&str, &str)> = tensors.iter().map(|tensor| (tensor.name.as_str(), file(tensor))).collect();
        if let Some((name, place)) = map.iter().find(|(name, place)| !found.contains(&(name.as_str(), place.as_str())))
        {
            self.warnings.push(format!("{INDEX} is ignored: it gives {name} to {place}, which does not hold it"));
            return;
        }
        let belongs = |tensor: &Tensor| match map.get(&tensor.name) {
            Some(place) => place == file(tensor),
            None => weight_of(&tensor.name).is_some_and(|weight| map.contains_key(&weight)),
        };
        let spare: Vec<String> = tensors.iter().filter(|one| !belongs(one)).map(|one| one.name.clone()).collect();
        if let Some(first) = spare.first() {
            let count = spare.len();
            self.warnings
                .push(format!("{count} tensors lie where {INDEX} does not name them and are left out: {first}, …"));
        }
        let kept: Vec<bool> = tensors.iter().map(belongs).collect();
        let mut kept = kept.into_iter();
        tensors.retain(|_| kept.next().unwrap_or(true));
    }
}

/// `x.weight` for the parts beside it of a quantised matrix.
fn weight_of(name: &str) -> Option<String> {
    let (module, part) = name.rsplit_once('.')?;
    matches!(part, "scales" | "biases").then(|| format!("{module}.weight"))
}

fn without_index(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let single = folder.join(SINGLE);
    if single.exists() {
        return Ok(vec![single]);
    }
    let mut found = super::files_with_extension(folder, "safetensors")?;
    let starts =
        |path: &Path, start: &[u8]| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(start));
    // Mistral's `consolidated` copy of the same weights.
    if found.iter().any(|path| starts(path, b"model")) {
        found.retain(|path| !starts(path, b"consolidated"));
    }
    check_numbering(folder, &found)?;
    Ok(found)
}

fn read(index: &Path) -> Result<Map, Error> {
    let json = read_json(index)?;
    let Some(map) = json.get("weight_map").and_then(Value::as_object) else {
        return Err(Error::damaged(index, "it has no object \"weight_map\""));
    };
    let mut files = Map::new();
    for (tensor, name) in map {
        match name.as_str() {
            // A name from the network must not lead out of the folder.
            Some(name) if !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']) => {
                files.insert(tensor.clone(), name.to_owned());
            }
            _ => {
                return Err(Error::damaged(index, format!("{tensor} is mapped to {name}, which is no file name")));
            }
        }
    }
    if files.is_empty() { Err(Error::damaged(index, "its \"weight_map\" is empty")) } else { Ok(files) }
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
