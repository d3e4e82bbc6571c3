//! Token ids in, token ids out. No text, no HTTP, no arrays: a model is anything that implements [`Runner`].
//!
//! The main path: [`Engine::submit`] puts a [`Job`] into the device thread's inbox; the scheduler gives it a row,
//! starts it from the longest remembered prefix, prefills it chunk by chunk and decodes all rows together; the job
//! answers with [`Step`]s. A job may have a [`Guide`] that says which tokens may come next; it thinks on threads of its
//! own while the device computes.

mod device;
mod embed;
mod guide;
mod guides;
mod job;
mod logprobs;
mod penalties;
mod prefix;
mod runner;
mod sampling;
mod scheduler;
pub mod scripted;
mod sequence;
mod stats;
mod token_set;

pub use device::{Engine, Limits, SubmitError};
pub use embed::Encoder;
pub use guide::{Advice, Guide};
pub use guides::Pending;
pub use job::{Finish, Job, Step};
pub use logprobs::{Logprobs, MOST_TOP};
pub use penalties::{Adjustment, Dry};
pub use runner::{Draw, Drawn, Row, RunError, Runner};
pub use sampling::Sampling;
pub use stats::Stats;
pub use token_set::TokenSet;

#[cfg(test)]
mod tests;
