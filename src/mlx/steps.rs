//! Long work on the device in steps, so that whoever else uses it has a turn between them: loading, and reading texts.

use std::{
    future::poll_fn,
    mem,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::Error;

/// Work that ends a step with [`pause`]. Between steps it is kept, or dropped for good.
pub type Steps<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// Ends a step. The next one goes on behind it.
pub async fn pause() {
    let mut paused = false;
    let once = |_: &mut Context| if mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending };
    poll_fn(once).await;
}

/// Does the next step. `None` where there are more.
///
/// # Errors
/// The work's own.
pub fn step<T>(work: &mut Steps<'_, T>) -> Result<Option<T>, Error> {
    // Nobody wakes it: it is asked again in its next turn.
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.map(Some),
        Poll::Pending => Ok(None),
    }
}
