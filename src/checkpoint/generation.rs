//! Which tokens end an answer, and the sampling the model's makers recommend, from every place that says so.

use serde_json::Value;

use super::Error;
use super::text::Text;

/// The model's generation defaults; `None` where the checkpoint says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    /// Every token that ends an answer, sorted, each once.
    pub eos_token_ids: Vec<u32>,
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
}

/// The names under which vocabularies keep the token that ends a turn. A GGUF often records only the token that ends
/// a document, and a chat model would then never stop.
const TURN_ENDS: &[&str] = &[
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
];

pub(super) fn of(config: &Value, text: &Text) -> Result<Generation, Error> {
    let mut generation = match text.generation_config() {
        Some(settings) => sampling(settings),
        None => Generation::default(),
    };
    let text_config = config.get("text_config");
    for place in [text.generation_config(), Some(config), text_config].into_iter().flatten() {
        generation.eos_token_ids.extend(ids(place.get("eos_token_id")));
    }
    match text {
        Text::Folder { .. } => {
            if let Some(token) = text.special_token("eos_token") {
                generation.eos_token_ids.extend(text.special_id(&token)?);
            }
        }
        Text::Gguf(vocabulary) => {
            generation.eos_token_ids.extend([vocabulary.eos, vocabulary.eot, vocabulary.eom].into_iter().flatten());
            let turn_ends = vocabulary.controls().filter(|(_, token)| TURN_ENDS.contains(token)).map(|(id, _)| id);
            generation.eos_token_ids.extend(turn_ends);
        }
    }
    generation.eos_token_ids.sort_unstable();
    generation.eos_token_ids.dedup();
    Ok(generation)
}

/// The sampling fields of a `generation_config.json`. `do_sample: false` says that the other fields are leftovers.
fn sampling(settings: &Value) -> Generation {
    let number = |key: &str| settings.get(key).and_then(Value::as_f64).map(|number| number as f32);
    let repetition_penalty = number("repetition_penalty");
    if settings.get("do_sample") == Some(&Value::Bool(false)) {
        return Generation { repetition_penalty, ..Generation::default() };
    }
    Generation {
        eos_token_ids: Vec::new(),
        temperature: number("temperature"),
        top_k: settings.get("top_k").and_then(Value::as_u64).and_then(|k| u32::try_from(k).ok()),
        top_p: number("top_p"),
        min_p: number("min_p"),
        repetition_penalty,
    }
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
