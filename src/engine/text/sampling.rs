//! How the next token is drawn, and the random numbers it is drawn with.

use std::sync::Arc;

use crate::engine::token_set::TokenSet;

/// One request's sampling settings. The defaults switch everything off: greedy, no penalty.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// 0 is greedy: the most likely token, ties to the lower id.
    pub temperature: f32,
    /// Keep the k most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the most likely tokens up to this share of the probability; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this share as likely as the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of every token seen (prompt and answer); 1 is off.
    pub repetition_penalty: f32,
    /// Subtracted from the logit of every token of the answer so far; 0 is off.
    pub presence_penalty: f32,
    /// Subtracted once for each time the token stands in the answer so far; 0 is off.
    pub frequency_penalty: f32,
    /// `None` is off.
    pub dry: Option<Dry>,
    /// Added to the logits of these token ids, each id at most once.
    pub logit_bias: Vec<(u32, f32)>,
    /// The request's own stream of random numbers, the same in any batch.
    pub seed: u64,
}

/// "Don't repeat yourself" (p-e-w, text-generation-webui #5677): the token that would make the text's end repeat
/// `n >= allowed_length` tokens of what stands earlier loses `multiplier * base ^ (n - allowed_length)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dry {
    pub multiplier: f32,
    pub base: f32,
    pub allowed_length: usize,
    /// How many of the last tokens of prompt and answer are looked at; `None` is all.
    pub range: Option<usize>,
    /// No repetition reaches across these, and they are not penalised.
    pub breakers: Arc<TokenSet>,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            dry: None,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl Sampling {
    /// The random number in `[0, 1)` for the answer's token number `index`. A function of the seed and the index
    /// alone (SplitMix64, Steele et al. 2014), so neither batch nor speculation can shift a request's stream.
    pub fn uniform(&self, index: usize) -> f32 {
        let mut z = self.seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 40) as f32 / (1u64 << 24) as f32
    }
}
