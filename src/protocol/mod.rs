//! Vendors' JSON on one side, mettle's own requests and events on the other. A vendor's folder has a [`Wire`] for each of
//! its endpoints: it reads a body, where all validation is, and writes answers and refusals.
//!
//! What is not here: sockets, and anything that runs a model.

mod completion;
mod fields;
pub mod openai;
pub mod peek;
mod refusal;
pub mod sse;
mod wire;

pub use completion::{Call, Completion, Usage};
pub use fields::{Fate, Fields, Form, Ignored, Known, Notes, expected, without_indices};
pub use peek::Peek;
pub use refusal::{Kind, Refusal};
pub use wire::{Asked, Fold, Refused, Reply, Wire};
