//! JSON as models write it, turned into JSON as it should be, while it comes: raw newlines and stray quotes inside
//! strings, Python's literals and quotes, trailing commas.

mod fit;
mod strings;

use std::{future::Future, pin::Pin};

use serde_json::Value;

use super::input::Input;
use crate::schema::Shape;
pub(super) use fit::reads_as_text;
use strings::string;

/// Containers within containers; deeper is taken for nonsense.
const DEPTH: usize = 100;

/// Bytes of a number. A weak model may write one digit after the other.
const NUMBER: usize = 1 << 16;

/// The text is no JSON, however kindly one reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson;

/// Where valid JSON goes, piece by piece.
pub trait Sink: Send {
    fn json(&mut self, piece: &str);
}

impl Sink for String {
    fn json(&mut self, piece: &str) {
        self.push_str(piece);
    }
}

/// What stands around a string decides where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Member,
    Item,
    /// In Python's round brackets.
    Element,
    /// Between the parentheses of a call in a list of calls, as Python writes it.
    Argument,
    /// Between the parentheses of a call that ends with its line.
    Statement,
    Alone,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
struct At {
    place: Place,
    /// Containers around it.
    depth: usize,
    /// As Python writes it.
    python: bool,
}

impl At {
    fn top(place: Place) -> At {
        At { place, depth: 0, python: matches!(place, Place::Argument | Place::Statement) }
    }

    fn inside(self, place: Place) -> At {
        At { place, depth: self.depth + 1, ..self }
    }
}

/// The value of a text that is one.
pub fn read(text: &str) -> Option<Value> {
    let input = Input::whole(text);
    let mut json = String::new();
    let done = now(async {
        copy(&input, &Shape::unknown(), &mut json).await?;
        input.skip_space().await;
        if input.is_over() { Ok(()) } else { Err(NotJson) }
    });
    done.ok()?;
    serde_json::from_str(&json).ok()
}

/// Runs a reader of a text that is all there.
pub fn now<T>(reader: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(reader).poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => unreachable!("a reader that waits for more of a whole text is a bug"),
    }
}

/// The string that comes next, as JSON.
pub async fn text(input: &Input) -> Result<String, NotJson> {
    let mut json = String::new();
    string(input, &mut json, At::top(Place::Alone)).await?;
    Ok(json)
}

/// Copies one value, fitted to its shape. Strings stream where a string is wanted; a value whose type must be mended
/// comes when it is complete.
pub async fn copy(input: &Input, shape: &Shape, sink: &mut dyn Sink) -> Result<(), NotJson> {
    value(input, shape, sink, At::top(Place::Alone)).await
}

/// Writes what leads a value when the value begins.
pub struct Led<'a> {
    /// What stands before the value; empty once it is written.
    pub lead: &'a str,
    /// Where both go.
    pub sink: &'a mut dyn Sink,
}

impl Sink for Led<'_> {
    fn json(&mut self, piece: &str) {
        let lead = std::mem::take(&mut self.lead);
        if !lead.is_empty() {
            self.sink.json(lead);
        }
        self.sink.json(piece);
    }
}

/// [`copy`] of an argument between the parentheses of a call, as Python writes it.
pub async fn argument(input: &Input, shape: &Shape, sink: &mut dyn Sink) -> Result<(), NotJson> {
    value(input, shape, sink, At::top(Place::Argument)).await
}

/// [`copy`] of an argument between the parentheses of a call that ends with its line.
pub async fn statement(input: &Input, shape: &Shape, sink: &mut dyn Sink) -> Result<(), NotJson> {
    value(input, shape, sink, At::top(Place::Statement)).await
}

fn value<'a>(
    input: &'a Input,
    shape: &'a Shape,
    sink: &'a mut dyn Sink,
    at: At,
) -> Pin<Box<dyn Future<Output = Result<(), NotJson>> + Send + 'a>> {
    Box::pin(async move {
        input.skip_space().await;
        if at.depth > DEPTH {
            return Err(NotJson);
        }
        let types = shape.types();
        let first = input.peek().await.ok_or(NotJson)?;
        // What is not of the type that is wanted is read to its end first, and then mended.
        let fits = types.is_none_or(|types| match first {
            '"' | '\'' => types.string,
            '{' => types.object,
            '[' | '(' => types.array,
            _ => false,
        });
        match first {
            '{' if fits => object(input, shape, sink, at).await,
            '[' | '(' if fits => array(input, shape, sink, at).await,
            '"' | '\'' if fits => string(input, sink, at).await,
            _ => {
                let mut raw = String::new();
                match first {
                    '{' => object(input, &Shape::unknown(), &mut raw, at).await?,
                    '[' | '(' => array(input, &Shape::unknown(), &mut raw, at).await?,
                    '"' | '\'' => string(input, &mut raw, at).await?,
                    _ => raw = scalar(input, at).await?,
                }
                let Ok(value) = serde_json::from_str::<Value>(&raw) else {
                    // A number that no double holds.
                    sink.json(&raw);
                    return Ok(());
                };
                let mended = shape.fit(value.clone());
                // A value that stays keeps its spelling: 1e400 and 1.10 are not for us to round.
                sink.json(&if mended == value { raw } else { mended.to_string() });
                Ok(())
            }
        }
    })
}

async fn object(input: &Input, shape: &Shape, sink: &mut dyn Sink, at: At) -> Result<(), NotJson> {
    input.next().await;
    sink.json("{");
    let mut first = true;
    loop {
        input.skip_space().await;
        match input.peek().await.ok_or(NotJson)? {
            '}' => {
                input.next().await;
                sink.json("}");
                return Ok(());
            }
            '"' | '\'' => {
                let mut key = String::new();
                string(input, &mut key, at.inside(Place::Key)).await?;
                input.skip_space().await;
                if !input.eat(":").await {
                    return Err(NotJson);
                }
                let name: String = serde_json::from_str(&key).map_err(|_| NotJson)?;
                let lead = format!("{}{key}:", if first { "" } else { "," });
                let mut led = Led { lead: &lead, sink: &mut *sink };
                value(input, &shape.member(&name), &mut led, at.inside(Place::Member)).await?;
            }
            _ => return Err(NotJson),
        }
        first = false;
        separator(input, '}').await?;
    }
}

/// A list, or a tuple of Python's.
async fn array(input: &Input, shape: &Shape, sink: &mut dyn Sink, at: At) -> Result<(), NotJson> {
    let (place, end) = match input.next().await {
        Some('(') if at.python => (Place::Element, ')'),
        Some('[') => (Place::Item, ']'),
        _ => return Err(NotJson),
    };
    sink.json("[");
    let item = shape.item();
    let mut first = true;
    loop {
        input.skip_space().await;
        // A comma at the end of a text that was cut may be a trailing one.
        if input.peek().await.ok_or(NotJson)? == end {
            input.next().await;
            sink.json("]");
            return Ok(());
        }
        let mut led = Led { lead: if first { "" } else { "," }, sink: &mut *sink };
        value(input, &item, &mut led, at.inside(place)).await?;
        first = false;
        separator(input, end).await?;
    }
}

/// A comma, or nothing before the end.
pub async fn separator(input: &Input, end: char) -> Result<(), NotJson> {
    input.skip_space().await;
    match input.peek().await.ok_or(NotJson)? {
        ',' => {
            input.next().await;
            Ok(())
        }
        next if next == end => Ok(()),
        _ => Err(NotJson),
    }
}

/// A number or a literal, in JSON's spelling. It is complete when something else follows it. A lone word between a call's
/// parentheses lacks its quotes.
async fn scalar(input: &Input, at: At) -> Result<String, NotJson> {
    let holds = |char: char| char.is_alphanumeric() || "+-._".contains(char);
    let word = input.word(holds, NUMBER).await.ok_or(NotJson)?;
    // 12 at the end of a text that was cut may have been on its way to 120.
    if input.is_over() && (at.place != Place::Alone || !input.is_complete()) {
        return Err(NotJson);
    }
    if let Some(known) = literal(&word).map(str::to_owned).or_else(|| number(&word)) {
        return Ok(known);
    }
    match input.peek_after(0).await {
        Some((',' | ')' | ']' | '}', _)) if at.python => Ok(Value::from(word).to_string()),
        _ => Err(NotJson),
    }
}

/// JSON's literals by the names that they have anywhere.
pub fn literal(word: &str) -> Option<&'static str> {
    match word {
        "true" | "True" => Some("true"),
        "false" | "False" => Some("false"),
        "null" | "None" | "undefined" | "NaN" | "nan" => Some("null"),
        _ => None,
    }
}

/// Whether this is a number in JSON's grammar, whatever its size.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

/// A number in JSON's spelling: `+5`, `.5`, `5.` and `007` are numbers elsewhere.
fn number(word: &str) -> Option<String> {
    if is_number(word) {
        return Some(word.to_owned());
    }
    let plain = word.replace('_', "");
    if plain.len() < word.len() && !plain.starts_with(['+', '-', '.']) && is_number(&plain) {
        return Some(plain);
    }
    let float: f64 = word.parse().ok()?;
    let spelled = serde_json::Number::from_f64(float)?.to_string();
    Some(if word.contains(['.', 'e', 'E']) { spelled } else { spelled.trim_end_matches(".0").to_owned() })
}

#[cfg(test)]
mod tests;
