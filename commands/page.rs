//! An answer in the terminal: reasoning dim, each tool call on a line, and no control characters of the model's. Where
//! the output is no terminal, reasoning is left out and all else stays as it is, so that a pipe gets the answer.

use std::{
    borrow::Cow,
    io::{IsTerminal, stdout},
};

use mettle::chat::{Event, ToolEvent};

use crate::terminal;

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The page, and what its last event was.
pub struct Page {
    terminal: bool,
    colours: bool,
    last: Last,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Reasoning,
    Text,
    Call,
}

impl Page {
    /// An empty page on standard output.
    pub fn new() -> Page {
        Page { terminal: stdout().is_terminal(), colours: terminal::has_colours(), last: Last::Nothing }
    }

    /// Shows what this event adds.
    pub fn show(&mut self, event: &Event) -> std::io::Result<()> {
        let text = match event {
            Event::Reasoning(text) if self.terminal => {
                let start = self.separator(Last::Reasoning);
                let text = self.shown(text);
                if self.colours { format!("{start}{DIM}{text}{PLAIN}") } else { format!("{start}{text}") }
            }
            Event::Text(text) => {
                let start = self.separator(Last::Text);
                format!("{start}{}", self.shown(text))
            }
            Event::ToolCall(ToolEvent::Begun { name, .. }) => {
                // Every call begins a line.
                let start = if self.last == Last::Nothing { "" } else { "\n" };
                self.last = Last::Call;
                format!("{start}{}(", self.shown(name))
            }
            Event::ToolCall(ToolEvent::Arguments { fragment, .. }) => self.shown(fragment).into_owned(),
            Event::ToolCall(ToolEvent::Ended { .. }) => ")".to_owned(),
            _ => return Ok(()),
        };
        terminal::print(&text)
    }

    /// Ends the last line.
    pub fn end(&self) -> std::io::Result<()> {
        terminal::print("\n")
    }

    fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.terminal { terminal::plain(text) } else { Cow::Borrowed(text) }
    }

    /// What stands between the last event's text and the next one's.
    fn separator(&mut self, next: Last) -> &'static str {
        let before = std::mem::replace(&mut self.last, next);
        match (before, next) {
            (Last::Reasoning, Last::Text) => "\n\n",
            (Last::Call | Last::Text, Last::Reasoning) | (Last::Call, Last::Text) => "\n",
            _ => "",
        }
    }
}
