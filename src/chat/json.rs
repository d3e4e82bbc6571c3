//! JSON as models write it, turned into JSON as it should be, while it comes: raw newlines and stray quotes inside
//! strings, Python's literals and quotes, trailing commas.

use std::{future::Future, pin::Pin};

use serde_json::Value;

use super::{input::Input, schema::Shape};

/// Containers within containers; deeper is taken for nonsense.
const DEPTH: usize = 100;

/// Bytes of a number. A weak model may write one digit after the other.
const NUMBER: usize = 1 << 16;

/// Bytes of an argument's name.
const WORD: usize = 100;

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
    /// Between the parentheses of a call in a list of calls, as Python writes it.
    Argument,
    /// Between the parentheses of a call that ends with its line.
    Statement,
    Alone,
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
    string(input, &mut json, Place::Alone).await?;
    Ok(json)
}

/// Copies one value, fitted to its shape. Strings stream where a string is wanted; a value whose type must be mended
/// comes when it is complete.
pub async fn copy(input: &Input, shape: &Shape, sink: &mut dyn Sink) -> Result<(), NotJson> {
    value(input, shape, sink, Place::Alone, 0).await
}

/// Writes what leads a value when the value begins.
pub struct Led<'a> {
    pub lead: &'a str,
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
    value(input, shape, sink, Place::Argument, 0).await
}

/// [`copy`] of an argument between the parentheses of a call that ends with its line.
pub async fn statement(input: &Input, shape: &Shape, sink: &mut dyn Sink) -> Result<(), NotJson> {
    value(input, shape, sink, Place::Statement, 0).await
}

fn value<'a>(
    input: &'a Input,
    shape: &'a Shape,
    sink: &'a mut dyn Sink,
    place: Place,
    depth: usize,
) -> Pin<Box<dyn Future<Output = Result<(), NotJson>> + Send + 'a>> {
    Box::pin(async move {
        input.skip_space().await;
        if depth > DEPTH {
            return Err(NotJson);
        }
        let types = shape.types();
        let first = input.peek().await.ok_or(NotJson)?;
        // What is not of the type that is wanted is read to its end first, and then mended.
        let fits = types.is_none_or(|types| match first {
            '"' | '\'' => types.string,
            '{' => types.object,
            '[' => types.array,
            _ => false,
        });
        match first {
            '{' if fits => object(input, shape, sink, depth).await,
            '[' if fits => array(input, shape, sink, depth).await,
            '"' | '\'' if fits => string(input, sink, place).await,
            _ => {
                let mut raw = String::new();
                match first {
                    '{' => object(input, &Shape::unknown(), &mut raw, depth).await?,
                    '[' => array(input, &Shape::unknown(), &mut raw, depth).await?,
                    '"' | '\'' => string(input, &mut raw, place).await?,
                    _ => raw = scalar(input, place).await?,
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

async fn object(input: &Input, shape: &Shape, sink: &mut dyn Sink, depth: usize) -> Result<(), NotJson> {
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
                string(input, &mut key, Place::Key).await?;
                input.skip_space().await;
                if !input.eat(":").await {
                    return Err(NotJson);
                }
                let name: String = serde_json::from_str(&key).map_err(|_| NotJson)?;
                let lead = format!("{}{key}:", if first { "" } else { "," });
                let mut led = Led { lead: &lead, sink: &mut *sink };
                value(input, &shape.member(&name), &mut led, Place::Member, depth + 1).await?;
            }
            _ => return Err(NotJson),
        }
        first = false;
        separator(input, '}').await?;
    }
}

async fn array(input: &Input, shape: &Shape, sink: &mut dyn Sink, depth: usize) -> Result<(), NotJson> {
    input.next().await;
    sink.json("[");
    let item = shape.item();
    let mut first = true;
    loop {
        input.skip_space().await;
        if input.eat("]").await {
            sink.json("]");
            return Ok(());
        }
        // A comma at the end of a text that was cut may be a trailing one.
        input.peek().await.ok_or(NotJson)?;
        let mut led = Led { lead: if first { "" } else { "," }, sink: &mut *sink };
        value(input, &item, &mut led, Place::Item, depth + 1).await?;
        first = false;
        separator(input, ']').await?;
    }
}

/// A comma, or nothing before the end.
async fn separator(input: &Input, end: char) -> Result<(), NotJson> {
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

/// A number or a literal, in JSON's spelling. It is complete when something else follows it.
async fn scalar(input: &Input, place: Place) -> Result<String, NotJson> {
    let holds = |char: char| char.is_ascii_alphanumeric() || "+-._".contains(char);
    let word = input.word(holds, NUMBER).await.ok_or(NotJson)?;
    // 12 at the end of a text that was cut may have been on its way to 120.
    if place != Place::Alone && input.is_over() {
        return Err(NotJson);
    }
    match literal(&word) {
        Some(literal) => Ok(literal.to_owned()),
        None => number(&word).ok_or(NotJson),
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

/// A string, in quotes of either kind, or in three of them where Python has it so.
async fn string(input: &Input, sink: &mut dyn Sink, place: Place) -> Result<(), NotJson> {
    let quote = input.next().await.ok_or(NotJson)?;
    let two = String::from_iter([quote, quote]);
    let is_argument = matches!(place, Place::Argument | Place::Statement);
    let triple = is_argument && input.eat(&two).await;
    let is_code = is_argument || quote == '\'';
    sink.json("\"");
    loop {
        let plain = |char: char| char != quote && char != '\\' && char != '"' && char >= ' ';
        input.take_while(plain, |piece| sink.json(piece)).await;
        match input.peek().await.ok_or(NotJson)? {
            '\\' => escape(input, sink, is_code).await?,
            char if char == quote => {
                let done = match triple {
                    true => quotes(input, quote).await.ok_or(NotJson)?,
                    false => ends(input, place).await.ok_or(NotJson)?,
                };
                input.next().await;
                if done {
                    input.eat(if triple { &two } else { "" }).await;
                    sink.json("\"");
                    return Ok(());
                }
                sink.json(if quote == '"' { "\\\"" } else { "'" });
            }
            '"' => {
                input.next().await;
                sink.json("\\\"");
            }
            control => {
                input.next().await;
                sink.json(&escaped(control));
            }
        }
    }
}

fn escaped(char: char) -> String {
    let quoted = Value::from(char.to_string()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Whether two more quotes follow the one that is next.
async fn quotes(input: &Input, quote: char) -> Option<bool> {
    Some(input.peek_at(1).await? == quote && input.peek_at(2).await? == quote)
}

/// Whether the quote that is next ends the string: what follows it must be able to follow a string here. `None` where
/// the text ends before that is certain.
async fn ends(input: &Input, place: Place) -> Option<bool> {
    if place == Place::Alone {
        return Some(true);
    }
    let (char, after) = input.peek_after(1).await?;
    Some(match (place, char) {
        (Place::Key, char) => char == ':',
        (Place::Member, '}') | (Place::Item, ']' | ',') => true,
        (Place::Member, ',') => matches!(input.peek_after(after).await?.0, '"' | '\'' | '}'),
        (Place::Argument, ')') => ends_call(input, after).await?,
        (Place::Statement, ')') => match input.peek_at(after).await {
            Some(char) => "\n\r)`;".contains(char),
            // In the middle of a string there may be a parenthesis, too.
            None => input.is_complete().then_some(true)?,
        },
        (Place::Argument | Place::Statement, ',') => begins_argument(input, after).await?,
        _ => false,
    })
}

/// Whether what follows after `skipped` bytes can follow a call, as what follows a parenthesis inside a string hardly
/// can: the end of the list, or another call.
async fn ends_call(input: &Input, skipped: usize) -> Option<bool> {
    match input.peek_after(skipped).await? {
        (',', after) => match input.peek_after(after).await? {
            (']', _) => Some(true),
            (first, at) => Some(word_ahead(input, first, at, "_.-/:").await?.1 == '('),
        },
        (char, _) => Some("];)<`".contains(char)),
    }
}

/// Whether an argument, with or without its name, or the end of the arguments begins after `skipped` bytes.
async fn begins_argument(input: &Input, skipped: usize) -> Option<bool> {
    let (first, at) = input.peek_after(skipped).await?;
    if !first.is_alphabetic() && first != '_' {
        return Some(first.is_ascii_digit() || "\"'[{-)".contains(first));
    }
    let (word, then) = word_ahead(input, first, at, "_").await?;
    Some(then == '=' || literal(&word).is_some())
}

/// The word that begins with `first`, goes on after `at` bytes and may have these characters in it, and what follows.
async fn word_ahead(input: &Input, first: char, mut at: usize, others: &str) -> Option<(String, char)> {
    let mut word = String::from(first);
    while word.len() < WORD {
        let char = input.peek_at(at).await?;
        if !char.is_alphanumeric() && !others.contains(char) {
            break;
        }
        at += char.len_utf8();
        word.push(char);
    }
    let (then, _) = input.peek_after(at).await?;
    Some((word, then))
}

/// What follows a backslash. An escape that JSON does not know is a backslash that was meant, but for Python's `\x1b` where
/// the string is Python's.
async fn escape(input: &Input, sink: &mut dyn Sink, is_code: bool) -> Result<(), NotJson> {
    input.next().await;
    match input.peek().await.ok_or(NotJson)? {
        char @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
            input.next().await;
            sink.json(&format!("\\{char}"));
        }
        '\'' => {
            input.next().await;
            sink.json("'");
        }
        'u' => unicode(input, sink).await?,
        'x' if is_code => match digits(input, 2).await? {
            Some(code) => sink.json(&escaped(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))),
            None => sink.json("\\\\"),
        },
        _ => sink.json("\\\\"),
    }
    Ok(())
}

/// The character of `\uXXXX`, of a pair of them where it takes two; U+FFFD where it is half of one; what stands there
/// where there are no four digits.
async fn unicode(input: &Input, sink: &mut dyn Sink) -> Result<(), NotJson> {
    let Some(first) = digits(input, 4).await? else {
        sink.json("\\\\");
        return Ok(());
    };
    let mut char = char::from_u32(first);
    // Half a pair at the end of a text that was cut is neither a character nor a mistake.
    let is_half = (0xd800..0xdc00).contains(&first) && input.peek().await.ok_or(NotJson)? == '\\';
    if is_half && input.peek_at(1).await.ok_or(NotJson)? == 'u' {
        input.next().await;
        match digits(input, 4).await? {
            Some(second) => char = char::decode_utf16([first as u16, second as u16]).next().and_then(Result::ok),
            None => {
                sink.json(&escaped(char::REPLACEMENT_CHARACTER));
                sink.json("\\\\");
                return Ok(());
            }
        }
    }
    sink.json(&escaped(char.unwrap_or(char::REPLACEMENT_CHARACTER)));
    Ok(())
}

/// The number behind a letter: `uXXXX`, `xXX`; taken where it is one of `count` hexadecimal digits.
async fn digits(input: &Input, count: usize) -> Result<Option<u32>, NotJson> {
    let (mut code, mut at) = (0, 1);
    for _ in 0..count {
        let Some(char) = input.peek_at(at).await else { return Err(NotJson) };
        let Some(digit) = char.to_digit(16) else { return Ok(None) };
        code = code * 16 + digit;
        at += 1;
    }
    for _ in 0..count + 1 {
        input.next().await;
    }
    Ok(Some(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mends() {
        let check = |text: &str, expected: &str| {
            let mut json = String::new();
            let input = Input::whole(text);
            now(copy(&input, &Shape::unknown(), &mut json)).unwrap_or_else(|_| panic!("{text}"));
            assert_eq!(json, expected, "{text}");
            serde_json::from_str::<Value>(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
        };
        check(r#"{"a": [1, -2.50, 1e3], "b": {}, "c": []}"#, r#"{"a":[1,-2.50,1e3],"b":{},"c":[]}"#);
        check("{'a': True, 'b': None, 'c': 'it\\'s'}", r#"{"a":true,"b":null,"c":"it's"}"#);
        check("{\"a\": \"x\ny\t\"}", r#"{"a":"x\ny\t"}"#);
        check(r#"{"a": "say "hi" now", "b": 1,}"#, r#"{"a":"say \"hi\" now","b":1}"#);
        check(r#"{"a": "\d+\.", "b": "\u00e9\ud83d\ude00\ud800\uZ"}"#, r#"{"a":"\\d+\\.","b":"é😀�\\uZ"}"#);
        check(r#"["\x41", '\x41\x1b\xe9', '\x4']"#, r#"["\\x41","A\u001bé","\\x4"]"#);
        check(r#"["a", "b" , ]"#, r#"["a","b"]"#);
        check("[.5, 5., 007, +1, 1_000]", "[0.5,5.0,7,1,1000]");
        check("[1.50, -0, 1e5, 12345678901234567890123]", "[1.50,-0,1e5,12345678901234567890123]");
        check(r#"{"a": "</tool_call>", "b": "a, \"b\": c"}"#, r#"{"a":"</tool_call>","b":"a, \"b\": c"}"#);
        check(r#""a""#, r#""a""#);
    }

    #[test]
    fn refuses() {
        for text in ["", "{", "{\"a\"", "{\"a\": }", "[1 2]", "hello", "{\"a\": 1 oops}", "\"open", "{a: 1}", "1-2"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"[".repeat(100_000)), None);
    }
}
