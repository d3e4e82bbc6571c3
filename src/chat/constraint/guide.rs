//! The guide of an answer: lets the model think, ends the thought when its budget is spent, and holds what follows to
//! the grammar.

use std::{collections::VecDeque, sync::Arc};

use llguidance::Matcher;

use super::grammar::reason;
use crate::{
    chat::{Error, Tokenizer},
    engine::{Advice, Guide, TokenId, TokenSet},
};

/// How a thought is guided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ThoughtGuide {
    /// The thought ends with the first of these tags, whether one token or several spell it.
    pub end: String,
    /// What is written to end a thought that has used up its budget; contains `end`. What it has after that is
    /// written after a thought that ended by itself, too, where a grammar follows.
    pub closing: String,
    /// The most tokens to think, in all thoughts of the answer.
    pub budget: Option<usize>,
    /// What begins another thought in the middle of an answer.
    pub again: &'static [&'static str],
    /// What is written to end a thought that begins when the budget is spent.
    pub last: String,
}

/// What an answer goes through, in this order.
#[derive(Default)]
pub(super) struct Parts<'a> {
    /// What it begins with.
    pub opening: &'a str,
    /// Its thought; `None` where it does not think.
    pub thought: Option<&'a ThoughtGuide>,
    /// The grammar of what follows.
    pub matcher: Option<Matcher>,
}

/// See the module.
pub(super) struct AnswerGuide {
    tokenizer: Arc<Tokenizer>,
    /// While the model thinks.
    thought: Option<Thought>,
    /// While it does not, where another thought may begin that the budget holds for as well.
    between: Option<Thought>,
    /// Tokens to come whatever the model says.
    forced: VecDeque<u32>,
    matcher: Option<Matcher>,
}

struct Thought {
    /// The tag that ends it.
    end: String,
    again: &'static [&'static str],
    /// The last bytes, fewer than the longest tag has.
    tail: Vec<u8>,
    left: Option<usize>,
    closing: Vec<u32>,
    last: Vec<u32>,
    after: Vec<u32>,
    /// All tokens but those that end an answer, where a grammar follows: a thought is no answer yet.
    unended: Advice,
}

impl AnswerGuide {
    /// A guide through these parts of an answer. `stop_tokens` end it.
    ///
    /// # Errors
    /// A thought whose closing does not end it, which is a bug.
    pub(super) fn new(tokenizer: &Arc<Tokenizer>, stop_tokens: &[u32], parts: Parts<'_>) -> Result<AnswerGuide, Error> {
        let Parts { opening, thought, matcher } = parts;
        let forced = tokenizer.encode(opening, false)?.into();
        let unended = || match &matcher {
            Some(_) => {
                let ids = 0..tokenizer.vocab_size() as u32;
                Advice::Mask(Arc::new(ids.filter(|id| !stop_tokens.contains(id)).collect()))
            }
            None => Advice::Free,
        };
        let thought = thought.map(|thought| Thought::new(thought, tokenizer, unended())).transpose()?;
        Ok(AnswerGuide { tokenizer: Arc::clone(tokenizer), thought, between: None, forced, matcher })
    }

    /// One more token of the answer.
    fn take(&mut self, token: u32) -> Result<(), String> {
        if self.forced.pop_front().is_some() {
            return Ok(());
        }
        if let Some(thought) = &mut self.thought {
            if let Some(rest) = thought.push(self.tokenizer.spelling(token).as_ref()) {
                let thought = self.thought.take().expect("it was there");
                return self.begin(thought, &rest);
            }
            return Ok(());
        }
        if let Some(between) = &mut self.between {
            if between.begins(self.tokenizer.spelling(token).as_ref()) {
                self.thought = self.between.take();
            }
            return Ok(());
        }
        match &mut self.matcher {
            Some(matcher) => matcher.consume_token(token).map_err(|error| reason(&error)),
            None => Ok(()),
        }
    }

    /// The thought ended by itself; `rest` are the bytes its last token had after the tag. They begin the answer.
    fn begin(&mut self, thought: Thought, rest: &[u8]) -> Result<(), String> {
        let Some(matcher) = &mut self.matcher else {
            self.rest(thought);
            return Ok(());
        };
        if rest.is_empty() {
            self.forced = thought.after.into();
            return Ok(());
        }
        let text = String::from_utf8_lossy(rest.trim_ascii());
        let tokens = self.tokenizer.encode_within(&text).map_err(|error| error.to_string())?;
        matcher.consume_tokens(&tokens).map_err(|_| {
            format!(
                "the model ended its thought within a token that goes on with {text:?}, where no answer may begin so"
            )
        })
    }

    /// A thought has ended and no grammar follows: the next is held to what is left of the budget.
    fn rest(&mut self, thought: Thought) {
        let more = self.matcher.is_none() && thought.left.is_some() && !thought.again.is_empty();
        self.between = more.then(|| Thought { tail: Vec::new(), ..thought });
    }

    fn next(&mut self) -> Result<Advice, String> {
        if self.forced.is_empty()
            && let Some(mut thought) = self.thought.take_if(|thought| thought.left == Some(0))
        {
            self.forced = thought.closing.into();
            // The next one has nothing left from its beginning on.
            thought.closing = thought.last.clone();
            self.rest(thought);
        }
        if !self.forced.is_empty() {
            return Ok(Advice::Force(self.forced.iter().copied().map(TokenId).collect()));
        }
        if let Some(thought) = &self.thought {
            return Ok(thought.unended.clone());
        }
        match &mut self.matcher {
            Some(matcher) => allowed(matcher, self.tokenizer.vocab_size()),
            None => Ok(Advice::Free),
        }
    }
}

impl Guide for AnswerGuide {
    fn advise(&mut self, taken: &[TokenId]) -> Result<Advice, String> {
        taken.iter().try_for_each(|&token| self.take(token.into()))?;
        self.next()
    }
}

impl Thought {
    fn new(guide: &ThoughtGuide, tokenizer: &Tokenizer, unended: Advice) -> Result<Thought, Error> {
        let after = guide.closing.split_once(&guide.end).filter(|_| !guide.end.is_empty());
        let Some((_, after)) = after else {
            let text = format!("{:?} does not end a thought with {:?}", guide.closing, guide.end);
            return Err(Error::Internal(text));
        };
        Ok(Thought {
            end: guide.end.clone(),
            again: guide.again,
            tail: Vec::new(),
            left: guide.budget,
            closing: tokenizer.encode_within(&guide.closing)?,
            last: tokenizer.encode_within(&guide.last)?,
            after: tokenizer.encode_within(after)?,
            unended,
        })
    }

    /// One more token's bytes while the model does not think; whether they complete a tag that begins a thought.
    fn begins(&mut self, bytes: &[u8]) -> bool {
        let rest = find(&mut self.tail, bytes, self.again);
        let begins = rest.is_some();
        self.tail = rest.unwrap_or_else(|| std::mem::take(&mut self.tail));
        begins
    }

    /// One more token's bytes; where they complete the tag, those behind it.
    fn push(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.left = self.left.map(|left| left.saturating_sub(1));
        find(&mut self.tail, bytes, &[&self.end])
    }
}

/// Adds one more token's bytes to the last ones; where they complete one of these tags, returns those behind it, else
/// keeps fewer than the longest has.
fn find(tail: &mut Vec<u8>, bytes: &[u8], tags: &[&str]) -> Option<Vec<u8>> {
    tail.extend_from_slice(bytes);
    let end = |tag: &&str| Some(tail.windows(tag.len()).position(|window| window == tag.as_bytes())? + tag.len());
    if let Some(end) = tags.iter().filter_map(end).min() {
        return Some(tail.split_off(end));
    }
    let longest = tags.iter().map(|tag| tag.len()).max().unwrap_or_default();
    let useless = (tail.len() + 1).saturating_sub(longest);
    tail.drain(..useless);
    None
}

/// What the grammar lets follow. A vocabulary has `count` ids.
fn allowed(matcher: &mut Matcher, count: usize) -> Result<Advice, String> {
    if matcher.is_stopped() {
        let stop = matcher.stop_reason();
        return if stop.is_ok() { Ok(Advice::End) } else { Err(format!("the grammar stopped: {stop}")) };
    }
    let forced = matcher.compute_ff_tokens();
    if !forced.is_empty() {
        return Ok(Advice::Force(forced.into_iter().map(TokenId).collect()));
    }
    let mask = matcher.compute_mask().map_err(|error| reason(&error))?;
    let mut words = mask.as_slice().to_vec();
    words.truncate(count.div_ceil(32));
    if let Some(last) = words.get_mut(count / 32) {
        *last &= (1 << (count % 32)) - 1;
    }
    Ok(Advice::Mask(Arc::new(TokenSet::from_words(words))))
}
