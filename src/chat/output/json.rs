//! JSON as models write it, turned into JSON as it should be, while it comes: raw newlines and stray quotes inside
//! strings, Python's literals and quotes, trailing commas.

mod fit;
mod spelled;
mod strings;

use std::{collections::HashSet, future::Future, pin::Pin};

use super::input::Input;
use crate::schema::Shape;
pub(super) use fit::{allow, reads_as_text};
pub use spelled::Spelled;
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
pub fn read(text: &str) -> Option<Spelled> {
    let input = Input::whole(text);
    let mut json = String::new();
    let done = now(async {
        copy(&input, &Shape::unknown(), &mut json).await?;
        input.skip_space().await;
        if input.is_over() { Ok(()) } else { Err(NotJson) }
    });
    done.ok()?;
    Spelled::of(&json)
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
                let value = whole(input, shape, first, at).await?;
                sink.json(&value.to_string());
                Ok(())
            }
        }
    })
}

/// A value that is read to its end before it is written, as what the shape wants of it.
async fn whole(input: &Input, shape: &Shape, first: char, at: At) -> Result<Spelled, NotJson> {
    let mut raw = String::new();
    match first {
        '{' => object(input, &Shape::unknown(), &mut raw, at).await?,
        '[' | '(' => array(input, &Shape::unknown(), &mut raw, at).await?,
        '"' | '\'' => string(input, &mut raw, at).await?,
        _ => return Ok(shape.scalar(&scalar(input, at).await?)),
    }
    Spelled::of(&raw).map(|value| shape.fit(value)).ok_or(NotJson)
}

async fn object(input: &Input, shape: &Shape, sink: &mut dyn Sink, at: At) -> Result<(), NotJson> {
    input.next().await;
    sink.json("{");
    let mut names = HashSet::new();
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
                let lead = format!("{}{key}:", if names.is_empty() { "" } else { "," });
                let mut led = Led { lead: &lead, sink: &mut *sink };
                // Of two members with one name the first counts.
                let mut doubled = String::new();
                let member = shape.member(&name);
                let sink: &mut dyn Sink = if names.insert(name) { &mut led } else { &mut doubled };
                value(input, &member, sink, at.inside(Place::Member)).await?;
            }
            _ => return Err(NotJson),
        }
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

/// A number or a literal, as it is spelled. It is complete when something else follows it. A word that is neither lacks
/// its quotes.
async fn scalar(input: &Input, at: At) -> Result<String, NotJson> {
    let is_inside = matches!(at.place, Place::Member | Place::Item) && !at.python;
    let others = if is_inside { "+-._:/" } else { "+-._" };
    let holds = |char: char| char.is_alphanumeric() || others.contains(char);
    let word = input.word(holds, NUMBER).await.ok_or(NotJson)?;
    // 12 at the end of a text that was cut may have been on its way to 120.
    if input.is_over() && !input.is_at_fence() && (at.place != Place::Alone || !input.is_complete()) {
        return Err(NotJson);
    }
    if literal(&word).is_some() || number(&word).is_some() {
        return Ok(word);
    }
    match input.peek_after(0).await {
        Some((',' | ')' | ']' | '}', _)) if at.python => Ok(word),
        Some((',' | ']' | '}', _)) if is_inside => Ok(word),
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

/// A number in JSON's spelling: `+5`, `.5`, `5.`, `007`, `1_000` and `0x1F` are numbers elsewhere.
fn number(word: &str) -> Option<String> {
    if is_number(word) {
        return Some(word.to_owned());
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let sign = if word.starts_with('-') { "-" } else { "" };
    if !unsigned.starts_with(|char: char| char.is_ascii_digit() || char == '.') {
        return None;
    }
    let plain = unsigned.replace('_', "");
    if let Some(digits) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        return u128::from_str_radix(digits, 16).ok().map(|number| format!("{sign}{number}"));
    }
    let (mantissa, exponent) = plain.split_at(plain.find(['e', 'E']).unwrap_or(plain.len()));
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(whole, after)| (whole, Some(after)));
    if whole.is_empty() && fraction.is_none_or(str::is_empty) {
        return None;
    }
    let digits = whole.trim_start_matches('0');
    let whole = if digits.is_empty() { "0" } else { digits };
    let fraction =
        fraction.map_or(String::new(), |digits| format!(".{}", if digits.is_empty() { "0" } else { digits }));
    let spelled = format!("{sign}{whole}{fraction}{exponent}");
    is_number(&spelled).then_some(spelled)
}

#[cfg(test)]
mod tests;
