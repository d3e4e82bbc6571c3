//! Python's methods of strings, lists and dicts.

use minijinja::{Error, State, Value};

/// Calls a method that minijinja's values do not have.
pub(super) fn call(state: &mut State, value: &Value, method: &str, arguments: &[Value]) -> Result<Value, Error> {
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
}
