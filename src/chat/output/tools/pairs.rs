//! A call as a name and pairs of tags, one around a key and one around its value: GLM, and what learned from it.

use super::{Arguments, End, NotACall, Region, Rules, Spelling, object};
use crate::chat::{Tool, ToolCall};

/// Bytes of a name or a key.
const NAME: usize = 256;

/// The tags, and the white space that the family's template sets around them.
pub(super) struct Pairs {
    pub open: &'static str,
    /// After the name.
    pub head: &'static str,
    pub key: [&'static str; 2],
    /// Between key and value.
    pub gap: &'static str,
    /// Around the value's type, which some write between the two.
    pub kind: Option<[&'static str; 2]>,
    pub value: [&'static str; 2],
    /// After a value.
    pub tail: &'static str,
    pub close: &'static str,
    /// Tags around all calls of a turn, which may be missing.
    pub all: Option<[&'static str; 2]>,
}

impl Pairs {
    /// Reads what follows `open`, where the format's first mark is this or the tag around all.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let Some([_, close]) = self.all else { return self.call(region).await };
        if region.opened_by > 0 {
            self.call(region).await?;
            input.pin();
            input.skip_space().await;
            if !input.eat(close).await {
                input.rewind();
            }
            return Ok(());
        }
        loop {
            input.skip_space().await;
            if input.eat(self.open).await {
                self.call(region).await?;
            } else if input.eat(close).await {
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
    }

    /// One call, from its name on.
    async fn call(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        input.skip_space().await;
        if input.is_next("{").await {
            object::call(region).await?;
            input.skip_space().await;
            return if input.eat(self.close).await { Ok(()) } else { Err(NotACall) };
        }
        let name = input.word(|char| !char.is_whitespace() && !"<>{}()".contains(char), NAME).await.ok_or(NotACall)?;
        input.skip_space().await;
        input.eat(self.head.trim()).await;
        input.skip_space().await;
        // Only what follows makes the name certain.
        let is_object = input.is_next("{").await;
        if !is_object && !input.is_next(self.key[0]).await && !input.is_next(self.close).await {
            return Err(NotACall);
        }
        let mut arguments = region.call(&name)?;
        if is_object {
            arguments.object().await?;
            input.skip_space().await;
            return if input.eat(self.close).await { Ok(()) } else { Err(NotACall) };
        }
        loop {
            input.skip_space().await;
            if input.eat(self.key[0]).await {
                self.pair(region, &mut arguments).await?;
            } else if input.eat(self.close).await {
                arguments.end();
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
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
        let (key, marks) = (key.trim(), &[self.value[1]]);
        let end = End::tag(marks);
        match is_string {
            Some(is_string) => arguments.stated(key, end, is_string).await?,
            None => arguments.text(key, end).await?,
        };
        Ok(())
    }

    pub(super) fn render(&self, call: &ToolCall) -> String {
        let [key, key_end] = self.key;
        let [value, value_end] = self.value;
        let pair = |(name, argument): (&String, &serde_json::Value)| {
            let argument = Spelling::Json.text(argument);
            format!("{key}{name}{key_end}{}{value}{argument}{value_end}{}", self.gap, self.tail)
        };
        let pairs: String = call.arguments.iter().map(pair).collect();
        format!("{}{}{}{pairs}{}", self.open, call.name, self.head, self.close)
    }

    pub(super) fn grammar(&self, rules: &mut Rules, tool: &Tool) -> String {
        let open = rules.literal(&format!("{}{}{}", self.open, tool.name, self.head));
        let end = format!("{}{}", self.value[1], self.tail);
        let pairs = rules.arguments(tool, Spelling::Json, &end, |name| {
            format!("{}{name}{}{}{}", self.key[0], self.key[1], self.gap, self.value[0])
        });
        format!("{open} {pairs} {}", rules.literal(self.close))
    }
}
