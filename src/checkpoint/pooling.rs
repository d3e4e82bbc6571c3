//! How a model's hidden states become one vector a text, as sentence-transformers writes it down: `modules.json` lists
//! the steps, `1_Pooling/config.json` says how to pool, `sentence_bert_config.json` how much text is read.

use std::path::Path;

use serde_json::Value;

use super::{Error, read_json};

/// Which hidden states count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolingMode {
    /// The mean of all tokens'.
    Mean,
    /// The first token's: BERT's `[CLS]`.
    First,
    /// The last token's.
    Last,
}

/// From hidden states to a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooling {
    /// Which hidden states count.
    pub mode: PoolingMode,
    /// Whether vectors have length 1.
    pub normalise: bool,
    /// The most tokens that the model was trained to read; `None` leaves it to the architecture.
    pub most_tokens: Option<usize>,
}

impl Default for Pooling {
    /// For models that say nothing: the mean, of length 1.
    fn default() -> Pooling {
        Pooling { mode: PoolingMode::Mean, normalise: true, most_tokens: None }
    }
}

const MODULES: &str = "modules.json";
/// The flags of `1_Pooling/config.json` and what they mean here.
const MODES: &[(&str, PoolingMode)] = &[
    ("pooling_mode_mean_tokens", PoolingMode::Mean),
    ("pooling_mode_cls_token", PoolingMode::First),
    ("pooling_mode_lasttoken", PoolingMode::Last),
];
/// The same in the words of newer files.
const NAMES: &[(&str, PoolingMode)] =
    &[("mean", PoolingMode::Mean), ("cls", PoolingMode::First), ("lasttoken", PoolingMode::Last)];

/// The pooling of a model folder.
///
/// # Errors
/// A step or a mode that mettle does not know: vectors without it would be wrong.
pub(super) fn of_folder(folder: &Path) -> Result<Pooling, Error> {
    let path = folder.join(MODULES);
    if !path.exists() {
        return Ok(Pooling::default());
    }
    let mut pooling = Pooling { normalise: false, ..Pooling::default() };
    for module in list(&path)? {
        let text = |key: &str| module.get(key).and_then(Value::as_str).unwrap_or_default();
        // "sentence_transformers.models.Pooling"; newer versions have another path before the last name.
        match text("type").rsplit('.').next().unwrap_or_default() {
            "Transformer" => {}
            "Pooling" => pooling.mode = mode(&folder.join(text("path")).join("config.json"))?,
            "Normalize" => pooling.normalise = true,
            other => {
                let message = format!("the embedding step {other} is not supported (Pooling and Normalize are)");
                return Err(Error::unsupported(&path, message));
            }
        }
    }
    let limits = folder.join("sentence_bert_config.json");
    if limits.exists() {
        let most = read_json(&limits)?.get("max_seq_length").and_then(Value::as_u64);
        pooling.most_tokens = most.filter(|most| *most > 0).map(|most| most as usize);
    }
    Ok(pooling)
}

fn mode(path: &Path) -> Result<PoolingMode, Error> {
    let settings = read_json(path)?;
    let named = settings.get("pooling_mode").and_then(Value::as_str);
    let on = |key: &str| settings.get(key).and_then(Value::as_bool).unwrap_or(false);
    let found = match named {
        Some(name) => NAMES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode),
        None => {
            let is_set =
                |(key, value): (&String, &Value)| key.starts_with("pooling_mode_") && value == &Value::Bool(true);
            let set = settings.as_object().map_or(0, |settings| settings.iter().filter(|entry| is_set(*entry)).count());
            MODES.iter().find(|(key, _)| on(key)).map(|(_, mode)| *mode).filter(|_| set == 1)
        }
    };
    found.ok_or_else(|| {
        Error::unsupported(path, "this pooling is not supported (one of mean, cls token and last token is)")
    })
}

/// Reads a JSON list.
fn list(path: &Path) -> Result<Vec<Value>, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Array(list)) => Ok(list),
        _ => Err(Error::damaged(path, "it is no JSON list; pull the model again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(modules: &str, pooling: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("1_Pooling")).expect("writable");
        std::fs::write(folder.path().join(MODULES), modules).expect("writable");
        std::fs::write(folder.path().join("1_Pooling/config.json"), pooling).expect("writable");
        folder
    }

    fn modules(last: &str) -> String {
        let module =
            |kind: &str, path: &str| format!(r#"{{"type": "sentence_transformers.models.{kind}", "path": "{path}"}}"#);
        let list = [module("Transformer", ""), module("Pooling", "1_Pooling"), module(last, "2_Last")];
        format!("[{}]", list.join(","))
    }

    #[test]
    fn modes_and_steps() {
        let check = |last: &str, pooling: &str, expected: Option<(PoolingMode, bool)>| {
            let folder = folder(&modules(last), pooling);
            let found = of_folder(folder.path()).ok().map(|pooling| (pooling.mode, pooling.normalise));
            assert_eq!(found, expected, "{last} {pooling}");
        };
        check("Normalize", r#"{"pooling_mode_mean_tokens": true}"#, Some((PoolingMode::Mean, true)));
        check("Normalize", r#"{"pooling_mode_cls_token": true}"#, Some((PoolingMode::First, true)));
        check("Pooling", r#"{"pooling_mode": "lasttoken"}"#, None);
        check("Dense", r#"{"pooling_mode_mean_tokens": true}"#, None);
        check("Normalize", r#"{"pooling_mode_max_tokens": true}"#, None);
        check("Normalize", r#"{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}"#, None);
        check("Normalize", r#"{"pooling_mode": "lasttoken"}"#, Some((PoolingMode::Last, true)));
    }

    #[test]
    fn a_model_that_says_nothing_and_one_that_says_all() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(of_folder(empty.path()).expect("a default"), Pooling::default());
        let folder = folder(&modules("Normalize"), r#"{"pooling_mode_mean_tokens": true}"#);
        std::fs::write(folder.path().join("sentence_bert_config.json"), r#"{"max_seq_length": 256}"#)
            .expect("writable");
        assert_eq!(of_folder(folder.path()).expect("sound").most_tokens, Some(256));
    }
}
