//! Answers in channels, as gpt-oss writes them (OpenAI's harmony format): every message has a header that says to whom
//! it goes, and in which channel.
//!
//! `<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>`

use std::sync::Arc;

use super::{Reading, Region, tools};
use crate::chat::Phase;

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";

/// What a message's text and its header run up to; the first three begin a header or stand in one.
const MARKS: &[&str] = &[START, CHANNEL, MESSAGE, "<|call|>", "<|return|>", "<|end|>"];

/// What ends a message to an interpreter.
const ENDS: &[&str] = &["<|call|>", "<|return|>", "<|end|>"];

/// What a message says of itself.
#[derive(Debug, Default)]
struct Header {
    channel: String,
    recipient: Option<String>,
}

impl Reading {
    /// Reads messages in channels. The prompt's end has begun a message's header, or its text already.
    pub(super) async fn by_channels(self: &Arc<Reading>) {
        let mut next = match self.output.phase() {
            Phase::Text if self.input.is_next(" to=").await => Some(START),
            _ => self.words().await,
        };
        while let Some(mark) = next {
            let header = if ENDS.contains(&mark) { None } else { self.header(mark).await };
            next = match header {
                Some(header) => self.message_of(header).await,
                None => {
                    self.output.enter(Phase::Text);
                    self.words().await
                }
            };
        }
    }

    /// Text up to a mark, which is returned.
    async fn words(&self) -> Option<&'static str> {
        let found = self.input.until(MARKS, |text| self.output.emit(text)).await?;
        Some(MARKS[found])
    }

    /// A header from this mark on; `None` where no message follows it.
    async fn header(&self, begins: &'static str) -> Option<Header> {
        let mut header = Header::default();
        let mut part = begins;
        let mut words = String::new();
        while part != MESSAGE {
            let (text, found) = self.input.text_until(MARKS).await?;
            header.read(part, &text);
            words += &text;
            part = MARKS[found];
            if ENDS.contains(&part) {
                // More than a role or a channel, and it would get lost.
                if words.trim().contains(char::is_whitespace) {
                    self.output.enter(Phase::Text);
                    self.output.emit(&words);
                }
                return None;
            }
        }
        Some(header)
    }

    /// A message, and what follows it up to the next mark.
    async fn message_of(self: &Arc<Reading>, header: Header) -> Option<&'static str> {
        let phase = if header.channel == "analysis" { Phase::Reasoning } else { Phase::Text };
        let region = Region::new(self, Some(MESSAGE));
        match header.recipient.filter(|name| region.may_call(name)) {
            Some(name) => {
                self.input.pin();
                if tools::message(&region, &name, ENDS).await.is_err() {
                    self.give_up(self.output.calls());
                }
                self.input.unpin();
            }
            None => self.output.enter(phase),
        }
        self.words().await
    }
}

impl Header {
    /// The text behind one of the header's marks.
    fn read(&mut self, mark: &str, text: &str) {
        let word = |text: &str| text.split(|char: char| char.is_whitespace() || char == '<').next().map(str::to_owned);
        if mark == CHANNEL {
            self.channel = word(text.trim_start()).unwrap_or_default();
        }
        if let Some((_, recipient)) = text.split_once("to=") {
            self.recipient = word(recipient);
        }
    }
}
