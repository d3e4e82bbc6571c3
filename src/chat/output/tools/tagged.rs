//! A call as a tag with the name as an attribute, and a tag inside for each parameter.

use super::{Arguments, End, NotACall, Region, Rules, Spelling};
use crate::chat::{Tool, ToolCall};

/// Bytes of a name.
const NAME: usize = 256;

/// How a parameter says of what type its value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// Not at all.
    No,
    /// By ` string="true"` or ` string="false"`.
    String,
}

/// The tags, and the white space that the family's template sets around them.
pub(super) struct Tagged {
    /// `<invoke` and `</invoke>`.
    pub call: [&'static str; 2],
    /// After the call's tag, and before its end where there are no parameters.
    pub head: &'static str,
    pub empty: &'static str,
    /// `<parameter` and `</parameter>`.
    pub parameter: [&'static str; 2],
    /// After a parameter.
    pub tail: &'static str,
    pub typed: Typed,
    pub spelling: Spelling,
    /// Values between these are as they stand there, whatever is in them.
    pub verbatim: Option<[&'static str; 2]>,
    /// Tags around all calls of a turn; more than one where families differ.
    pub all: &'static [[&'static str; 2]],
}

impl Tagged {
    /// Reads what follows a mark, where the format's marks are those around all and then the call's own.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let Some([_, close]) = self.all.get(region.opened_by) else {
            self.call(region).await?;
            return self.stray(region).await;
        };
        loop {
            input.skip_space().await;
            if input.eat(self.call[0]).await {
                self.call(region).await?;
            } else if input.eat(close).await {
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
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
    async fn call(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        let name = attributes(region).await?.name.ok_or(NotACall)?;
        let mut arguments = region.call(name.trim())?;
        input.skip_space().await;
        if input.is_next("{").await {
            arguments.object().await?;
            input.skip_space().await;
            let closed = input.eat(self.call[1]).await;
            input.pin();
            return if closed { Ok(()) } else { Err(NotACall) };
        }
        loop {
            input.skip_space().await;
            if input.eat(self.parameter[0]).await {
                self.argument(region, &mut arguments).await?;
            } else if input.eat(self.call[1]).await {
                arguments.end();
                return Ok(());
            } else {
                return Err(NotACall);
            }
        }
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
        match string {
            Some(is_string) => arguments.stated(&name, End::tag(&[end]), is_string).await?,
            None => arguments.text(&name, End::tag(&[end])).await?,
        };
        Ok(())
    }

    pub(super) fn render(&self, call: &ToolCall) -> String {
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

    pub(super) fn grammar(&self, rules: &mut Rules, tool: &Tool) -> String {
        let open = rules.literal(&format!("{} name=\"{}\">{}", self.call[0], tool.name, self.head));
        let end = format!("{}{}", self.parameter[1], self.tail);
        let mut text = open;
        for parameter in rules.parameters(tool) {
            let head = |string: &str| format!("{} name=\"{}\"{string}>", self.parameter[0], parameter.name);
            let choices = match (self.typed, self.verbatim) {
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
            };
            let choice = rules.rule(&choices.join(" | "));
            text += &if parameter.required { format!(" {choice}") } else { format!(" {choice}?") };
        }
        if !self.empty.is_empty() {
            text += &format!(" {}?", rules.literal(self.empty));
        }
        format!("{text} {}", rules.literal(self.call[1]))
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
