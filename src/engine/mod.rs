//! Token ids and plain buffers in, token ids and plain buffers out. No text, no HTTP, no arrays.
//!
//! One thread of the process, the [`Device`], owns every loaded model and gives each its turns. A model of any kind is
//! an [`Instance`]; loading one is a [`Loader`], whose steps are turns as well. Callers hold a [`Handle`]: they
//! [`Handle::reserve`] places before they work on a request, and submit jobs to them. Text generation ([`text`]) is one
//! kind of instance, embeddings ([`EmbedScheduler`]) are another.

mod device;
mod embed;
mod failure;
mod handle;
mod instance;
mod places;
mod rounds;
pub mod scripted;
mod shared;
mod stats;
pub mod text;
mod thread;
mod token;
mod token_set;

pub use device::{Device, Loading, LoadingBoth};
pub use embed::{EmbedError, EmbedJob, EmbedScheduler, Encoder, EncoderScript, ScriptedEncoder};
pub use failure::{RunError, guarded};
pub use handle::{Handle, Health, Permit};
pub use instance::{AtOnce, End, Instance, LoadStep, Loader, Pace, Progress, at_once};
pub use places::{Capacity, Outcome, Place, SubmitError};
pub use rounds::LoadError;
pub use shared::Unshared;
pub use stats::{Counters, Stats, add, set};
pub use text::{
    Accepted, Adjustment, Advice, Draw, Drawn, Dry, Finish, Guide, Job, Limits, Logprobs, MOST_TOP, Media, Penalties,
    Pending, Row, Runner, Sampling, Step, TokenPrompt, Tokens,
};
pub use token::TokenId;
pub use token_set::TokenSet;

#[cfg(test)]
mod tests;
