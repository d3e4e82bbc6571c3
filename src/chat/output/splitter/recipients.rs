//! Answers whose parts are addressed, as Functionary 2 and 3.2 write them: text to `all`, arguments to a tool.

use std::sync::Arc;

use super::{Ended, Reading};
use crate::chat::dialect::Recipients;

impl Reading {
    /// Reads a recipient before each part.
    pub(super) async fn by_recipients(self: &Arc<Reading>, recipients: &Recipients) {
        // The prompt has written the first mark.
        if !self.input.eat(recipients.all).await {
            self.call(recipients.open).await;
        }
        self.text(Ended::Thought).await;
    }
}
