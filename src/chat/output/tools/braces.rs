//! A call as a name and members in braces, with a token of its own for the quotes around strings.
//!
//! `call:f{x:1,y:<|"|>text<|"|>}`

use std::{future::Future, pin::Pin};

use serde_json::Value;

use super::{Arguments, DEPTH, End, NAME, NotACall, Notation, Quotes, Region, Rules};
use crate::{
    chat::{
        Tool, ToolCall,
        dialect::Braces,
        output::{
            input::Input,
            json::{self, Spelled},
        },
        python,
    },
    schema::Shape,
};

/// Bytes of a value that is no string.
const WORD: usize = 400;

impl Braces {
    /// Reads calls behind their mark.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        input.skip_space().await;
        // The word before the colon gets lost.
        input.eat("call").await;
        loop {
            self.one(region).await?;
            input.skip_space().await;
            if !input.eat("call").await {
                break;
            }
        }
        if !input.eat(self.call[1]).await {
            input.rewind();
        }
        Ok(())
    }

    /// From the colon before the name on.
    async fn one(&self, region: &Region) -> Result<(), NotACall> {
        let input = &region.input;
        if !input.eat(":").await {
            return Err(NotACall);
        }
        input.skip_space().await;
        let name =
            input.word(|char| !char.is_whitespace() && !"{}()<>\"".contains(char), NAME).await.ok_or(NotACall)?;
        let end = match input.next().await {
            Some('{') => '}',
            Some('(') => ')',
            _ => return Err(NotACall),
        };
        let mut arguments = region.call(&name)?;
        self.members(input, &mut arguments, end).await?;
        arguments.end();
        Ok(())
    }

    /// From behind the call's bracket to the one that closes it.
    async fn members(&self, input: &Input, arguments: &mut Arguments, end: char) -> Result<(), NotACall> {
        loop {
            input.skip_space().await;
            if input.peek().await == Some(end) {
                input.next().await;
                return Ok(());
            }
            let key = self.key(input).await?;
            input.skip_space().await;
            if input.eat(self.quote).await {
                arguments.stated(&key, End::at(&[self.quote]), true).await?;
            } else {
                match self.value(input, end, 0).await? {
                    Written::Text(text) => {
                        let value = arguments.shape().member(&key).read(&text);
                        let value = if arguments.shape().member(&key).types().is_none() { guess(&text) } else { value };
                        arguments.member(&key, &value);
                    }
                    Written::Value(value) => arguments.fitted(&key, value),
                }
            }
            json::separator(input, end).await?;
        }
    }

    /// A key, which may have quotes, and its colon.
    async fn key(&self, input: &Input) -> Result<String, NotACall> {
        let key = if input.eat(self.quote).await {
            input.text_until(&[self.quote]).await.ok_or(NotACall)?.0
        } else if matches!(input.peek().await, Some('"' | '\'')) {
            serde_json::from_str(&json::text(input).await?).map_err(|_| NotACall)?
        } else {
            input.word(|char| !"{}[]:,<>\n".contains(char), NAME).await.ok_or(NotACall)?
        };
        input.skip_space().await;
        if input.eat(":").await { Ok(key.trim().to_owned()) } else { Err(NotACall) }
    }

    /// `end` closes what the value stands in.
    fn value<'a>(&'a self, input: &'a Input, end: char, depth: usize) -> ValueFuture<'a> {
        Box::pin(async move {
            input.skip_space().await;
            if depth > DEPTH {
                return Err(NotACall);
            }
            if input.eat(self.quote).await {
                let (text, _) = input.text_until(&[self.quote]).await.ok_or(NotACall)?;
                return Ok(Written::Value(Spelled::Text(text)));
            }
            match input.peek().await.ok_or(NotACall)? {
                '{' => self.object(input, depth).await.map(Written::Value),
                '[' => self.array(input, depth).await.map(Written::Value),
                '"' | '\'' => {
                    let text = json::text(input).await?;
                    Spelled::of(&text).map(Written::Value).ok_or(NotACall)
                }
                _ => {
                    let text =
                        input.word(|char| char != end && !",}]\n<".contains(char), WORD).await.ok_or(NotACall)?;
                    // 12 at the end of a text that was cut may have been on its way to 120.
                    if input.is_over() { Err(NotACall) } else { Ok(Written::Text(text.trim().to_owned())) }
                }
            }
        })
    }

    async fn object(&self, input: &Input, depth: usize) -> Result<Spelled, NotACall> {
        input.next().await;
        let mut members = Vec::new();
        loop {
            input.skip_space().await;
            if input.eat("}").await {
                return Ok(Spelled::members(members));
            }
            let key = self.key(input).await?;
            let value = known(self.value(input, '}', depth + 1).await?);
            members.push((key, value));
            json::separator(input, '}').await?;
        }
    }

    async fn array(&self, input: &Input, depth: usize) -> Result<Spelled, NotACall> {
        input.next().await;
        let mut items = Vec::new();
        loop {
            input.skip_space().await;
            if input.eat("]").await {
                return Ok(Spelled::List(items));
            }
            items.push(known(self.value(input, ']', depth + 1).await?));
            json::separator(input, ']').await?;
        }
    }

    /// One call.
    pub(super) fn render(&self, call: &ToolCall) -> String {
        let arguments = self.spelled(&Value::Object(call.arguments.clone()));
        format!("{}call:{}{arguments}{}", self.call[0], call.name, self.call[1])
    }

    /// As the template's macro writes it: keys in alphabetical order, whatever their case, and without quotes.
    fn spelled(&self, value: &Value) -> String {
        match value {
            Value::String(text) => format!("{0}{text}{0}", self.quote),
            Value::Bool(value) => value.to_string(),
            Value::Array(items) => {
                format!("[{}]", items.iter().map(|item| self.spelled(item)).collect::<Vec<_>>().join(","))
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(key, _)| key.to_lowercase());
                let member = |(key, value): (&String, &Value)| format!("{key}:{}", self.spelled(value));
                format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
            }
            other => python::repr(other),
        }
    }

    /// What [`Braces::render`] writes.
    pub(super) fn grammar(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        let notation = Notation {
            string: Quotes::Mark(self.quote),
            key: str::to_owned,
            words: ["true", "false", "None"],
            comma: ",",
            colon: ":",
            sorted: true,
            json: false,
            json_objects: false,
        };
        let open = rules.literal(&format!("{}call:{}{{", self.call[0], tool.name));
        let members = notation.arguments(rules, tool);
        format!("{open} {members} {}", rules.literal(&format!("}}{}", self.call[1])))
    }
}

enum Written {
    /// Without quotes, so that the schema decides what it is.
    Text(String),
    Value(Spelled),
}

type ValueFuture<'a> = Pin<Box<dyn Future<Output = Result<Written, NotACall>> + Send + 'a>>;

fn known(written: Written) -> Spelled {
    match written {
        Written::Text(text) => guess(&text),
        Written::Value(value) => value,
    }
}

/// A value without quotes where no schema says what it is.
fn guess(text: &str) -> Spelled {
    Shape::unknown().read_value(text)
}
