//! Answers whose parts are addressed, as Functionary 2 and 3.2 write them: text to `all`, arguments to a tool.

use super::{Answer, Ended, Program, Style};
use crate::chat::output::tools::{functionary, functionary_v2};

/// How a generation addresses its parts.
pub struct Recipients {
    /// What the prompt has written before the first recipient.
    open: &'static str,
    /// The recipient of text, as it follows that.
    all: &'static str,
    /// Drops what sets off another part that is text.
    style: Style,
}

/// `>>>all\n`.
pub static V3: Recipients =
    Recipients { open: functionary::OPEN, all: "all\n", style: Style { drops: &[">>>all\n"], ends: &[] } };

/// [`functionary_v2::TEXT`].
pub static V2: Recipients = Recipients {
    open: functionary_v2::RECIPIENT,
    all: "all\n<|content|>",
    style: Style { drops: &[functionary_v2::TEXT], ends: &[] },
};

impl Answer {
    /// The program of dialects that write a recipient before each part.
    pub fn by_recipients(self, recipients: &'static Recipients) -> Program {
        let answer = self.styled(&recipients.style);
        Box::pin(async move {
            // The prompt has written the first mark.
            if !answer.input.eat(recipients.all).await {
                answer.call(recipients.open).await;
            }
            answer.text(Ended::Thought).await;
        })
    }
}
