//! Answers whose parts are addressed, as Functionary 3.2 writes them: text to `all`, arguments to a tool.

use super::{Answer, Ended, Program, Style};
use crate::chat::tools::functionary::OPEN;

static STYLE: Style = Style { reopens: false, drops: &[">>>all\n"], ends: &[] };

impl Answer {
    /// The program of dialects that write `>>>`, a recipient and a newline before each part.
    pub fn by_recipients(self) -> Program {
        let answer = self.styled(&STYLE);
        Box::pin(async move {
            // The prompt has written the first mark.
            if !answer.input.eat("all\n").await {
                answer.call(OPEN).await;
            }
            answer.text(Ended::Thought).await;
        })
    }
}
