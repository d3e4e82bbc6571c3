//! Which sampling a request gets: its own settings, then the model's defaults, then mettle's.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Error, Field, Request, Sampling, Tokenizer};
use crate::engine::TokenSet;

/// Mettle's default: the model's own distribution as it is.
const TEMPERATURE: f32 = 1.0;

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

/// The settings that a request is answered with; always with a seed.
///
/// # Errors
/// A bias for a token that the model does not have, or two for the same.
pub(super) fn resolve(
    request: &Request,
    model: &Sampling,
    tokenizer: &Tokenizer,
    breakers: &Breakers,
) -> Result<Sampling, Error> {
    let ours = Sampling { temperature: Some(TEMPERATURE), ..Sampling::default() };
    let mut sampling = request.sampling.clone().or(model).or(&ours);
    sampling.seed.get_or_insert_with(random_seed);
    sampling.dry = sampling.dry.filter(|dry| dry.multiplier != 0.0);
    if let Some(dry) = &mut sampling.dry {
        dry.breakers = breakers.resolve(&request.dry_breakers, tokenizer);
    }
    sampling.logit_bias = check_bias(&sampling.logit_bias, tokenizer.vocab_size())?;
    Ok(sampling)
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
            return Err(wrong(format!("logit_bias names token {id} twice")));
        }
    }
    Ok(checked.into_iter().collect())
}

/// The standard library seeds every hasher from the operating system's random numbers.
pub(super) fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// The seed of answer number `index`; the first has the request's own.
pub(super) fn seed_of(request: u64, index: usize) -> u64 {
    request.wrapping_add((index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            prompt::tokenizer::tests::{byte_level, load},
            request::Dry,
        },
        *,
    };

    fn resolved(sampling: Sampling, model: &Sampling) -> Result<Sampling, Error> {
        let request = Request { sampling, ..Request::new(Vec::new()) };
        resolve(&request, model, &load(byte_level("smollm")), &Breakers::default())
    }

    #[test]
    fn request_then_model_then_mettle() {
        let request = Sampling { temperature: Some(0.0), ..Sampling::default() };
        let model = Sampling { temperature: Some(0.6), top_k: Some(20), seed: Some(3), ..Sampling::default() };
        let expected = Sampling { temperature: Some(0.0), ..model.clone() };
        assert_eq!(resolved(request, &model).unwrap(), expected);
        let sampling = resolved(Sampling::default(), &Sampling::default()).unwrap();
        let expected = Sampling { temperature: Some(1.0), seed: sampling.seed, ..Sampling::default() };
        assert_eq!(sampling, expected);
        assert!(sampling.seed.is_some());
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(random_seed(), random_seed());
        assert_eq!(seed_of(7, 0), 7);
        assert_ne!(seed_of(7, 1), seed_of(7, 2));
    }

    #[test]
    fn logit_bias() {
        let resolve = |bias: &[(u32, f32)]| {
            resolved(Sampling { logit_bias: bias.to_vec(), ..Sampling::default() }, &Sampling::default())
        };
        assert_eq!(resolve(&[(9, 1.0), (2, -1.0)]).unwrap().logit_bias, [(2, -1.0), (9, 1.0)]);
        for bias in [&[(261, 1.0)][..], &[(3, 1.0), (3, 2.0)]] {
            let Err(Error::Request { field: Field::LogitBias, message }) = resolve(bias) else { panic!("{bias:?}") };
            assert!(message.contains(&bias[0].0.to_string()), "{message}");
        }
    }

    #[test]
    fn sequence_breakers_are_all_tokens_that_have_them() {
        let tokenizer = load(byte_level("smollm"));
        let breakers = Breakers::default();
        let numbers = Dry { multiplier: 0.8, base: 1.75, allowed_length: 2, range: Some(9), breakers: Arc::default() };
        let check = |strings: &[&str], expected: &[u32]| {
            let sampling = Sampling { dry: Some(numbers.clone()), ..Sampling::default() };
            let dry_breakers = strings.iter().map(|string| (*string).to_owned()).collect();
            let request = Request { sampling, dry_breakers, ..Request::new(Vec::new()) };
            let dry = resolve(&request, &Sampling::default(), &tokenizer, &breakers).unwrap().dry.unwrap();
            assert_eq!(dry.breakers.iter().collect::<Vec<_>>(), expected, "{strings:?}");
            assert_eq!(Dry { breakers: Arc::default(), ..dry }, numbers);
        };
        // Of the merged tokens, " a" is 259 and " ab" 260; 2 is "<tool é>".
        check(&["a"], &[3 + 97, 259, 260]);
        check(&["a"], &[3 + 97, 259, 260]);
        check(&["\n", "b"], &[3 + 10, 3 + 98, 260]);
        check(&["ol"], &[2]);
        check(&["", "none"], &[]);
        let off = Sampling { dry: Some(Dry { multiplier: 0.0, ..numbers.clone() }), ..Sampling::default() };
        assert_eq!(resolved(off, &Sampling::default()).unwrap().dry, None);
    }
}
