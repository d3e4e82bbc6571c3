//! Which sampling a request gets: its own fields, then the model's defaults, then mettle's.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Error, Field, Overrides, Tokenizer};
use crate::engine::{Dry, Sampling, TokenSet};

/// Mettle's defaults: those of OpenAI's API, which draw from the model's own distribution as it is.
const TEMPERATURE: f32 = 1.0;
const TOP_P: f32 = 1.0;

/// The tokens that DRY's sequence breakers stand for. Finding them is a walk through the whole vocabulary, and most
/// requests have the same ones, so the last ones are remembered.
#[derive(Debug, Default)]
pub(super) struct Breakers(Mutex<Option<(Vec<String>, Arc<TokenSet>)>>);

impl Breakers {
    /// All tokens that have one of these strings in their text.
    fn resolve(&self, strings: &[String], tokenizer: &Tokenizer) -> Arc<TokenSet> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((same, tokens)) = &*known
            && same == strings
        {
            return Arc::clone(tokens);
        }
        let strings_within =
            |id: &u32| strings.iter().any(|string| contains(tokenizer.bytes_of(*id), string.as_bytes()));
        let tokens = Arc::new((0..tokenizer.vocab_size() as u32).filter(strings_within).collect());
        *known = Some((strings.to_vec(), Arc::clone(&tokens)));
        tokens
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

/// Resolves a request's sampling field by field.
pub(super) fn resolve(
    request: &Overrides,
    model: &Overrides,
    tokenizer: &Tokenizer,
    breakers: &Breakers,
) -> Result<Sampling, Error> {
    let dry = request.dry.as_ref().or(model.dry.as_ref()).filter(|dry| dry.multiplier != 0.0).map(|dry| Dry {
        multiplier: dry.multiplier,
        base: dry.base,
        allowed_length: dry.allowed_length,
        range: dry.range,
        breakers: breakers.resolve(&dry.sequence_breakers, tokenizer),
    });
    let logit_bias = if request.logit_bias.is_empty() { &model.logit_bias } else { &request.logit_bias };
    Ok(Sampling {
        temperature: request.temperature.or(model.temperature).unwrap_or(TEMPERATURE),
        top_k: request.top_k.or(model.top_k).unwrap_or(0),
        top_p: request.top_p.or(model.top_p).unwrap_or(TOP_P),
        min_p: request.min_p.or(model.min_p).unwrap_or(0.0),
        repetition_penalty: request.repetition_penalty.or(model.repetition_penalty).unwrap_or(1.0),
        presence_penalty: request.presence_penalty.or(model.presence_penalty).unwrap_or(0.0),
        frequency_penalty: request.frequency_penalty.or(model.frequency_penalty).unwrap_or(0.0),
        dry,
        logit_bias: check_bias(logit_bias, tokenizer.vocab_size())?,
        seed: request.seed.or(model.seed).unwrap_or_else(random_seed),
    })
}

fn check_bias(bias: &[(u32, f32)], vocabulary: usize) -> Result<Vec<(u32, f32)>, Error> {
    let wrong = |message: String| Error::Request { field: Field::LogitBias, message };
    let mut checked = BTreeMap::new();
    for &(id, value) in bias {
        if id as usize >= vocabulary {
            return Err(wrong(format!(
                "there is no token {id} to bias: the model's tokens go from 0 to {}",
                vocabulary - 1
            )));
        }
        if checked.insert(id, value).is_some() {
            return Err(wrong(format!("token {id} is biased twice")));
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
    use super::super::prompt::tokenizer::tests::{byte_level, load};
    use super::*;

    fn resolved(request: &Overrides, model: &Overrides) -> Result<Sampling, Error> {
        resolve(request, model, &load(byte_level("smollm")), &Breakers::default())
    }

    #[test]
    fn request_then_model_then_mettle() {
        let request = Overrides { temperature: Some(0.0), ..Overrides::default() };
        let model = Overrides { temperature: Some(0.6), top_k: Some(20), seed: Some(3), ..Overrides::default() };
        let sampling = resolved(&request, &model).unwrap();
        assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed), (0.0, 20, 1.0, 3));
        let sampling = resolved(&Overrides::default(), &Overrides::default()).unwrap();
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
            resolved(&request, &Overrides::default())
        };
        assert_eq!(resolve(&[(9, 1.0), (2, -1.0)]).unwrap().logit_bias, [(2, -1.0), (9, 1.0)]);
        for bias in [&[(261, 1.0)][..], &[(3, 1.0), (3, 2.0)]] {
            let Err(Error::Request { field: Field::LogitBias, message }) = resolve(bias) else { panic!("{bias:?}") };
            assert!(message.contains(&bias[0].0.to_string()), "{message}");
        }
    }

    #[test]
    fn sequence_breakers_are_all_tokens_that_have_them() {
        let (tokenizer, breakers) = (load(byte_level("smollm")), Breakers::default());
        let check = |strings: &[&str], expected: &[u32]| {
            let sequence_breakers = strings.iter().map(|string| (*string).to_owned()).collect();
            let dry =
                super::super::Dry { multiplier: 0.8, base: 1.75, allowed_length: 2, range: Some(9), sequence_breakers };
            let request = Overrides { dry: Some(dry), ..Overrides::default() };
            let dry = resolve(&request, &Overrides::default(), &tokenizer, &breakers).unwrap().dry.unwrap();
            assert_eq!(dry.breakers.iter().collect::<Vec<_>>(), expected, "{strings:?}");
            assert_eq!((dry.multiplier, dry.base, dry.allowed_length, dry.range), (0.8, 1.75, 2, Some(9)));
        };
        // Of the merged tokens, " a" is 259 and " ab" 260; 2 is "<tool é>".
        check(&["a"], &[3 + 97, 259, 260]);
        check(&["a"], &[3 + 97, 259, 260]);
        check(&["\n", "b"], &[3 + 10, 3 + 98, 260]);
        check(&["ol"], &[2]);
        check(&["", "none"], &[]);
        let off =
            super::super::Dry { multiplier: 0.0, base: 1.0, allowed_length: 0, range: None, sequence_breakers: vec![] };
        assert_eq!(
            resolved(&Overrides { dry: Some(off), ..Overrides::default() }, &Overrides::default()).unwrap().dry,
            None
        );
    }
}
