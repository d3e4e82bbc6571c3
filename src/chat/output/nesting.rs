//! How deep in JSON a text is that comes in pieces, and what would close it.

/// Reads valid JSON that need not be complete.
#[derive(Debug, Default)]
pub(in crate::chat::output) struct Nesting {
    open: Vec<char>,
    in_string: bool,
    escaped: bool,
    last: Option<char>,
}

impl Nesting {
    /// More of the text.
    pub(in crate::chat::output) fn read(&mut self, piece: &str) {
        for char in piece.chars() {
            match char {
                _ if self.escaped => self.escaped = false,
                '\\' if self.in_string => self.escaped = true,
                '"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                '{' => self.open.push('}'),
                '[' => self.open.push(']'),
                '}' | ']' => drop(self.open.pop()),
                _ => {}
            }
            self.last = Some(char);
        }
    }

    /// What makes it complete. Keys and commas come together with what follows them, so none is left dangling.
    pub(in crate::chat::output) fn closing(&self) -> String {
        let mut text = String::new();
        match self.last {
            None => text.push_str("{}"),
            _ if self.in_string => text.push('"'),
            _ => {}
        }
        text.extend(self.open.iter().rev());
        text
    }
}
