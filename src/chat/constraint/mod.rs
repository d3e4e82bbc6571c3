//! What an answer is held to: a format, a call that must be made, arguments that must satisfy their schema, the most
//! tokens to think.
//!
//! The main path: [`ConstraintBuilder::build`] reads off a request what its answers must be and compiles that into a
//! grammar; [`Constraint::guide`] is one answer's guide for the engine.

mod builder;
mod calls;
mod grammar;
mod guide;
mod thought;

#[cfg(test)]
mod tests;

pub(in crate::chat) use builder::{Constraint, ConstraintBuilder};
