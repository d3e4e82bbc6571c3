//! A call as a name and pairs of tags, one around a key and one around its value: GLM, and what learned from it.
//!
//! `<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n</tool_call>`

use super::{Arguments, End, NAME, NotACall, Region, Rules, object};
use crate::chat::{
    Tool, ToolCall,
    dialect::{Pairs, Spelling},
};

/// Reads what follows a mark, in those tags that the mark is one of.
pub(super) async fn read(pairs: &[Pairs], region: &Region) -> Result<(), NotACall> {
    let opens = |pairs: &&Pairs| {
        let all = pairs.all.map(|[open, _]| open);
        region.is_opened_by(pairs.call[0]) || all.is_some_and(|open| region.is_opened_by(open))
    };
    pairs.iter().find(opens).ok_or(NotACall)?.read(region).await
}

impl Pairs {
    async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let Some([_, close]) = self.all else { return self.one(region).await };
        if region.is_opened_by(self.call[0]) {
            self.one(region).await?;
            input.pin();
            input.skip_space().await;
            if !input.eat(close).await {
                input.rewind();
            }
            return Ok(());
        }
        while region.one_of(&[close, self.call[0]]).await? == 1 {
            self.one(region).await?;
        }
        Ok(())
    }

    /// One call, from its name on.
    async fn one(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        input.skip_space().await;
        if input.is_next("{").await {
            object::call(region).await?;
            input.skip_space().await;
            return if input.eat(self.close()).await { Ok(()) } else { Err(NotACall) };
        }
        let name = input.word(|char| !char.is_whitespace() && !"<>{}()".contains(char), NAME).await.ok_or(NotACall)?;
        input.skip_space().await;
        input.eat(self.head.trim()).await;
        input.skip_space().await;
        // Only what follows makes the name certain.
        let is_object = input.is_next("{").await;
        if !is_object && !input.is_next(self.key[0]).await && !input.is_next(self.close()).await {
            return Err(NotACall);
        }
        let mut arguments = region.call(&name)?;
        if is_object {
            arguments.object(&[self.close()]).await?;
            input.skip_space().await;
            return if input.eat(self.close()).await { Ok(()) } else { Err(NotACall) };
        }
        while region.one_of(&[self.close(), self.key[0]]).await? == 1 {
            self.pair(region, &mut arguments).await?;
        }
        arguments.end();
        Ok(())
    }

    /// What closes a call. White space before it is no part of it where it is read.
    fn close(&self) -> &'static str {
        self.call[1].trim_start()
    }

    async fn pair(&self, region: &Region, arguments: &mut Arguments) -> Result<(), NotACall> {
        let input = &region.input;
        let key = input.word(|char| char != '<', NAME).await.ok_or(NotACall)?;
        if !input.eat(self.key[1]).await {
            return Err(NotACall);
        }
        input.skip_space().await;
        let mut is_string = None;
        if let Some([open, close]) = self.kind
            && input.eat(open).await
        {
            let kind = input.word(|char| char != '<', NAME).await.ok_or(NotACall)?;
            is_string = Some(kind.trim() == "string");
            if !input.eat(close).await {
                return Err(NotACall);
            }
            input.skip_space().await;
        }
        if !input.eat(self.value[0]).await {
            return Err(NotACall);
        }
        let key = key.trim();
        let marks = &[self.value[1]];
        let before = [self.key[0], self.close()];
        let end = End::before(marks, &before);
        match is_string {
            Some(is_string) => arguments.stated(key, end, is_string).await?,
            None => arguments.text(key, end).await?,
        };
        Ok(())
    }

    /// One call.
    pub(super) fn render(&self, call: &ToolCall) -> String {
        let [key, key_end] = self.key;
        let [value, value_end] = self.value;
        let pair = |(name, argument): (&String, &serde_json::Value)| {
            let argument = Spelling::Json.text(argument);
            format!("{key}{name}{key_end}{}{value}{argument}{value_end}{}", self.gap, self.tail)
        };
        let pairs: String = call.arguments.iter().map(pair).collect();
        let [open, close] = self.call;
        format!("{open}{}{}{pairs}{close}", call.name, self.head)
    }

    /// What [`Pairs::render`] writes.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let open = rules.literal(&format!("{}{}{}", self.call[0], tool.name, self.head));
        let end = format!("{}{}", self.value[1], self.tail);
        let pairs = rules.arguments(tool, Spelling::Json, &end, |name| {
            format!("{}{name}{}{}{}", self.key[0], self.key[1], self.gap, self.value[0])
        });
        format!("{open} {pairs} {}", rules.literal(self.call[1]))
    }
}
