//! Which tokens end an answer, and the sampling the model's makers recommend, from every place that says so.

use serde_json::Value;

use super::text::Text;

/// The model's generation defaults, as far as the checkpoint says them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    /// The tokens that the checkpoint says by their ids end an answer, sorted, each once; the `eos_token` of
    /// [`super::Checkpoint::special_tokens`] is another.
    pub eos_token_ids: Vec<u32>,
    /// The sampling that the model's makers recommend, by the names of `generation_config.json`.
    pub sampling: Vec<(&'static str, f64)>,
}

/// The sampling settings that are taken from a `generation_config.json`: those that transformers' `GenerationConfig` has
/// and makers of models set. Its penalties beside the repetition penalty are not OpenAI's, so they are not taken.
const SETTINGS: [&str; 5] = ["temperature", "top_k", "top_p", "min_p", REPETITION];

/// The one setting that greedy decoding has, too.
const REPETITION: &str = "repetition_penalty";

pub(super) fn of(config: &Value, text: &Text) -> Generation {
    let sampling = text.generation_config().map(sampling).unwrap_or_default();
    let mut generation = Generation { eos_token_ids: Vec::new(), sampling };
    let text_config = config.get("text_config");
    for place in [text.generation_config(), Some(config), text_config].into_iter().flatten() {
        generation.eos_token_ids.extend(ids(place.get("eos_token_id")));
    }
    if let Text::Gguf(vocabulary) = text {
        generation.eos_token_ids.extend([vocabulary.eos, vocabulary.eot, vocabulary.eom].into_iter().flatten());
    }
    generation.eos_token_ids.sort_unstable();
    generation.eos_token_ids.dedup();
    generation
}

/// The sampling settings of a `generation_config.json`. `do_sample: false` says that they are leftovers, but for the
/// one that greedy decoding has.
fn sampling(settings: &Value) -> Vec<(&'static str, f64)> {
    let is_greedy = settings.get("do_sample") == Some(&Value::Bool(false));
    let names = SETTINGS.into_iter().filter(|name| !is_greedy || *name == REPETITION);
    names.filter_map(|name| Some((name, settings.get(name)?.as_f64()?))).collect()
}

/// One id or a list of them; anything else is none.
fn ids(value: Option<&Value>) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(id).collect(),
        Some(value) => id(value).into_iter().collect(),
        None => Vec::new(),
    }
}
