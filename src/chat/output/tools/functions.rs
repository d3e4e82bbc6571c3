//! Tags for the function and each parameter; the outer tag is often left out.
//!
//! `<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>`

use super::{End, NAME, NotACall, Region, Rules};
use crate::chat::{Tool, ToolCall, dialect::Functions};

impl Functions {
    /// Reads what follows a mark, which is the tag around calls or a function's own.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let wrapped = region.is_opened_by(self.all[0]);
        if wrapped {
            region.expect("<function=").await?;
        }
        loop {
            self.function(region).await?;
            input.skip_space().await;
            // Several functions may share one outer tag.
            if !wrapped || !input.eat("<function=").await {
                break;
            }
        }
        if !input.eat(self.all[1]).await {
            input.rewind();
        }
        Ok(())
    }

    /// From the function's name on.
    async fn function(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let name = input.word(|char| char != '>' && char != '\n' && char != '<', NAME).await.ok_or(NotACall)?;
        if !input.eat(">").await {
            return Err(NotACall);
        }
        let mut arguments = region.call(name.trim())?;
        input.skip_space().await;
        if input.is_next("{").await {
            arguments.object(&[self.all[1]]).await?;
            input.skip_space().await;
            let closed = input.eat("</function>").await;
            input.pin();
            return if closed { Ok(()) } else { Err(NotACall) };
        }
        loop {
            input.skip_space().await;
            if input.eat("<parameter=").await {
                let key = input.word(|char| char != '>' && char != '\n', NAME).await.ok_or(NotACall)?;
                if !input.eat(">").await {
                    return Err(NotACall);
                }
                let before = ["<parameter=", "</function>", self.all[1]];
                let end = End { trim: !self.newline.is_empty(), ..End::before(&["</parameter>"], &before) };
                arguments.text(key.trim(), end).await?;
            } else if input.eat("</function>").await || input.is_next(self.all[1]).await {
                arguments.end();
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
    }

    /// One call.
    pub(super) fn render(&self, call: &ToolCall) -> String {
        let [open, close] = self.all;
        let newline = self.newline;
        let mut text = format!("{open}\n<function={}>\n", call.name);
        for (name, value) in &call.arguments {
            text += &format!("<parameter={name}>{newline}{}{newline}</parameter>\n", self.spelling.text(value));
        }
        format!("{text}</function>\n{close}")
    }

    /// What [`Functions::render`] writes.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let [open, close] = self.all;
        let newline = self.newline;
        let head = rules.literal(&format!("{open}\n<function={}>\n", tool.name));
        let parameters = rules.arguments(tool, self.spelling, &format!("{newline}</parameter>\n"), |name| {
            format!("<parameter={name}>{newline}")
        });
        format!("{head} {parameters} {}", rules.literal(&format!("</function>\n{close}")))
    }
}
