//! How the next token is drawn: the one struct of sampling settings, from the wire to the kernel, and the random numbers
//! that tokens are drawn with.
//!
//! It stands in the engine because everybody who sets or reads settings may name the engine. Two may not: a checkpoint's
//! `generation_config.json` and an alias say their settings as names and numbers, for [`Sampling::set`].

use std::sync::Arc;

use crate::engine::token_set::TokenSet;

/// Sampling settings: a request's, a model's defaults, or both together. `None` is not set; what nobody sets is off.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// 0, or not set, is greedy: the most likely token, ties to the lower id.
    pub temperature: Option<f32>,
    /// Keep the k most likely tokens; 0 keeps all.
    pub top_k: Option<u32>,
    /// Keep the most likely tokens up to this share of the probability; 1 keeps all.
    pub top_p: Option<f32>,
    /// Keep tokens at least this share as likely as the most likely one; 0 keeps all.
    pub min_p: Option<f32>,
    /// Divides positive and multiplies negative logits of every token seen (prompt and answer); 1 is off.
    pub repetition_penalty: Option<f32>,
    /// Subtracted from the logit of every token of the answer so far; 0 is off.
    pub presence_penalty: Option<f32>,
    /// Subtracted once for each time the token stands in the answer so far; 0 is off.
    pub frequency_penalty: Option<f32>,
    /// "Don't repeat yourself".
    pub dry: Option<Dry>,
    /// Added to the logits of these token ids, each id at most once; empty is not set.
    pub logit_bias: Vec<(u32, f32)>,
    /// The request's own stream of random numbers, the same in any batch. Not set is 0.
    pub seed: Option<u64>,
}

/// "Don't repeat yourself" (p-e-w, text-generation-webui #5677): the token that would make the text's end repeat
/// `n >= allowed_length` tokens of what stands earlier loses `multiplier * base ^ (n - allowed_length)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dry {
    /// 0 is off.
    pub multiplier: f32,
    /// What one more token of repetition multiplies the loss by.
    pub base: f32,
    /// Repetitions shorter than this many tokens are free.
    pub allowed_length: usize,
    /// How many of the last tokens of prompt and answer are looked at; `None` is all.
    pub range: Option<usize>,
    /// No repetition reaches across these, and they are not penalised.
    pub breakers: Arc<TokenSet>,
}

impl Dry {
    /// The base that its author recommends.
    pub const BASE: f32 = 1.75;
    /// The allowed length that its author recommends.
    pub const ALLOWED_LENGTH: usize = 2;
}

impl Sampling {
    /// These settings, and `defaults` for those that are not set.
    pub fn or(self, defaults: &Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.or(defaults.temperature),
            top_k: self.top_k.or(defaults.top_k),
            top_p: self.top_p.or(defaults.top_p),
            min_p: self.min_p.or(defaults.min_p),
            repetition_penalty: self.repetition_penalty.or(defaults.repetition_penalty),
            presence_penalty: self.presence_penalty.or(defaults.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(defaults.frequency_penalty),
            dry: self.dry.or_else(|| defaults.dry.clone()),
            logit_bias: if self.logit_bias.is_empty() { defaults.logit_bias.clone() } else { self.logit_bias },
            seed: self.seed.or(defaults.seed),
        }
    }

    /// The settings of these names and numbers. Names that are none, and numbers that are no value, set nothing.
    pub fn named<'a>(settings: impl IntoIterator<Item = (&'a str, f64)>) -> Sampling {
        let mut sampling = Sampling::default();
        for (name, number) in settings {
            sampling.set(name, number);
        }
        sampling
    }

    /// Sets what has this name in a `generation_config.json` and in requests. False where nothing has, or where the
    /// number is no value of it.
    pub fn set(&mut self, name: &str, number: f64) -> bool {
        let number = number as f32;
        let setting = match name {
            "top_k" => {
                let is_count = number >= 0.0 && number.fract() == 0.0;
                self.top_k = is_count.then_some(number as u32).or(self.top_k);
                return is_count;
            }
            "temperature" => &mut self.temperature,
            "top_p" => &mut self.top_p,
            "min_p" => &mut self.min_p,
            "repetition_penalty" => &mut self.repetition_penalty,
            "presence_penalty" => &mut self.presence_penalty,
            "frequency_penalty" => &mut self.frequency_penalty,
            _ => return false,
        };
        *setting = Some(number);
        true
    }

    /// The random number in `[0, 1)` for the answer's token number `index`. A function of the seed and the index
    /// alone (SplitMix64, Steele et al. 2014), so neither batch nor speculation can shift a request's stream.
    pub fn uniform(&self, index: usize) -> f32 {
        let step = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed.unwrap_or(0).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_wins() {
        let own = Sampling { temperature: Some(0.0), logit_bias: vec![(1, 1.0)], ..Sampling::default() };
        let defaults = Sampling {
            temperature: Some(0.5),
            top_k: Some(20),
            logit_bias: vec![(2, 1.0)],
            seed: Some(3),
            ..Sampling::default()
        };
        let expected = Sampling { top_k: Some(20), seed: Some(3), ..own.clone() };
        assert_eq!(own.or(&defaults), expected);
        assert_eq!(Sampling::default().or(&defaults), defaults);
    }

    #[test]
    fn settings_by_name() {
        let settings = [("temperature", 0.25), ("top_k", 20.0), ("top_k", -1.0), ("max_new_tokens", 7.0)];
        let expected = Sampling { temperature: Some(0.25), top_k: Some(20), ..Sampling::default() };
        assert_eq!(Sampling::named(settings), expected);
        assert!(!Sampling::default().set("top_k", 0.5));
    }
}
