//! A drawn token, how likely it was, and what a pass made of a row.

use crate::engine::token::TokenId;

/// The most tokens told beside the drawn one; as OpenAI's API has it.
pub const MOST_TOP: usize = 20;

/// A drawn token.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    pub id: TokenId,
    /// Where the job asks for them. Boxed, as most do not.
    pub logprobs: Option<Box<Logprobs>>,
}

impl From<TokenId> for Drawn {
    fn from(id: TokenId) -> Drawn {
        Drawn { id, logprobs: None }
    }
}

/// Natural logarithms of probabilities by the model's own distribution: before penalties, bias, masks and temperature.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprobs {
    /// Of the drawn token.
    pub drawn: f32,
    /// The most likely tokens, at most [`MOST_TOP`], most likely first, the lower id first among equals.
    pub top: Vec<(TokenId, f32)>,
}

/// The tokens that a pass added to a row's answer: none, one, or several where a runner drafts. One takes no memory of
/// its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accepted {
    first: Option<Drawn>,
    others: Vec<Drawn>,
}

impl Accepted {
    /// No token.
    pub fn none() -> Accepted {
        Accepted::default()
    }

    /// One token.
    pub fn one(drawn: Drawn) -> Accepted {
        Accepted { first: Some(drawn), others: Vec::new() }
    }

    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl FromIterator<Drawn> for Accepted {
    fn from_iter<I: IntoIterator<Item = Drawn>>(tokens: I) -> Accepted {
        let mut tokens = tokens.into_iter();
        Accepted { first: tokens.next(), others: tokens.collect() }
    }
}

impl IntoIterator for Accepted {
    type Item = Drawn;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Drawn>, std::vec::IntoIter<Drawn>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}
