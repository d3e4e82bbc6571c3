//! Messages to tools, each a recipient's name and JSON, as Functionary writes them. `splitter::recipients` reads text,
//! which goes to the recipient `all`.
//!
//! `>>>f\n{"x": 1}`

use super::{NAME, NotACall, Region, Rules, harmony, object::dumps};
use crate::chat::{Tool, ToolCall, dialect::Recipient};

impl Recipient {
    /// Reads messages. What begins one may be written twice; where it ends code it is taken with that.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        loop {
            let mut open = 0;
            while open < self.opens.len() {
                open = if input.eat(self.opens[open]).await { 0 } else { open + 1 };
            }
            let name = input.word(|char| !char.is_whitespace() && !"{<>".contains(char), NAME).await.ok_or(NotACall)?;
            if !region.may_call(&name) || !input.eat(self.begin).await {
                return Err(NotACall);
            }
            match harmony::message(region, &name, self.ends).await? {
                Some(end) if self.opens.contains(&self.ends[end]) => {}
                _ => return Ok(()),
            }
        }
    }

    /// One call.
    pub(super) fn render(&self, call: &ToolCall, index: usize) -> String {
        let open = if self.begun && index > 0 { "" } else { self.opens[0] };
        format!("{open}{}{}{}", call.name, self.begin, dumps(&call.arguments))
    }

    /// What [`Recipient::render`] writes.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let name = format!("{}{}", tool.name, self.begin);
        let head = if self.begun {
            format!("({})? {}", rules.literal(self.opens[0]), rules.literal(&name))
        } else {
            rules.literal(&format!("{}{name}", self.opens[0]))
        };
        format!("{head} {}", rules.json(&tool.parameters))
    }
}
