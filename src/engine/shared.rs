//! Two instances that share something, such as a model's weights: one loader makes both.

use std::{cell::RefCell, rc::Rc, time::Duration};

use super::instance::{LoadStep, Loader};

/// Waits on the device thread for what another loader makes.
pub(super) struct Awaited<T>(Rc<RefCell<Option<T>>>);

/// Where that loader puts it.
pub(super) struct Promise<T>(Rc<RefCell<Option<T>>>);

/// The loader that was to make it has failed, and has said why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what it shares with another model was not loaded")]
pub struct Unshared;

/// A loader and the way to end it.
pub(super) fn awaited<T>() -> (Promise<T>, Awaited<T>) {
    let cell = Rc::new(RefCell::new(None));
    (Promise(Rc::clone(&cell)), Awaited(cell))
}

impl<T> Promise<T> {
    pub fn keep(self, made: T) {
        *self.0.borrow_mut() = Some(made);
    }
}

impl<T> Loader for Awaited<T> {
    type Output = T;
    type Error = Unshared;

    fn step(&mut self, _: Duration) -> Result<LoadStep<T>, Unshared> {
        match self.0.borrow_mut().take() {
            Some(made) => Ok(LoadStep::Loaded(made)),
            None if Rc::strong_count(&self.0) == 1 => Err(Unshared),
            None => Ok(LoadStep::More(0.0)),
        }
    }
}
