//! A call as a tag with the name as an attribute, and a tag inside for each parameter.
//!
//! `<invoke name="f">\n<parameter name="x">1</parameter>\n</invoke>`

use super::{Arguments, End, NAME, NotACall, Parameter, Region, Rules};
use crate::chat::{
    Tool, ToolCall,
    dialect::{Tags, Typed},
};

impl Tags {
    /// Reads what follows a mark, which is one around all calls or a call's own.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let Some([_, close]) = self.all.iter().find(|[open, _]| region.is_opened_by(open)) else {
            self.one(region).await?;
            return self.stray(region).await;
        };
        while region.one_of(&[close, self.call[0]]).await? == 1 {
            self.one(region).await?;
        }
        Ok(())
    }

    /// The tag after all calls where the one before them was left out.
    async fn stray(&self, region: &Region) -> Result<(), NotACall> {
        region.input.skip_space().await;
        for [_, close] in self.all {
            if region.input.eat(close).await {
                return Ok(());
            }
        }
        region.input.rewind();
        Ok(())
    }

    /// One call, from its attributes on.
    async fn one(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let name = attributes(region).await?.name.ok_or(NotACall)?;
        let mut arguments = region.call(name.trim())?;
        input.skip_space().await;
        if input.is_next("{").await {
            arguments.object(&[self.call[1]]).await?;
            input.skip_space().await;
            let closed = input.eat(self.call[1]).await;
            input.pin();
            return if closed { Ok(()) } else { Err(NotACall) };
        }
        while region.one_of(&[self.call[1], self.parameter[0]]).await? == 1 {
            self.argument(region, &mut arguments).await?;
        }
        arguments.end();
        Ok(())
    }

    async fn argument(&self, region: &Region, arguments: &mut Arguments) -> Result<(), NotACall> {
        let Attributes { name, string } = attributes(region).await?;
        let name = name.ok_or(NotACall)?;
        let close = self.parameter[1];
        let end = match self.verbatim {
            Some([open, end]) if region.input.eat(open).await => &format!("{end}{close}"),
            // What was cut may have been on its way there.
            Some([open, _]) if open.starts_with(&region.input.pending()) => return Err(NotACall),
            _ => close,
        };
        // The format goes on with another parameter or the end of the call.
        let another = format!("{} ", self.parameter[0]);
        let mut before = vec![another.as_str(), self.call[1]];
        before.extend(self.all.iter().map(|[_, close]| *close));
        let marks = [end];
        let end = End::before(&marks, &before);
        match string {
            Some(is_string) => arguments.stated(&name, end, is_string).await?,
            None => arguments.text(&name, end).await?,
        };
        Ok(())
    }

    /// One call.
    pub(super) fn render(&self, call: &ToolCall) -> String {
        let tag = self.render_tag(call);
        let Some(message) = &self.message else { return tag };
        let [before, after] = message.header;
        let [open, close] = self.all[0];
        // From behind the role on, which the prompt's end has written already.
        format!("{before}{}{after}{open}\n{tag}\n{close}", call.name)
    }

    fn render_tag(&self, call: &ToolCall) -> String {
        let [open, close] = self.parameter;
        let mut text = format!("{} name=\"{}\">{}", self.call[0], call.name, self.head);
        for (name, value) in &call.arguments {
            let kind = self.kind(value.is_string());
            let mut written = self.spelling.text(value);
            if let Some([begin, end]) = self.verbatim
                && value.is_string()
                && written.contains(['<', '&', '\n'])
            {
                written = format!("{begin}{written}{end}");
            }
            text += &format!("{open} name=\"{name}\"{kind}>{written}{close}{}", self.tail);
        }
        text + if call.arguments.is_empty() { self.empty } else { "" } + self.call[1]
    }

    fn kind(&self, is_string: bool) -> String {
        if self.typed == Typed::String { format!(" string=\"{is_string}\"") } else { String::new() }
    }

    /// What [`Tags::render`] writes.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let Some(message) = &self.message else { return self.tag_grammar(rules, tool) };
        let [before, after] = message.header;
        let [open, close] = self.all[0];
        // After a thought the role is still to be written.
        let role = rules.literal(message.role);
        let header = rules.literal(&format!("{before}{}{after}{open}\n", tool.name));
        format!("({role})? {header} {} {}", self.tag_grammar(rules, tool), rules.literal(&format!("\n{close}")))
    }

    fn tag_grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let mut text = rules.literal(&format!("{} name=\"{}\">{}", self.call[0], tool.name, self.head));
        for parameter in rules.parameters(tool) {
            let choices = self.choices(rules, &parameter);
            let choice = rules.rule(&choices.join(" | "));
            text += &if parameter.required { format!(" {choice}") } else { format!(" {choice}?") };
        }
        if !self.empty.is_empty() {
            text += &format!(" {}?", rules.literal(self.empty));
        }
        format!("{text} {}", rules.literal(self.call[1]))
    }

    /// The ways to write a parameter.
    fn choices(&self, rules: &mut Rules<'_>, parameter: &Parameter) -> Vec<String> {
        let end = format!("{}{}", self.parameter[1], self.tail);
        let head = |string: &str| format!("{} name=\"{}\"{string}>", self.parameter[0], parameter.name);
        match (self.typed, self.verbatim) {
            (Typed::No, None) => {
                let plain = rules.argument(&parameter.schema, self.spelling, &end);
                vec![format!("{} {plain}", rules.literal(&head("")))]
            }
            (Typed::No, Some([begin, finish])) => {
                let plain = rules.argument_but(&parameter.schema, self.spelling, begin, &end);
                let string = rules.string(&parameter.schema, &format!("{finish}{end}"));
                let string = string.map(|value| format!(" | {} {value}", rules.literal(begin)));
                vec![format!("{} ({plain}{})", rules.literal(&head("")), string.unwrap_or_default())]
            }
            (Typed::String, _) => {
                let string = rules.string(&parameter.schema, &end);
                let string = string.map(|value| format!("{} {value}", rules.literal(&head(&self.kind(true)))));
                let other = rules.no_string(&parameter.schema, self.spelling, &end);
                let other = other.map(|value| format!("{} {value}", rules.literal(&head(&self.kind(false)))));
                string.into_iter().chain(other).collect()
            }
        }
    }
}

#[derive(Debug, Default)]
struct Attributes {
    name: Option<String>,
    string: Option<bool>,
}

/// A tag's attributes, and its bracket.
async fn attributes(region: &Region) -> Result<Attributes, NotACall> {
    let input = &region.input;
    let mut attributes = Attributes::default();
    loop {
        input.skip_space().await;
        if input.eat(">").await {
            return Ok(attributes);
        }
        let key = input.word(|char| char.is_ascii_alphabetic() || "_-".contains(char), NAME).await.ok_or(NotACall)?;
        if !input.eat("=").await {
            return Err(NotACall);
        }
        let value = match input.peek().await.ok_or(NotACall)? {
            quote @ ('"' | '\'') => {
                input.next().await;
                let value = input.word(|char| char != quote && char != '\n', NAME).await.ok_or(NotACall)?;
                if input.next().await != Some(quote) {
                    return Err(NotACall);
                }
                value
            }
            _ => input.word(|char| !char.is_whitespace() && char != '>', NAME).await.ok_or(NotACall)?,
        };
        match key.as_str() {
            "name" => attributes.name = Some(value),
            "string" => attributes.string = Some(value == "true"),
            _ => {}
        }
    }
}
