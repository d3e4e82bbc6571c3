//! What went wrong in a model's code, as a text.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// A model's computation that failed. What it was for fails with this text; the process goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RunError(pub String);

/// Runs code that may panic. A panic becomes an error that opens with `who`, such as "the model".
pub fn guarded<T>(who: &str, run: impl FnOnce() -> T) -> Result<T, RunError> {
    let outcome = catch_unwind(AssertUnwindSafe(run));
    outcome.map_err(|panic| RunError(format!("{who} panicked: {}", panic_text(&*panic))))
}

/// The text of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}
