//! Answers that are a thought and actions, as UI-TARS writes them.
//!
//! `Thought: The button is there.\nAction: click(start_box='(100,200)')`

use std::sync::Arc;

use super::{Ended, Reading};
use crate::chat::Phase;

/// What a thought begins with.
const THOUGHTS: &[&str] = &["Thought:", "Reflection:"];

impl Reading {
    /// Reads an answer of `Thought:` and `Action:`.
    pub(super) async fn by_actions(self: &Arc<Reading>) {
        let mut thinks = self.output.phase() == Phase::Reasoning;
        self.input.pin();
        self.input.skip_space().await;
        for mark in THOUGHTS {
            thinks = thinks || self.input.eat(mark).await;
        }
        if thinks {
            self.input.unpin();
            self.think().await;
        } else {
            self.input.rewind();
            self.input.unpin();
        }
        self.text(Ended::Thought).await;
    }

    /// To the line of the action.
    async fn think(self: &Arc<Reading>) {
        self.output.enter(Phase::Reasoning);
        let found = self.input.until(&["\nAction:"], |text| self.output.emit(text)).await;
        self.output.enter(Phase::Text);
        if found.is_some() && !self.call("Action:").await {
            self.output.emit("Action:");
        }
    }
}
