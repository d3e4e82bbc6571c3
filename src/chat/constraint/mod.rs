//! What an answer is held to: grammars, masks, budgets.

pub(in crate::chat) mod contract;
pub(in crate::chat) mod grammar;
