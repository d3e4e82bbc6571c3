//! Answers that are several messages, each with a header that says what it is: Muse and Inkling.

use std::sync::Arc;

use super::{Ended, Reading};
use crate::chat::{
    Phase,
    dialect::{MessageKind, Messages},
};

/// Bytes of a header.
const HEADER: usize = 256;

impl Reading {
    /// Reads messages.
    pub(super) async fn by_messages(self: &Arc<Reading>, messages: &Messages) {
        // The prompt's end may have begun the text already.
        if self.output.phase() == Phase::Reasoning {
            self.passage(Phase::Reasoning).await;
        } else {
            let opened = self.opened(messages.open).await;
            if !self.one_message(messages).await {
                self.output.emit(if opened { messages.open } else { "" });
                self.text(Ended::Thought).await;
            }
        }
        while self.input.peek().await.is_some() {
            self.input.skip_space().await;
            let opened = self.opened(messages.open).await;
            if self.one_message(messages).await {
                continue;
            }
            if opened && self.input.met_end() {
                self.input.discard();
            } else {
                self.passage(Phase::Text).await;
            }
        }
    }

    /// Takes what begins a message, also where it is written again after a thought that was left out.
    async fn opened(&self, mark: &str) -> bool {
        let mut opened = false;
        while self.input.eat(mark).await {
            opened = true;
        }
        opened
    }

    /// One message from its header on; nothing is taken where there is no header.
    async fn one_message(self: &Arc<Reading>, messages: &Messages) -> bool {
        self.input.pin();
        let header = self.input.word(|char| char != '<' && char != '\n', HEADER).await.unwrap_or_default();
        for (mark, kind) in messages.kinds {
            if self.input.eat(mark).await {
                self.input.unpin();
                self.body(mark, *kind, &header).await;
                return true;
            }
        }
        self.input.rewind();
        self.input.unpin();
        // The end of an answer that was cut.
        if self.input.met_end() && header.starts_with(" to=") {
            self.input.discard();
        }
        false
    }

    async fn body(self: &Arc<Reading>, mark: &str, kind: MessageKind, header: &str) {
        match kind {
            MessageKind::Thought => self.passage(Phase::Reasoning).await,
            MessageKind::ThoughtIf(recipient) if header.contains(recipient) => self.passage(Phase::Reasoning).await,
            // What is said to the user is no call.
            MessageKind::ThoughtIf(_) if header.contains("to=user") => {
                self.output.forbid_calls(true);
                self.passage(Phase::Text).await;
                self.output.forbid_calls(false);
            }
            MessageKind::Text | MessageKind::ThoughtIf(_) => self.passage(Phase::Text).await,
            MessageKind::Call => {
                if !self.call(mark).await {
                    self.output.emit(header);
                    self.output.emit(mark);
                }
                self.passage(Phase::Text).await;
            }
        }
    }
}
