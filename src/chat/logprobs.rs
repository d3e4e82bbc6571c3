//! How likely an answer's tokens were, for requests that ask.

use super::{Error, Field, Logprob, TokenLogprob, Tokenizer};
use crate::engine::{Logprobs, MOST_TOP};

/// Refuses to report more tokens than the engine does.
pub(super) fn check(top: Option<usize>) -> Result<Option<usize>, Error> {
    match top {
        Some(top) if top > MOST_TOP => {
            let message =
                format!("{top} log probabilities beside each token's own are too many; the limit is {MOST_TOP}");
            Err(Error::Request { field: Field::TopLogprobs, message })
        }
        top => Ok(top),
    }
}

/// The engine's numbers with the tokens' bytes. Those of special tokens are their names.
pub(super) fn logprob(tokenizer: &Tokenizer, id: u32, logprobs: &Logprobs) -> Logprob {
    let one = |id: u32, logprob: f32| TokenLogprob { id, bytes: tokenizer.spelling(id).into_owned(), logprob };
    let top = logprobs.top.iter().map(|&(id, logprob)| one(id.into(), logprob)).collect();
    Logprob { token: one(id, logprobs.drawn), top }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::tokenizer::tests::{byte_level, load};
    use super::*;
    use crate::engine::TokenId;

    #[test]
    fn tokens_are_reported_by_their_bytes() {
        let tokenizer = load(byte_level("smollm"));
        let top = [(1, -0.1), (3 + 0xc3, -0.5), (9999, f32::NEG_INFINITY)].map(|(id, logprob)| (TokenId(id), logprob));
        let logprobs = Logprobs { drawn: -0.5, top: top.into() };
        let logprob = logprob(&tokenizer, 3 + 0xc3, &logprobs);
        assert_eq!((logprob.token.bytes, logprob.token.logprob), (vec![0xc3], -0.5));
        let top: Vec<(u32, &[u8])> = logprob.top.iter().map(|token| (token.id, token.bytes.as_slice())).collect();
        assert_eq!(top, [(1, &b"<|e|>"[..]), (3 + 0xc3, &[0xc3]), (9999, b"")]);
    }

    #[test]
    fn too_many_are_refused() {
        assert_eq!((check(None), check(Some(20))), (Ok(None), Ok(Some(20))));
        assert!(matches!(check(Some(21)), Err(Error::Request { field: Field::TopLogprobs, .. })));
    }
}
