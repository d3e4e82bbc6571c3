//! A call that is being read: where it may stand, and its arguments, written as JSON while they come.

mod arguments;
mod misplaced;
mod region;

pub(in crate::chat::output) use arguments::{Arguments, End};
pub(in crate::chat::output) use region::Region;

use super::json;

/// The text at hand is no call. What was read of it since the last call is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chat::output) struct NotACall;

impl From<json::NotJson> for NotACall {
    fn from(_: json::NotJson) -> NotACall {
        NotACall
    }
}
