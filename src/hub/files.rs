//! Which files make a model: the choice among a listing's names, and the test that a folder holds all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Error;

/// GGUF quantisations in order of preference: those the loader keeps as they are, small before large, then those it
/// converts, then whole floats.
const QUANTISATIONS: [&str; 11] =
    ["Q4_0", "Q4_1", "Q8_0", "Q4_K_M", "Q4_K_S", "Q5_K_M", "Q6_K", "Q5_K_S", "F16", "BF16", "F32"];

/// The index of weights in several files.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// The names to take from a listing. With `file`, that one alone; else a safetensors model with everything beside it
/// that describes it, else one GGUF. `None` where the listing holds no model.
pub(super) fn choose(names: &[String], file: Option<&str>) -> Option<Vec<String>> {
    if let Some(file) = file {
        return names.iter().any(|name| name == file).then(|| gguf_parts(names, file));
    }
    let weights: Vec<&String> = names.iter().filter(|name| is_weights(name, names)).collect();
    if !weights.is_empty() && names.iter().any(|name| name == "config.json") {
        return Some(names.iter().filter(|name| is_weights(name, names) || is_description(name)).cloned().collect());
    }
    preferred_gguf(names).map(|file| gguf_parts(names, &file))
}

/// The model inside `folder` as a loader takes it: the folder itself, or its GGUF file. `None` while anything that
/// `choose` would take for the weights is missing.
pub(super) fn model_in(folder: &Path, file: Option<&str>) -> Option<PathBuf> {
    if let Some(file) = file {
        let path = folder.join(file);
        return (path.is_file() && parts_of(file).iter().all(|part| folder.join(part).is_file())).then_some(path);
    }
    let names = names_in(folder);
    if names.iter().any(|name| name == "config.json") && names.iter().any(|name| is_weights(name, &names)) {
        return shards_present(folder, &names).then(|| folder.to_path_buf());
    }
    let gguf = preferred_gguf(&names)?;
    parts_of(&gguf).iter().all(|part| names.contains(part)).then(|| folder.join(gguf))
}

/// The GGUF files among `names`, for error texts.
pub(super) fn models_among(names: &[String]) -> Vec<String> {
    names.iter().filter(|name| name.ends_with(".gguf") || name.ends_with(".safetensors")).cloned().collect()
}

/// A file name from the network is joined to a folder only if it cannot leave it.
pub(super) fn is_safe(name: &str) -> bool {
    !name.is_empty()
        && !name.contains('\\')
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        && !name.chars().any(char::is_control)
}

/// `model_type` of a config.json, in whichever of its two homes; `None` if it says nothing.
pub(super) fn architecture(config: &[u8]) -> Option<String> {
    let config: serde_json::Value = serde_json::from_slice(config).ok()?;
    let own = config.get("model_type").and_then(|value| value.as_str());
    let inner = config.pointer("/text_config/model_type").and_then(|value| value.as_str());
    own.or(inner).map(str::to_string)
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    // `exists` follows links: a snapshot's link to a blob that was deleted counts as missing.
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Weights lie at the top. Mistral's `consolidated` copy of the same weights is left out where the usual names exist.
fn is_weights(name: &str, names: &[String]) -> bool {
    let top_level = |name: &str| name.ends_with(".safetensors") && !name.contains('/');
    let usual = names.iter().any(|other| top_level(other) && other.starts_with("model"));
    top_level(name) && !(usual && name.starts_with("consolidated"))
}

/// What describes a model besides its weights: configuration, tokenizer, chat templates. Never code.
fn is_description(name: &str) -> bool {
    const TEXTS: [&str; 3] = ["merges.txt", "vocab.txt", "tokenizer.model"];
    is_module(name)
        || !name.contains('/')
            && (name.ends_with(".json")
                || name.ends_with(".jinja")
                || name.ends_with(".tiktoken")
                || TEXTS.contains(&name))
}

/// `1_Pooling/config.json`: how sentence-transformers writes down the steps behind a model of embeddings.
fn is_module(name: &str) -> bool {
    let Some((number, kind)) = name.strip_suffix("/config.json").and_then(|folder| folder.split_once('_')) else {
        return false;
    };
    number.chars().all(|c| c.is_ascii_digit()) && !number.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Every file of the weights is there.
fn shards_present(folder: &Path, names: &[String]) -> bool {
    let index = fs::read(folder.join(INDEX)).ok();
    missing_weights(names, index.as_deref()).is_some_and(|missing| missing.is_empty())
}

/// The files of the weights that are not among `names`; `None` if the index cannot be read. An index of which no file is
/// there is about another build (conversions keep their source's), and then the shards' own numbers count.
pub(super) fn missing_weights(names: &[String], index: Option<&[u8]>) -> Option<Vec<String>> {
    let absent = |shard: &String| !names.contains(shard);
    let named: Vec<String> = match index {
        Some(index) => shards_of(index)?,
        None => Vec::new(),
    };
    let about_others = named.iter().all(absent);
    let whole = "model.safetensors".to_owned();
    if names.contains(&whole) && !named.contains(&whole) {
        return Some(Vec::new());
    }
    let named = if about_others {
        names.iter().filter(|name| is_weights(name, names)).flat_map(|name| parts_of(name)).collect()
    } else {
        named
    };
    let missing: BTreeSet<String> = named.into_iter().filter(absent).collect();
    Some(missing.into_iter().collect())
}

/// The files that an index names; `None` where it is none.
fn shards_of(index: &[u8]) -> Option<Vec<String>> {
    let index: serde_json::Value = serde_json::from_slice(index).ok()?;
    let map = index.get("weight_map")?.as_object()?;
    let shards: BTreeSet<&str> = map.values().filter_map(|shard| shard.as_str()).collect();
    Some(shards.into_iter().map(str::to_owned).collect())
}

fn preferred_gguf(names: &[String]) -> Option<String> {
    let is_later_part = |name: &str| part_number(name).is_some_and(|(_, number, _)| number != 1);
    let candidates: Vec<&String> = names
        .iter()
        .filter(|name| name.ends_with(".gguf") && !name.contains("mmproj") && !is_later_part(name))
        .collect();
    let of = |quantisation: &str| candidates.iter().find(|name| names_quantisation(name, quantisation));
    QUANTISATIONS.iter().find_map(|quantisation| of(quantisation)).or(candidates.first()).map(|name| name.to_string())
}

/// `q4_0` in `model-q4_0.gguf`, but not `F16` in `BF16` nor `Q4_0` in `Q4_0_4_4`.
fn names_quantisation(name: &str, quantisation: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.match_indices(quantisation)
        .any(|(at, _)| !name[..at].ends_with(is_word) && !name[at + quantisation.len()..].starts_with(is_word))
}

/// `file` and, if it is the first part of several, the others that the listing holds.
fn gguf_parts(names: &[String], file: &str) -> Vec<String> {
    let parts = parts_of(file);
    names.iter().filter(|name| parts.contains(name)).cloned().collect()
}

/// `x-00001-of-00002.gguf` → both names; any other name → itself.
fn parts_of(file: &str) -> Vec<String> {
    match (part_number(file), file.rsplit_once('.')) {
        (Some((stem, _, count)), Some((_, kind))) => {
            (1..=count).map(|part| format!("{stem}-{part:05}-of-{count:05}.{kind}")).collect()
        }
        _ => vec![file.to_string()],
    }
}

/// The stem, the part's number and the number of parts of `x-00001-of-00002.gguf` (or `.safetensors`).
fn part_number(name: &str) -> Option<(&str, usize, usize)> {
    let (rest, count) = name.rsplit_once('.')?.0.rsplit_once("-of-")?;
    let (stem, part) = rest.rsplit_once('-')?;
    (part.len() == 5 && count.len() == 5).then_some(())?;
    Some((stem, part.parse().ok()?, count.parse().ok()?))
}

/// `choose`, with the error that says why it came back empty.
pub(super) fn choose_or_explain(place: &str, names: &[String], file: Option<&str>) -> Result<Vec<String>, Error> {
    choose(names, file).ok_or_else(|| match file {
        Some(file) => {
            Error::NoSuchFile { place: place.to_string(), file: file.to_string(), models: models_among(names) }
        }
        None => Error::NoModel { place: place.to_string() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], file: Option<&str>, expected: Option<&[&str]>) {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let expected = expected.map(|list| list.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        assert_eq!(choose(&names, file), expected, "{names:?} {file:?}");
    }

    #[test]
    fn choosing_among_a_listing() {
        let both = [
            "README.md",
            "config.json",
            "model.safetensors",
            "x-Q4_0.gguf",
            "run.py",
            "merges.txt",
            "a/model.safetensors",
        ];
        check(&both, None, Some(&["config.json", "model.safetensors", "merges.txt"]));
        check(&both, Some("x-Q4_0.gguf"), Some(&["x-Q4_0.gguf"]));
        check(&both, Some("y.gguf"), None);
        let modules = ["config.json", "model.safetensors", "modules.json", "1_Pooling/config.json"];
        check(&modules, None, Some(&modules));
        for other in ["1_Pooling/run.py", "onnx/config.json", "1_Pooling/deep/config.json", "_Pooling/config.json"] {
            check(&[other, modules[0], modules[1]], None, Some(&modules[..2]));
        }
        check(&["model.safetensors"], None, None);
        check(&["config.json"], None, None);
        check(&["config.json", "pytorch_model.bin"], None, None);
        check(&["config.json", "consolidated.safetensors"], None, Some(&["config.json", "consolidated.safetensors"]));
        check(
            &["config.json", "consolidated.safetensors", "model-00001-of-00001.safetensors"],
            None,
            Some(&["config.json", "model-00001-of-00001.safetensors"]),
        );
        check(&["m-f16.gguf", "m-q8_0.gguf", "m-q4_k_m.gguf"], None, Some(&["m-q8_0.gguf"]));
        check(&["m.Q4_0_4_4.gguf", "m.Q6_K.gguf"], None, Some(&["m.Q6_K.gguf"]));
        check(&["m-BF16.gguf", "m-F16.gguf"], None, Some(&["m-F16.gguf"]));
        check(&["mmproj-F16.gguf", "m-IQ2.gguf"], None, Some(&["m-IQ2.gguf"]));
        let split = ["m-Q4_0-00001-of-00002.gguf", "m-Q4_0-00002-of-00002.gguf", "m-Q2_K.gguf"];
        check(&split, None, Some(&split[..2]));
        check(&[], None, None);
    }

    #[test]
    fn names_that_lead_out_are_told() {
        for name in ["a.json", "Q4_0/m.gguf", "..a", "a..b"] {
            assert!(is_safe(name), "{name}");
        }
        for name in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "a\\b", "a\nb"] {
            assert!(!is_safe(name), "{name:?}");
        }
    }

    #[test]
    fn the_architecture_is_read_from_either_home() {
        assert_eq!(architecture(br#"{"model_type": "llama"}"#).as_deref(), Some("llama"));
        assert_eq!(architecture(br#"{"text_config": {"model_type": "x"}}"#).as_deref(), Some("x"));
        assert_eq!(architecture(br#"{"model_type": 3}"#), None);
        assert_eq!(architecture(b"<html>"), None);
    }

    #[test]
    fn a_folder_is_a_model_only_when_all_shards_lie_in_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writable");
        assert_eq!(model_in(folder.path(), None), None);
        put("config.json", "{}");
        put(
            "model.safetensors.index.json",
            r#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#,
        );
        put("model-1.safetensors", "");
        assert_eq!(model_in(folder.path(), None), None);
        put("model-2.safetensors", "");
        assert_eq!(model_in(folder.path(), None), Some(folder.path().to_path_buf()));
        let of_three = r#"{"weight_map": {"a": "model-1-of-3.safetensors", "b": "model-2-of-3.safetensors"}}"#;
        put("model.safetensors.index.json", of_three);
        assert!(model_in(folder.path(), None).is_some(), "an index of which no file is there is another build's");
        put("model.safetensors.index.json", "{ cut");
        assert_eq!(model_in(folder.path(), None), None);
        fs::remove_file(folder.path().join("model.safetensors.index.json")).expect("removed");
        put("model-00001-of-00002.safetensors", "");
        assert_eq!(model_in(folder.path(), None), None, "another part is missing");
        put("model-00002-of-00002.safetensors", "");
        assert_eq!(model_in(folder.path(), None), Some(folder.path().to_path_buf()));
        assert_eq!(model_in(folder.path(), Some("m.gguf")), None);
        put("m.gguf", "");
        assert_eq!(model_in(folder.path(), Some("m.gguf")), Some(folder.path().join("m.gguf")));
        assert_eq!(model_in(Path::new("/nowhere"), None), None);
    }
}
