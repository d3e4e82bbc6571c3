//! Answers that are a thought and actions, as UI-TARS writes them.
//!
//! `Thought: The button is there.\nAction: click(start_box='(100,200)')`

use super::{Answer, Ended, Phase, Program};

/// What a thought begins with.
const THOUGHTS: &[&str] = &["Thought:", "Reflection:"];

impl Answer {
    /// The program of dialects that write `Thought:` and `Action:`.
    pub fn by_actions(self) -> Program {
        Box::pin(async move {
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
        })
    }

    /// To the line of the action.
    async fn think(&self) {
        self.output.enter(Phase::Reasoning);
        let found = self.input.until(&["\nAction:"], |text| self.output.say(text)).await;
        self.output.enter(Phase::Text);
        if found.is_some() && !self.call("Action:").await {
            self.output.say("Action:");
        }
    }
}
