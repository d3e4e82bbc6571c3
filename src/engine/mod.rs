//! Token ids in, token ids out. No text, no HTTP, no arrays: a model is anything that implements [`Runner`].
//!
//! The main path: [`Engine::submit`] puts a [`Job`] into the device thread's inbox; the scheduler gives it a row,
//! starts it from the longest remembered prefix, prefills it chunk by chunk and decodes all rows together; the job
//! answers with [`Step`]s.

mod device;
mod job;
mod prefix;
mod runner;
mod sampling;
mod scheduler;
pub mod scripted;
mod sequence;
mod stats;

pub use device::{Engine, Limits, SubmitError};
pub use job::{Finish, Job, Step};
pub use runner::{Draw, Row, RunError, Runner};
pub use sampling::Sampling;
pub use stats::Stats;

#[cfg(test)]
mod tests;
