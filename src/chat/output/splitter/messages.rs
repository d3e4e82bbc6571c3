//! Answers that are several messages, each with a header that says what it is: Muse and Inkling.

use super::{Answer, Calls, Ended, Phase, Program, Style};

/// Bytes of a header.
const HEADER: usize = 256;

/// How a family's messages look.
pub struct Messages {
    /// What begins a message, which the prompt's end has written before the first.
    pub open: &'static str,
    /// Marks that end a header.
    pub kinds: &'static [(&'static str, Kind)],
    pub style: Style,
}

/// What follows a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Thought,
    Text,
    /// A call, which its mark opens.
    Call,
    /// A thought where the header has this in it, else text.
    ThoughtIf(&'static str),
}

impl Answer {
    /// The program of dialects that write messages.
    pub fn by_messages(self, messages: &'static Messages) -> Program {
        let answer = self.styled(&messages.style);
        Box::pin(async move {
            // The prompt's end may have begun the text already.
            if answer.output.phase() == Phase::Reasoning {
                answer.passage(Phase::Reasoning).await;
            } else {
                let opened = answer.opened(messages.open).await;
                if !answer.one_message(messages).await {
                    answer.output.say(if opened { messages.open } else { "" });
                    answer.text(Ended::Thought).await;
                }
            }
            while answer.input.peek().await.is_some() {
                answer.input.skip_space().await;
                let opened = answer.opened(messages.open).await;
                if !answer.one_message(messages).await {
                    match opened && answer.input.met_end() {
                        true => answer.input.discard(),
                        false => answer.passage(Phase::Text).await,
                    }
                }
            }
        })
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
    async fn one_message(&self, messages: &Messages) -> bool {
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

    async fn body(&self, mark: &'static str, kind: Kind, header: &str) {
        match kind {
            Kind::Thought => self.passage(Phase::Reasoning).await,
            Kind::ThoughtIf(recipient) if header.contains(recipient) => self.passage(Phase::Reasoning).await,
            // What is said to the user is no call.
            Kind::ThoughtIf(_) if header.contains("to=user") => {
                let calls = Calls::new(&[], self.output.clone());
                Answer { calls, ..self.clone() }.passage(Phase::Text).await;
            }
            Kind::Text | Kind::ThoughtIf(_) => self.passage(Phase::Text).await,
            Kind::Call => {
                if !self.call(mark).await {
                    self.output.say(header);
                    self.output.say(mark);
                }
                self.passage(Phase::Text).await;
            }
        }
    }
}
