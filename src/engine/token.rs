//! Token ids.

use std::fmt;

/// A token's number in a model's vocabulary. A type of its own, so that an id cannot be taken for a position, a count
/// or a row, which are numbers as well.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TokenId(pub u32);

impl From<u32> for TokenId {
    fn from(id: u32) -> TokenId {
        TokenId(id)
    }
}

impl From<TokenId> for u32 {
    fn from(id: TokenId) -> u32 {
        id.0
    }
}

impl PartialEq<u32> for TokenId {
    fn eq(&self, id: &u32) -> bool {
        self.0 == *id
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
