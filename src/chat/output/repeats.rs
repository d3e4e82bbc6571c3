//! Sees a call that an answer makes a second time. Calls of one answer are made without seeing each other's results, so
//! a weak model that may go on would make the same one over and over.

use crate::chat::ToolEvent;

/// Watches the calls of one answer.
#[derive(Debug, Default)]
pub(in crate::chat) struct Repeats {
    /// Names and arguments of the calls that were made, as they were written.
    made: Vec<(String, String)>,
    /// The call that is being written.
    name: String,
    arguments: String,
    /// Its events, as long as it may become one that was made.
    held: Vec<ToolEvent>,
}

/// The call that has ended is one that was made before.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::chat) struct Repeated;

impl Repeats {
    /// The events that are certain to belong to another call than those that were made.
    pub(in crate::chat) fn push(&mut self, event: ToolEvent) -> Result<Vec<ToolEvent>, Repeated> {
        match &event {
            ToolEvent::Begun { name, .. } => {
                self.name.clone_from(name);
                self.arguments.clear();
            }
            ToolEvent::Arguments { fragment, .. } => self.arguments.push_str(fragment),
            ToolEvent::Ended { .. } => {
                let call = (std::mem::take(&mut self.name), std::mem::take(&mut self.arguments));
                if self.made.contains(&call) {
                    self.held.clear();
                    return Err(Repeated);
                }
                self.made.push(call);
                self.held.push(event);
                return Ok(self.finish());
            }
        }
        self.held.push(event);
        let may_repeat =
            |(name, arguments): &(String, String)| *name == self.name && arguments.starts_with(&self.arguments);
        Ok(if self.made.iter().any(may_repeat) { Vec::new() } else { self.finish() })
    }

    /// What was held of a call that goes on no more.
    pub(in crate::chat) fn finish(&mut self) -> Vec<ToolEvent> {
        std::mem::take(&mut self.held)
    }
}
