//! Which sampling a request gets: its own fields, then the model's defaults, then mettle's.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use super::{Error, Overrides};
use crate::engine::Sampling;

/// Mettle's defaults: those of OpenAI's API, which draw from the model's own distribution as it is.
const TEMPERATURE: f32 = 1.0;
const TOP_P: f32 = 1.0;

/// Resolves a request's sampling field by field. `vocabulary` is the number of token ids.
pub(super) fn resolve(request: &Overrides, model: &Overrides, vocabulary: usize) -> Result<Sampling, Error> {
    let logit_bias = if request.logit_bias.is_empty() { &model.logit_bias } else { &request.logit_bias };
    Ok(Sampling {
        temperature: request.temperature.or(model.temperature).unwrap_or(TEMPERATURE),
        top_k: request.top_k.or(model.top_k).unwrap_or(0),
        top_p: request.top_p.or(model.top_p).unwrap_or(TOP_P),
        min_p: request.min_p.or(model.min_p).unwrap_or(0.0),
        repetition_penalty: request.repetition_penalty.or(model.repetition_penalty).unwrap_or(1.0),
        presence_penalty: request.presence_penalty.or(model.presence_penalty).unwrap_or(0.0),
        frequency_penalty: request.frequency_penalty.or(model.frequency_penalty).unwrap_or(0.0),
        logit_bias: check_bias(logit_bias, vocabulary)?,
        seed: request.seed.or(model.seed).unwrap_or_else(random_seed),
    })
}

fn check_bias(bias: &[(u32, f32)], vocabulary: usize) -> Result<Vec<(u32, f32)>, Error> {
    let wrong = |message: String| Error::Request { field: "logit_bias", message };
    let mut checked = BTreeMap::new();
    for &(id, value) in bias {
        if id as usize >= vocabulary {
            return Err(wrong(format!(
                "logit_bias names token {id}, but the model's tokens go from 0 to {}",
                vocabulary - 1
            )));
        }
        if checked.insert(id, value).is_some() {
            return Err(wrong(format!("logit_bias names token {id} twice")));
        }
    }
    Ok(checked.into_iter().collect())
}

/// The standard library seeds every hasher from the operating system's random numbers.
pub(super) fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_then_model_then_mettle() {
        let request = Overrides { temperature: Some(0.0), ..Overrides::default() };
        let model = Overrides { temperature: Some(0.6), top_k: Some(20), seed: Some(3), ..Overrides::default() };
        let sampling = resolve(&request, &model, 10).unwrap();
        assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed), (0.0, 20, 1.0, 3));
        let sampling = resolve(&Overrides::default(), &Overrides::default(), 10).unwrap();
        let expected = Sampling { temperature: 1.0, seed: sampling.seed, ..Sampling::default() };
        assert_eq!(sampling, expected);
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(random_seed(), random_seed());
    }

    #[test]
    fn logit_bias() {
        let resolve = |bias: &[(u32, f32)]| {
            let request = Overrides { logit_bias: bias.to_vec(), ..Overrides::default() };
            super::resolve(&request, &Overrides::default(), 10)
        };
        assert_eq!(resolve(&[(9, 1.0), (2, -1.0)]).unwrap().logit_bias, [(2, -1.0), (9, 1.0)]);
        for bias in [&[(10, 1.0)][..], &[(3, 1.0), (3, 2.0)]] {
            let Err(Error::Request { field: "logit_bias", message }) = resolve(bias) else { panic!("{bias:?}") };
            assert!(message.contains(&bias[0].0.to_string()), "{message}");
        }
    }
}
