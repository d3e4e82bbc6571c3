//! An answer in the terminal: reasoning dim, each tool call on a line. Where the output is no terminal, reasoning is left
//! out, so that a pipe gets the answer.

use std::io::{IsTerminal, Write, stdout};

use mettle::chat::{Event, ToolEvent};

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The page, and what its last event was.
pub struct Page {
    terminal: bool,
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
        Page { terminal: stdout().is_terminal(), last: Last::Nothing }
    }

    /// Shows what this event adds.
    pub fn show(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::Reasoning(text) if self.terminal => {
                let start = self.separator(Last::Reasoning);
                print!("{start}{DIM}{text}{PLAIN}");
            }
            Event::Text(text) => {
                let start = self.separator(Last::Text);
                print!("{start}{text}");
            }
            Event::ToolCall(ToolEvent::Begun { name, .. }) => {
                // Every call begins a line.
                let start = if self.last == Last::Nothing { "" } else { "\n" };
                self.last = Last::Call;
                print!("{start}{name}(");
            }
            Event::ToolCall(ToolEvent::Arguments { fragment, .. }) => print!("{fragment}"),
            Event::ToolCall(ToolEvent::Ended { .. }) => print!(")"),
            _ => return Ok(()),
        }
        stdout().flush()
    }

    /// Ends the last line.
    pub fn end(&self) -> std::io::Result<()> {
        println!();
        stdout().flush()
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
