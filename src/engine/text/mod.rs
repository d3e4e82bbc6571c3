//! Text generation, one kind of instance: a [`Job`] of token ids is answered with [`Step`]s.
//!
//! The scheduler gives a job a row, starts it from the longest remembered prefix, prefills it chunk by chunk and decodes
//! all rows together, prompts and answers in one pass. A model is anything that implements [`Runner`]. A job may have a
//! [`Guide`] that says which tokens may come next; it thinks on threads of its own while the device computes.

mod drawn;
mod guide;
mod guides;
mod job;
mod limits;
mod penalties;
mod prefix;
mod runner;
mod sampling;
mod scheduler;
mod sequence;

pub use drawn::{Accepted, Drawn, Logprobs, MOST_TOP};
pub use guide::{Advice, Guide};
pub use guides::Pending;
pub use job::{Finish, Job, Media, Step, TokenPrompt};
pub use limits::Limits;
pub use penalties::{Adjustment, Penalties};
pub use runner::{Draw, Row, Runner, Tokens};
pub use sampling::{Dry, Sampling};
pub use scheduler::Scheduler;

use crate::engine::{
    device::{Device, Loading},
    instance::{AtOnce, Loader, at_once},
};

/// Begins to load a text model. `loader` makes the loader of its runner, on the device thread.
pub fn load<L>(device: &Device, limits: Limits, loader: impl FnOnce() -> L + Send + 'static) -> Loading<Job, L::Error>
where
    L: Loader + 'static,
    L::Output: Runner + 'static,
    L::Error: Send,
{
    device
        .load(limits.capacity(), move |counters| loader().then(move |runner| Scheduler::new(runner, limits, counters)))
}

/// Begins to load a text model in one step.
pub fn load_at_once<R, E, F>(device: &Device, limits: Limits, load_runner: F) -> Loading<Job, E>
where
    R: Runner + 'static,
    E: Send + 'static,
    F: FnOnce() -> Result<R, E> + Send + 'static,
{
    load(device, limits, move || -> AtOnce<F> { at_once(load_runner) })
}
