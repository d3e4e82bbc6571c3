//! The name and JSON, in a block of code or not, between DeepSeek's special tokens. Both are read.
//!
//! ``<call>function<separator>f\n```json\n{"x": 1}\n```<end>``, `<call>f<separator>{"x": 1}<end>`

use super::{NAME, NotACall, Region, Rules, object::dumps};
use crate::chat::{Tool, ToolCall, dialect::Deepseek};

impl Deepseek {
    /// Reads calls behind the mark around all of them, or behind a call's own.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let mut begun = self.call.iter().any(|mark| region.is_opened_by(mark));
        loop {
            region.input.skip_space().await;
            if begun || eat(region, self.call).await {
                self.one(region).await?;
                begun = false;
            } else if eat(region, self.close).await {
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
    }

    /// One call, behind the mark that begins it.
    async fn one(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let word = || input.word(|char| !"<`{\n".contains(char), NAME);
        input.skip_space().await;
        let first = word().await.ok_or(NotACall)?;
        if !eat(region, self.separator).await {
            return Err(NotACall);
        }
        input.skip_space().await;
        let name = if input.is_next("{").await { first } else { word().await.unwrap_or(first) };
        input.skip_space().await;
        let fenced = input.eat("```").await;
        input.eat("json").await;
        input.skip_space().await;
        let mut ends = [self.end, self.close, self.call].concat();
        ends.extend(fenced.then_some("```"));
        region.call_with_object(name.trim(), None, &ends).await?;
        input.skip_space().await;
        if fenced {
            input.eat("```").await;
            input.skip_space().await;
        }
        eat(region, self.end).await;
        // What follows may be text, and this no part of it.
        input.pin();
        Ok(())
    }

    /// What stands before the arguments of a call of this tool, and behind them.
    fn around(&self, name: &str) -> [String; 2] {
        let [call, separator, end] = [self.call[0], self.separator[0], self.end[0]];
        if self.fenced {
            [format!("{call}function{separator}{name}\n```json\n"), format!("\n```{end}")]
        } else {
            [format!("{call}{name}{separator}"), end.to_owned()]
        }
    }

    /// One call.
    pub(super) fn render(&self, call: &ToolCall) -> String {
        let [before, after] = self.around(&call.name);
        format!("{before}{}{after}", dumps(&call.arguments))
    }

    /// What [`Deepseek::render`] writes.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let [before, after] = self.around(&tool.name);
        format!("{} {} {}", rules.literal(&before), rules.json(&tool.parameters), rules.literal(&after))
    }
}

/// Takes the first of these that is next.
async fn eat(region: &Region, marks: &[&str]) -> bool {
    for mark in marks {
        if region.input.eat(mark).await {
            return true;
        }
    }
    false
}
